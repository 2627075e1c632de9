"""Buffered records as bytes: those that `suppress` holds back, and those that wait in a stream-table join with grace.

A buffered record keeps its origin (topic, partition, offset), its timestamp and its headers, and is forwarded with
them.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from ..record import Headers, Raw, Record

NUMBERS = Struct(">qqi")  # timestamp, offset, partition
LENGTH = Struct(">i")


class Origin(NamedTuple):
    """The origin of a buffered record; topic is None for one that a punctuator made."""

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
        """Return the size that Kafka counts, for buffers that are bounded by bytes."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return 20 + len(self.topic or "") + headers


class Held(NamedTuple):
    """A change that is held back, with its values and the value that was last let through (prior)."""

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


def pack_held(held: Held) -> bytes:
    return pack_origin(held.origin) + optional(held.prior) + optional(held.old) + optional(held.new)


def unpack_held(key: bytes, data: bytes) -> Held:
    origin, at = unpack_origin(data)
    prior, at = take(data, at)
    old, at = take(data, at)
    new, _ = take(data, at)
    return Held(key, prior, old, new, origin)
