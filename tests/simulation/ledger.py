"""What is known of one partition: what was sent to it, what was promised, what has been read.

A ledger believes what it is told first, by an acknowledgement or by a read, and holds the node to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moldau.wire.errors import WireError
from moldau.wire.records import Batch, Record, records
from tests.simulation.properties import Broken, Property

FOREVER = 2**63 - 1
WEEK_MS = 604_800_000


@dataclass(slots=True, eq=False)
class Sent:
    """A batch as its producer made it. The name of a record is unique in the world."""

    session: Any
    number: int  # of its first record, within the session
    items: list[Record]
    names: list[bytes]
    sent_ms: int
    data: bytes = b""
    attempts: int = 0
    acked_offset: int | None = None


class Seen(NamedTuple):
    """A batch as a reader found it."""

    base_offset: int
    last_offset: int
    size: int
    offsets: list[int]
    names: list[bytes]


def name_of(record: Record) -> bytes:
    """A tombstone has its name in a header."""
    if record.value is not None:
        return record.value.partition(b"|")[0]
    return dict(record.headers).get("name") or b"?"


@dataclass(slots=True, eq=False)
class Ledger:
    """One partition of one topic (a topic that is created again is another one)."""

    topic: Any
    index: int
    sent: dict[bytes, tuple[Sent, int]] = field(default_factory=dict)
    known: dict[int, bytes] = field(default_factory=dict)
    places: dict[bytes, set[int]] = field(default_factory=dict)
    start: int = 0  # the largest log start offset that anyone was told
    high: int = 0  # the end of what was promised or read
    acked: int = 0  # the end of what was acknowledged
    safe: int = 0  # the end of what no crash may take
    acks: list[tuple[float, int]] = field(default_factory=list)  # when, and the end of it, since the last start
    accounted: int = 0  # why the records before it have gone was found to be in order
    cut_to: int = 0  # the largest offset that a DeleteRecords named
    unsure: bool = False  # power was lost, and the partition has not been looked at since
    faulty: bool = False  # its disk has failed, so it may be offline
    rotten: bool = False  # a bit of its batches has flipped
    forgetful: bool = False  # after a crash, the producers of deleted records are no longer known
    index_rotten: bool = False  # a bit of an index has flipped; the batches are sound

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.index}"

    def broken(self, which: Property, seen: str) -> Broken:
        return Broken(which, f"{self}: {seen}")

    @property
    def expires(self) -> bool:
        """Whether retention may take records at any time."""
        topic = self.topic
        return topic.shortest_retention_ms < WEEK_MS or topic.smallest_retention_bytes < FOREVER

    def time_of(self, name: bytes) -> int:
        sent, at = self.sent[name]
        return sent.items[at].timestamp

    def key_at(self, offset: int) -> bytes:
        sent, at = self.sent[self.known[offset]]
        return sent.items[at].key or b""

    def tombstones(self) -> dict[bytes, int]:
        """Where the last tombstone of each key may have stood: it goes in its time, perhaps before it is seen."""
        found: dict[bytes, int] = {}
        for name, (sent, at) in self.sent.items():
            if sent.items[at].value is None:
                key = sent.items[at].key or b""
                found[key] = max(found.get(key, -1), *(self.places.get(name) or (FOREVER,)))
        return found

    # What comes in.

    def sends(self, batch: Sent) -> None:
        batch.attempts += 1
        if batch.attempts == 1:
            for at, name in enumerate(batch.names):
                self.sent[name] = (batch, at)

    def acknowledged(self, batch: Sent, offset: int, now_ms: float) -> None:
        """The node promised that the batch stands at `offset`."""
        batch.acked_offset = offset
        if offset < 0:  # a duplicate of which the node no longer knows where it stands
            return
        for at, name in enumerate(batch.names):
            self.learn(offset + at, name)
        end = offset + len(batch.names)
        self.acked = max(self.acked, end)
        self.high = max(self.high, end)
        self.safe = max(self.safe, end - self.topic.flush_messages + 1)
        self.acks.append((now_ms, end))

    def read(self, view: memoryview, now_ms: int) -> list[Seen]:
        """Check the batches that a fetch brought; the last one may be cut off."""
        found: list[Seen] = []
        position = 0
        while position + 12 <= len(view):
            size = 12 + int.from_bytes(view[position + 8 : position + 12], signed=True)
            if size > len(view) - position and size > 12:
                if (self.rotten or self.index_rotten) and not found:
                    raise WireError("a batch that never ends")
                break
            try:
                batch = Batch(view, position)
                batch.verify()
                found.append(self.check(batch, list(records(batch)), now_ms))
            except WireError as error:
                if not (self.rotten or self.index_rotten):
                    raise self.broken(Property.AS_SENT, f"{error}") from None
                raise
            position += batch.size
        return found

    def check(self, batch: Batch, items: list[Record], now_ms: int) -> Seen:
        names = [name_of(item) for item in items]
        offsets = [item.offset for item in items]
        for offset, name, item in zip(offsets, names, items, strict=True):
            sent = self.sent.get(name)
            if sent is None:
                raise self.broken(Property.NEVER_INVENTED, f"{name!r} at offset {offset}")
            self.compare(sent[0].items[sent[1]], item, sent[0], now_ms)
            self.learn(offset, name)
        if not self.topic.compacted:
            self.is_whole(batch, names)
        return Seen(batch.base_offset, batch.last_offset, batch.size, offsets, names)

    def compare(self, ours: Record, theirs: Record, sent: Sent, now_ms: int) -> None:
        same = ours.key == theirs.key and ours.value == theirs.value and ours.headers == theirs.headers
        if self.topic.append_time:
            timely = sent.sent_ms <= theirs.timestamp <= now_ms
        else:
            timely = ours.timestamp == theirs.timestamp
        if not (same and timely):
            raise self.broken(Property.AS_SENT, f"sent {ours}, read {theirs} at {now_ms}")

    def is_whole(self, batch: Batch, names: Sequence[bytes]) -> None:
        sent, at = self.sent[names[0]]
        if at or names != sent.names or batch.last_offset - batch.base_offset + 1 != len(names):
            raise self.broken(Property.AS_SENT, f"sent as one batch {sent.names}, read as {names}")

    def learn(self, offset: int, name: bytes) -> None:
        """`name` stands at `offset`; is that possible?"""
        before = self.known.get(offset)
        if before == name:
            return
        if before is not None:
            raise self.broken(Property.OFFSET_KEEPS_RECORD, f"offset {offset} held {before!r}, now {name!r}")
        sent, _ = self.sent[name]
        places = self.places.setdefault(name, set())
        live = [place for place in places if place >= self.start or not self.forgetful]
        if sent.session.idempotent and live:
            raise self.broken(Property.ONCE, f"{name!r} stands at {sorted(places)} and at {offset}")
        if len(places) >= sent.attempts:
            seen = f"{name!r} was sent {sent.attempts} times, and stands at {sorted(places)} and {offset}"
            raise self.broken(Property.AT_MOST_AS_SENT, seen)
        places.add(offset)
        self.known[offset] = name
        self.high = max(self.high, offset + 1)

    # What may go.

    def lose_from(self, end: int) -> list[Any]:
        """Power was lost and the log ends at `end` now. Returns the sessions of which acknowledged records are gone."""
        self.high = self.acked = self.safe = end
        self.start = min(self.start, end)
        self.acks.clear()
        return self.lose([offset for offset in self.known if offset >= end])

    def lose(self, offsets: list[int]) -> list[Any]:
        sessions: dict[int, Any] = {}
        for offset in offsets:
            name = self.known.pop(offset)
            self.places[name].discard(offset)
            session = self.sent[name][0].session
            sessions[id(session)] = session
        return list(sessions.values())
