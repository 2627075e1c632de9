"""Buffers in the order of time: what `suppress` holds back, and what a stream-table join with grace waits with.

A buffered record carries where it came from (topic, partition, offset), its timestamp and its headers: it is forwarded
as if it came now from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ..record import Headers, Raw, Record
from .ordered import OrderedBytes
from .scalars import Scalars
from .segments import DATA, INDEX, INT64, time_key
from .spec import OnChange

NUMBERS = Struct(">qqi")  # timestamp, offset, partition
LENGTH = Struct(">i")
SEQUENCE = Struct(">i")


class Origin(NamedTuple):
    """Where a buffered record came from; topic None for one that a punctuator made."""

    timestamp: int
    offset: int
    partition: int
    topic: str | None
    headers: Headers

    @classmethod
    def of(cls, source: Raw | None, record: Record) -> Origin:
        if source is None:
            return cls(record.timestamp, -1, -1, None, record.headers)
        return cls(record.timestamp, source.offset, source.partition, source.topic, record.headers)

    def source(self) -> Raw | None:
        if self.topic is None:
            return None
        return Raw(self.topic, self.partition, self.offset, None, None, self.timestamp, self.headers)

    def size(self) -> int:
        """What Kafka reckons it at: it counts for buffers that are bound by bytes."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return 20 + len(self.topic or "") + headers


class Held(NamedTuple):
    """A change that is held back: its values, and the value that was last let through (prior)."""

    key: bytes
    prior: bytes | None
    old: bytes | None
    new: bytes | None
    origin: Origin

    def size(self) -> int:
        old = 0 if self.old == self.prior else len(self.old or b"")
        return 8 + len(self.key) + len(self.prior or b"") + old + len(self.new or b"") + self.origin.size()


def optional(data: bytes | None) -> bytes:
    return LENGTH.pack(-1) if data is None else LENGTH.pack(len(data)) + data


def take(data: bytes, at: int) -> tuple[bytes | None, int]:
    length = LENGTH.unpack_from(data, at)[0]
    at += 4
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def pack_origin(origin: Origin) -> bytes:
    parts = [NUMBERS.pack(origin.timestamp, origin.offset, origin.partition)]
    parts.append(optional(None if origin.topic is None else origin.topic.encode()))
    parts.append(LENGTH.pack(len(origin.headers)))
    for name, value in origin.headers:
        parts += (optional(name.encode()), optional(value))
    return b"".join(parts)


def unpack_origin(data: bytes) -> tuple[Origin, int]:
    timestamp, offset, partition = NUMBERS.unpack_from(data)
    topic, at = take(data, NUMBERS.size)
    count = LENGTH.unpack_from(data, at)[0]
    at += 4
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = take(data, at)
        value, at = take(data, at)
        headers.append(((name or b"").decode(), value))
    return Origin(timestamp, offset, partition, None if topic is None else topic.decode(), tuple(headers)), at


class SuppressBuffer:
    """Changes that are held back, at most one a key: `1, time, key` -> change, `2, key` -> its time.

    The time of a key is that of its first change since it was let through; later ones take its place.
    """

    __slots__ = ("content", "count", "scalars", "size")

    def __init__(self, content: OrderedBytes) -> None:
        self.content = content
        self.scalars = Scalars(content)
        self.count = self.scalars.get("count", 0)
        self.size = self.scalars.get("size", 0)

    def put(self, time: int, key: bytes, old: bytes | None, new: bytes | None, origin: Origin) -> None:
        since = self.content.get(INDEX + key)
        if since is None:
            self.content.put(INDEX + key, time_key(time))
            place = DATA + time_key(time) + key
            held = Held(key, old, old, new, origin)
            self.resize(1, held.size())
        else:
            place = DATA + since + key
            before = self.read(key, place)
            held = Held(key, before.prior, old, new, origin)
            self.resize(0, held.size() - before.size())
        self.content.put(place, write(held))

    def prior(self, key: bytes) -> tuple[bool, bytes | None]:
        """Whether a key is held back, and the value that was last let through."""
        since = self.content.get(INDEX + key)
        return (False, None) if since is None else (True, self.read(key, DATA + since + key).prior)

    def due(self, time: int) -> Iterator[Held]:
        """Changes that have been held back since a time, the oldest first."""
        if time < 0:
            return
        end = DATA + time_key(time + 1)
        for place, data in self.content.range(DATA, end):
            if place != end:  # an empty key
                yield unwrite(place[9:], data)

    def oldest(self) -> Held:
        place, data = next(self.content.range(DATA, INDEX))
        return unwrite(place[9:], data)

    def remove(self, held: Held) -> None:
        since = self.content.get(INDEX + held.key)
        assert since is not None
        self.content.put(DATA + since + held.key, None)
        self.content.put(INDEX + held.key, None)
        self.resize(-1, -held.size())

    def read(self, key: bytes, place: bytes) -> Held:
        data = self.content.get(place)
        assert data is not None
        return unwrite(key, data)

    def raw(self, key: bytes) -> bytes | None:
        """What the changelog says of a key: its change, and the time since which it is held back."""
        since = self.content.get(INDEX + key)
        data = None if since is None else self.content.get(DATA + since + key)
        return None if since is None or data is None else data + since

    def resize(self, records: int, size: int) -> None:
        if records:
            self.count += records
            self.scalars.put("count", self.count)
        if size:
            self.size += size
            self.scalars.put("size", self.size)


def write(held: Held) -> bytes:
    return pack_origin(held.origin) + optional(held.prior) + optional(held.old) + optional(held.new)


def unwrite(key: bytes, data: bytes) -> Held:
    origin, at = unpack_origin(data)
    prior, at = take(data, at)
    old, at = take(data, at)
    new, _ = take(data, at)
    return Held(key, prior, old, new, origin)


class GraceBuffer:
    """Records of a stream that wait for a table: `1, timestamp, key, sequence` -> record."""

    __slots__ = ("content", "grace", "observed", "scalars", "sequence", "tell")

    def __init__(self, content: OrderedBytes, grace: int, tell: OnChange | None) -> None:
        self.content = content
        self.tell = tell
        self.grace = grace
        self.scalars = Scalars(content)
        self.observed = self.scalars.get("observed", -1)
        self.sequence = self.scalars.get("sequence", 0)

    def put(self, key: bytes, value: bytes, origin: Origin) -> bool:
        """False if the record came too late to wait."""
        if self.observed - self.grace > origin.timestamp:
            return False
        if origin.timestamp > self.observed:
            self.observed = origin.timestamp
            self.scalars.put("observed", self.observed)
        self.sequence = (self.sequence + 1) & 0x7FFFFFFF
        self.scalars.put("sequence", self.sequence)
        place = DATA + INT64.pack(origin.timestamp) + key + SEQUENCE.pack(self.sequence)
        self.store(place, pack_origin(origin) + value, origin.timestamp)
        return True

    def due(self) -> Iterator[tuple[bytes, bytes, Origin]]:
        """Records that have waited long enough, taken out as they are handed over."""
        last = self.observed - self.grace
        if last < 0:
            return
        for place, data in self.content.range(DATA, DATA + time_key(last + 1)):
            origin, at = unpack_origin(data)
            yield place[9:-4], data[at:], origin
            self.store(place, None, origin.timestamp)

    def store(self, place: bytes, data: bytes | None, timestamp: int) -> None:
        self.content.put(place, data)
        if self.tell is not None:
            self.tell(place[1:], data, timestamp)
