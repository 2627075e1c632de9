"""What has happened in a cluster, told from its metadata log: elections, replicas in sync, brokers, the controller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.admin.metadata_log import Entry

NO_CHANGE, NOBODY = -2, -1
RECOVERING = 1  # the leader was not in sync before
# The kinds of events, in the order of the rows of the chart.
CONTROLLER, BROKER, ELECTION, NO_LEADER, SHRINK, EXPAND = (
    "controller",
    "broker",
    "election",
    "no leader",
    "ISR shrinks",
    "ISR grows",
)
KINDS = (CONTROLLER, BROKER, ELECTION, NO_LEADER, SHRINK, EXPAND)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened. `topic` is set if it has happened to a partition."""

    offset: int
    at_ms: int
    kind: str
    where: str
    details: str
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """Who led a partition and who was in sync, as far as that was told; None is not known."""

    leader: int | None = None
    isr: tuple[int, ...] | None = None


@dataclass(slots=True)
class Teller:
    """Tells entries of the log as events. It remembers what it was told of partitions, to say what has changed.

    `names` are those of topics that exist, by id; of a topic that was deleted before, the log may not tell the name.
    """

    names: dict[bytes, str] = field(default_factory=dict[bytes, str])
    placed: dict[tuple[bytes, int], Placed] = field(default_factory=dict[tuple[bytes, int], Placed])

    def tell(self, entries: Iterable[Entry]) -> list[Event]:
        """Return the events of these entries, which follow those that were told before."""
        return [
            Event(entry.offset, entry.at_ms, *fields)
            for entry in entries
            for fields in self._fields(entry, entry.record)
        ]

    def _fields(self, entry: Entry, record: Any) -> Iterator[tuple[Any, ...]]:
        match record.SCHEMA.name:
            case "TopicRecord":
                self.names[bytes(record.topic_id)] = record.name
            case "PartitionRecord":
                place = bytes(record.topic_id), record.partition_id
                self.placed[place] = Placed(record.leader, tuple(record.isr))
            case "PartitionChangeRecord":
                yield from self._change(record)
            case "LeaderChangeMessage":
                yield CONTROLLER, f"node {record.leader_id}", f"leads the quorum, epoch {entry.epoch}"
            case name if name in BROKERS:
                if words := BROKERS[name](record):
                    yield BROKER, f"broker {_id(record)}", words
            case _:
                pass

    def _change(self, record: Any) -> Iterator[tuple[Any, ...]]:
        topic_id = bytes(record.topic_id)
        before = self.placed.get((topic_id, record.partition_id), Placed())
        leader = before.leader if record.leader == NO_CHANGE else record.leader
        isr = before.isr if record.isr is None else tuple(record.isr)
        self.placed[topic_id, record.partition_id] = Placed(leader, isr)
        topic = self.names.get(topic_id)
        where = f"{topic or 'deleted topic'}-{record.partition_id}"
        if leader != before.leader:
            kind, words = _leader(before.leader, leader, record.leader_recovery_state == RECOVERING)
            yield kind, where, words, topic
        for kind, words in _isr(before.isr, isr):
            yield kind, where, words, topic


def _leader(before: int | None, now: int | None, is_unclean: bool) -> tuple[str, str]:
    was = "" if before is None else "nobody → " if before == NOBODY else f"{before} → "
    if now == NOBODY:
        return NO_LEADER, f"{was}nobody"
    return ELECTION, f"{was}{now}" + (", unclean: it was not in sync" if is_unclean else "")


def _isr(before: tuple[int, ...] | None, now: tuple[int, ...] | None) -> Iterator[tuple[str, str]]:
    if before is None or now is None:
        return
    gone, new = [one for one in before if one not in now], [one for one in now if one not in before]
    left = f"; in sync {_ids(now)}"
    if gone:
        yield SHRINK, f"without {_ids(gone)}{left}"
    if new:
        yield EXPAND, f"with {_ids(new)}{left}"


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers)) or "nobody"


def _id(record: Any) -> int:
    return record.id if hasattr(record, "id") else record.broker_id


def _registration_change(record: Any) -> str:
    words = {1: "fenced", -1: "unfenced"}.get(record.fenced, "")
    return words or ("shuts down" if record.in_controlled_shutdown == 1 else "")


BROKERS: Mapping[str, Any] = {
    "RegisterBrokerRecord": lambda _: "registers",
    "UnregisterBrokerRecord": lambda _: "is forgotten",
    "FenceBrokerRecord": lambda _: "fenced",
    "UnfenceBrokerRecord": lambda _: "unfenced",
    "BrokerRegistrationChangeRecord": _registration_change,
}
