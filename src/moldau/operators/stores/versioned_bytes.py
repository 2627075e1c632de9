"""Versions of values by key, as bytes: what was valid at a time, within a history retention.

A version is valid from its timestamp until that of the next one. The latest is kept apart and never expires; older ones
expire when they have been invalid for longer than the history retention. A put that is older than the retention (by the
times that were put) is refused. A tombstone is kept as the end of the version before it or, if there is none, as a
version of no length. One that replaces the latest version at the same time leaves no trace: an older put may then
become the latest. Kafka keeps versions in segments, with the same visible result: also that a look-up at a time before
the retention only finds a latest version that is older still.

Keys: `1, key` the latest version; `2, length of key, key, timestamp` an older one with the time until which it was
valid; `3, segment, key` says that a version of the key ceased to be valid in that segment of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ..windowed import LAST_TIME
from .ordered import OrderedBytes
from .scalars import Scalars
from .segments import DATA, INDEX, NO_TIME, divide, time_key

EXPIRY = b"\x03"
VERSION = Struct(">qq?")  # timestamp, valid to (for the latest: none), whether it has a value
LENGTH = Struct(">i")
UNDEFINED = -1  # "valid to" of a latest version
NOT_PUT = -(2**63)


class Version(NamedTuple):
    """A value with the time from which, and the time until which it is valid; None where that is not known yet."""

    value: bytes | None
    timestamp: int
    valid_to: int | None

    @property
    def until(self) -> int:
        return LAST_TIME if self.valid_to is None else self.valid_to


def shortest_segment(retention: int) -> int:
    """Return the length of segments: the longer the retention, the smaller the part of it."""
    for limit, parts, shortest in ((60_000, 3, 2_000), (300_000, 5, 20_000), (3_600_000, 12, 60_000)):
        if retention <= limit:
            return max(retention // parts, shortest)
    return max(retention // 24, 300_000)


class VersionedBytes:
    __slots__ = ("content", "interval", "observed", "retention", "scalars", "swept")

    def __init__(self, content: OrderedBytes, retention: int, interval: int | None = None) -> None:
        self.content = content
        self.scalars = Scalars(content)
        self.retention = retention
        self.interval = interval or shortest_segment(retention)
        self.observed = self.scalars.get("observed", NO_TIME)
        self.swept = divide(self.observed - retention, self.interval)

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Put a version; return until when it is valid: UNDEFINED if it is the latest, NOT_PUT if it is too old."""
        if timestamp < self.observed - self.retention:
            return NOT_PUT
        if timestamp > self.observed:
            self.observe(timestamp)
        latest = self.get(key)
        if latest is not None and timestamp >= latest.timestamp:
            if timestamp > latest.timestamp:
                self.keep(key, Version(latest.value, latest.timestamp, timestamp))
            self.content.put(DATA + key, None if value is None else pack(Version(value, timestamp, None)))
            return UNDEFINED
        return self.insert(key, value, timestamp, latest)

    def insert(self, key: bytes, value: bytes | None, timestamp: int, latest: Version | None) -> int:
        """Put a version that is older than the latest, or the first one."""
        before = next(self.history(key, 0, timestamp, reverse=True), None)
        if before is not None and before.until > timestamp:
            if before.timestamp < timestamp:
                self.keep(key, before._replace(valid_to=timestamp))
            self.keep(key, Version(value, timestamp, before.until))
            return before.until
        after = next(self.history(key, timestamp + 1, LAST_TIME), latest)
        if after is not None:
            self.keep(key, Version(value, timestamp, after.timestamp))
            return after.timestamp
        if value is not None:
            self.content.put(DATA + key, pack(Version(value, timestamp, None)))
        elif before is None or before.until != timestamp:
            self.keep(key, Version(None, timestamp, timestamp))
        return UNDEFINED

    def get(self, key: bytes) -> Version | None:
        found = self.content.get(DATA + key)
        return None if found is None else unpack(found)

    def latest(self) -> Iterator[tuple[bytes, Version]]:
        """Yield the latest version of every key."""
        for place, found in self.content.range(DATA, INDEX):
            if place != INDEX:
                yield place[1:], unpack(found)

    def as_of(self, key: bytes, time: int) -> Version | None:
        latest = self.get(key)
        if latest is not None and latest.timestamp <= time:
            return latest
        if time < self.observed - self.retention:
            return None
        found = next(self.history(key, 0, time, reverse=True), None)
        return None if found is None or found.value is None or found.until <= time else found

    def between(self, key: bytes, first: int, last: int, reverse: bool = False) -> Iterator[Version]:
        """Yield the versions with values that were valid at some time of a span."""
        latest = self.get(key)
        newest = [latest] if latest is not None and latest.timestamp <= last else []
        kept = last >= self.observed - self.retention
        older = self.history(key, 0, last, reverse) if kept else iter(())
        seen = (version for version in older if version.value is not None and version.until > first)
        yield from (*newest, *seen) if reverse else (*seen, *newest)

    def history(self, key: bytes, first: int, last: int, reverse: bool = False) -> Iterator[Version]:
        """Yield the older versions whose timestamp is in a span."""
        prefix = history_of(key)
        for _, value in self.content.range(prefix + time_key(first), prefix + time_key(last), reverse):
            yield unpack(value)

    def keep(self, key: bytes, version: Version) -> None:
        self.content.put(history_of(key) + time_key(version.timestamp), pack(version))
        self.content.put(EXPIRY + time_key(divide(version.until, self.interval)) + key, b"")

    def observe(self, time: int) -> None:
        self.observed = time
        self.scalars.put("observed", time)
        lowest = divide(time - self.retention, self.interval)
        if lowest > self.swept:
            self.swept = lowest
            for place, _ in self.content.range(EXPIRY, EXPIRY + time_key(lowest)):
                self.sweep(place[9:])
                self.content.put(place, None)

    def sweep(self, key: bytes) -> None:
        """Remove what ceased to be valid before the retention."""
        oldest = self.observed - self.retention
        for version in self.history(key, 0, oldest):
            if version.until < oldest:
                self.content.put(history_of(key) + time_key(version.timestamp), None)


def history_of(key: bytes) -> bytes:
    return INDEX + LENGTH.pack(len(key)) + key


def pack(version: Version) -> bytes:
    valid_to = UNDEFINED if version.valid_to is None else version.valid_to
    return VERSION.pack(version.timestamp, valid_to, version.value is not None) + (version.value or b"")


def unpack(data: bytes) -> Version:
    timestamp, valid_to, is_there = VERSION.unpack_from(data)
    return Version(data[17:] if is_there else None, timestamp, None if valid_to == UNDEFINED else valid_to)
