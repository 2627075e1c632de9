"""What is wrong with a cluster: partitions, brokers, directories and the quorum, each with its reason.

`look` asks the cluster; `judge` decides by what it has seen. Everything comes from the public protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from moldau.admin import TopicPartition, clusters, configs, log_dirs, reassignments, topics
from moldau.admin.reassignments import Reassignment
from moldau.admin.topics import PartitionState
from moldau.client import Client

MIN_INSYNC = "min.insync.replicas"
ANSWER_S = 3.0  # how long a broker may take before it counts as silent
LAG_MS = 10_000  # how long a replica of the metadata may be behind the leader
# The reasons, the worst first. A move is worth a line, but nothing is wrong with it.
NO_LEADER, UNDER_MIN_ISR, AT_MIN_ISR, UNDER_REPLICATED = "no leader", "under min ISR", "at min ISR", "under-replicated"
FENCED, SILENT, OFFLINE, LAGS, MOVING = "fenced", "silent", "offline", "lags", "moving"
NO_QUORUM = "no quorum leader"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is not as it should be: where, the reason in a word, and the particulars."""

    where: str
    reason: str
    details: str

    @property
    def is_unwell(self) -> bool:
        return self.reason != MOVING


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen of a cluster. Brokers without `folders` did not answer; `least` has min.insync.replicas."""

    cluster: clusters.ClusterState
    topics: tuple[topics.TopicState, ...]
    folders: Mapping[int, list[log_dirs.LogDir]]
    quorum: clusters.Quorum | None
    moves: Mapping[TopicPartition, Reassignment]
    least: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def fenced(self) -> set[int]:
        return {one.id for one in self.cluster.brokers if one.is_fenced}

    @property
    def silent(self) -> set[int]:
        return {one.id for one in self.cluster.brokers if not one.is_fenced and one.id not in self.folders}


def look(client: Client) -> Sight:
    """Ask the cluster for all that `judge` needs to know."""
    cluster = clusters.described(client, fenced=True)
    listed = tuple(topics.listed(client))
    moves = reassignments.known(client)
    short = [topic.name for topic in listed if any(lacking(topic.name, part, moves) for part in topic.partitions)]
    return Sight(
        cluster,
        listed,
        log_dirs.answered(client, [one.id for one in cluster.brokers if not one.is_fenced], ANSWER_S),
        clusters.known_quorum(client),
        moves,
        min_insync(client, short),
    )


def min_insync(client: Client, names: Iterable[str]) -> dict[str, int]:
    """Return how many replicas of these topics must be in sync for acks=all."""
    resources = [configs.Resource(configs.Kind.TOPIC, name) for name in names]
    found = configs.describe_all(client, resources, [MIN_INSYNC]) if resources else {}
    return {resource.name: int(entries[0].value or 1) for resource, entries in found.items() if entries}


def lacking(topic: str, part: PartitionState, moves: Mapping[TopicPartition, Reassignment]) -> list[int]:
    """Return the replicas that are not in sync, without those that only come by a move."""
    move = moves.get((topic, part.index))
    coming = move.adding if move else ()
    return [broker for broker in part.replicas if broker not in part.isr and broker not in coming]


def judge(sight: Sight) -> list[Trouble]:
    """List all that is wrong: brokers and directories first, since partitions suffer from them."""
    return [*_of_brokers(sight), *_of_quorum(sight), *_of_partitions(sight)]


def _of_brokers(sight: Sight) -> Iterator[Trouble]:
    for broker in sorted(sight.fenced):
        yield Trouble(f"broker {broker}", FENCED, "the controller does not hear from it")
    for broker in sorted(sight.silent):
        yield Trouble(f"broker {broker}", SILENT, f"it does not answer within {ANSWER_S:.0f} s")
    for broker, folders in sorted(sight.folders.items()):
        for folder in folders:
            if folder.error:
                yield Trouble(f"broker {broker}", OFFLINE, f"directory {folder.path}: {folder.error.message}")


def _of_quorum(sight: Sight) -> Iterator[Trouble]:
    """Look at voters, and at brokers that follow the metadata unless they are fenced anyway."""
    quorum = sight.quorum
    if quorum is None:
        return
    leader = next((one for one in quorum.replicas if one.id == quorum.leader), None)
    if leader is None:
        yield Trouble("quorum", NO_QUORUM, "no voter leads the metadata log")
        return
    for one in quorum.replicas:
        if not one.is_voter and one.id in sight.fenced:
            continue
        behind_ms = leader.last_caught_up_ms - one.last_caught_up_ms
        if quorum.lag(one) and leader.last_caught_up_ms >= 0 and behind_ms > LAG_MS:
            name = f"{'voter' if one.is_voter else 'observer'} {one.id}"
            behind = f"is {quorum.lag(one)} offsets behind, for {behind_ms / 1000:.0f} s"
            never = f"has never caught up with leader {leader.id}"
            yield Trouble("quorum", LAGS, f"{name} {behind if one.last_caught_up_ms >= 0 else never}")


def _of_partitions(sight: Sight) -> Iterator[Trouble]:
    for topic in sight.topics:
        for part in topic.partitions:
            missing = lacking(topic.name, part, sight.moves)
            move = sight.moves.get((topic.name, part.index))
            reason = _reason(part, missing, min(sight.least.get(topic.name, 1), len(part.replicas)), move)
            if reason is not None:
                details = _details(sight, topic.name, part, missing, move)
                yield Trouble(f"{topic.name}-{part.index}", reason, "; ".join(details))


def _reason(part: PartitionState, missing: list[int], least: int, move: Reassignment | None) -> str | None:
    if part.leader < 0:
        return NO_LEADER
    if len(part.isr) < least:
        return UNDER_MIN_ISR
    if missing:
        return AT_MIN_ISR if len(part.isr) == least else UNDER_REPLICATED
    return MOVING if move else None


def _details(
    sight: Sight, topic: str, part: PartitionState, missing: list[int], move: Reassignment | None
) -> Iterator[str]:
    if part.leader < 0:
        yield f"replicas {_ids(part.replicas)}, in sync {_ids(part.isr) or 'nobody'}"
    else:
        needed = f", acks=all needs {sight.least[topic]}" if topic in sight.least else ""
        yield f"{len(part.isr)} of {len(part.replicas)} in sync{needed}" if missing else f"leader {part.leader}"
    if missing:
        yield "missing " + ", ".join(_named(sight, broker) for broker in missing)
    if move:
        going = f", from {_ids(move.removing)}" if move.removing else ""
        yield f"moving to {_ids(move.adding) or 'nobody'}{going}"


def _named(sight: Sight, broker: int) -> str:
    """Name a broker with the reason for which it is probably missing."""
    known = {one.id for one in sight.cluster.brokers}
    states = ((broker in sight.fenced, FENCED), (broker in sight.silent, SILENT), (broker not in known, "unknown"))
    state = next((word for holds, word in states if holds), "")
    return f"{broker} ({state})" if state else str(broker)


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))
