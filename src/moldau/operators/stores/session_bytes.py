"""Sessions as bytes, by key or by time, like windows in `window_bytes`. The time of a session is its end.

- by key: `segment, key, end, start`.
- by time: `end, start, key`, with an index `key, end, start`; in memory `end, key, start`, starts downwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from struct import Struct

from ..windowed import LAST_TIME
from .ordered import OrderedBytes, remove_range
from .segments import DATA, INDEX, Segments, time_key
from .window_bytes import above, within

BOUNDS = Struct(">qq")  # end, start
LATEST = BOUNDS.pack(LAST_TIME, LAST_TIME)

Entry = tuple[bytes, int, int, bytes]  # key, start, end, value


class SessionsByKey:
    """Sessions of a persistent store."""

    __slots__ = ("content", "segments")

    def __init__(self, content: OrderedBytes, segments: Segments) -> None:
        self.content, self.segments = content, segments

    def place(self, key: bytes, start: int, end: int) -> bytes:
        return DATA + time_key(self.segments.of(end)) + key + BOUNDS.pack(end, start)

    def put(self, key: bytes, start: int, end: int, value: bytes | None) -> None:
        self.content.put(self.place(key, start, end), value)

    def get(self, key: bytes, start: int, end: int) -> bytes | None:
        return self.content.get(self.place(key, start, end))

    def of_key(self, key: bytes, earliest_end: int, latest_start: int, reverse: bool) -> Iterator[Entry]:
        low, high = key + BOUNDS.pack(earliest_end, 0), key + LATEST
        length = len(key) + 25
        spans = self.segments.between(earliest_end, LAST_TIME)
        for segment in reversed(spans) if reverse else spans:
            prefix = DATA + time_key(segment)
            for place, value in self.content.range(prefix + low, prefix + high, reverse):
                if len(place) == length:
                    end, start = BOUNDS.unpack_from(place, length - 16)
                    if start <= latest_start:
                        yield key, start, end, value

    def of_keys(
        self, lowest: bytes | None, highest: bytes | None, earliest_end: int, latest_start: int, reverse: bool
    ) -> Iterator[Entry]:
        spans = self.segments.between(earliest_end, LAST_TIME)
        for segment in reversed(spans) if reverse else spans:
            prefix = DATA + time_key(segment)
            last = DATA + time_key(segment + 1) if highest is None else prefix + above(highest, LATEST)
            for place, value in self.content.range(prefix + (lowest or b""), last, reverse):
                key, (end, start) = place[9:-16], BOUNDS.unpack_from(place, len(place) - 16)
                if within(key, lowest, highest) and end >= earliest_end and start <= latest_start:
                    yield key, start, end, value

    def ended(self, first: int, last: int) -> Iterator[Entry]:
        raise NotImplementedError("sessions that end in a span of time are looked for in a store ordered by time")

    def expire(self) -> None:
        remove_range(self.content, DATA, DATA + time_key(self.segments.lowest))


def by_key(entry: Entry) -> bytes:
    return entry[0] + BOUNDS.pack(entry[2], entry[1])


class SessionsByTime:
    """Sessions of a store in memory, or of one that emits them as they close."""

    __slots__ = ("content", "in_memory", "segments")

    def __init__(self, content: OrderedBytes, segments: Segments) -> None:
        self.content, self.segments, self.in_memory = content, segments, segments.in_memory

    def place(self, key: bytes, start: int, end: int) -> bytes:
        if self.in_memory:
            return DATA + time_key(end) + key + time_key(LAST_TIME - start)
        return DATA + BOUNDS.pack(end, start) + key

    def parse(self, place: bytes) -> tuple[bytes, int, int]:
        end = int.from_bytes(place[1:9], "big")
        if self.in_memory:
            return place[9:-8], LAST_TIME - int.from_bytes(place[-8:], "big"), end
        return place[17:], int.from_bytes(place[9:17], "big"), end

    def put(self, key: bytes, start: int, end: int, value: bytes | None) -> None:
        self.content.put(self.place(key, start, end), value)
        self.content.put(self.index(key, start, end), None if value is None else b"")

    def index(self, key: bytes, start: int, end: int) -> bytes:
        """Return the key in the index. In memory, of sessions with one end the one that starts last comes first."""
        return INDEX + key + BOUNDS.pack(end, LAST_TIME - start if self.in_memory else start)

    def get(self, key: bytes, start: int, end: int) -> bytes | None:
        return self.content.get(self.place(key, start, end))

    def of_key(self, key: bytes, earliest_end: int, latest_start: int, reverse: bool) -> Iterator[Entry]:
        low, high = INDEX + key + BOUNDS.pack(earliest_end, 0), INDEX + key + LATEST
        for place, _ in self.content.range(low, high, reverse):
            if len(place) == len(low):
                end, start = BOUNDS.unpack_from(place, len(place) - 16)
                start = LAST_TIME - start if self.in_memory else start
                value = self.get(key, start, end) if start <= latest_start else None
                if value is not None:
                    yield key, start, end, value

    def of_keys(
        self, lowest: bytes | None, highest: bytes | None, earliest_end: int, latest_start: int, reverse: bool
    ) -> Iterator[Entry]:
        """Yield sessions; those of a store on disk by segment and key, as Kafka's index has them."""
        found = self.between(earliest_end, LAST_TIME, reverse)
        if not self.in_memory:
            segments = groupby(found, key=lambda entry: self.segments.of(entry[2]))
            found = (entry for _, held in segments for entry in sorted(held, key=by_key, reverse=reverse))
        for key, start, end, value in found:
            if within(key, lowest, highest) and start <= latest_start:
                yield key, start, end, value

    def ended(self, first: int, last: int) -> Iterator[Entry]:
        """Return the sessions that ended in a span of time; those on disk are found while their segment lives."""
        if self.in_memory:
            first = max(first, self.segments.observed - self.segments.retention + 1)
        return self.between(max(first, self.segments.lowest * self.segments.interval), last, False)

    def between(self, first: int, last: int, reverse: bool) -> Iterator[Entry]:
        high = DATA + time_key(min(last, self.segments.latest) + 1)
        for place, value in self.content.range(DATA + time_key(first), high, reverse):
            key, start, end = self.parse(place)
            yield key, start, end, value

    def expire(self) -> None:
        for place, _ in self.content.range(DATA, DATA + time_key(self.segments.lowest * self.segments.interval)):
            key, start, end = self.parse(place)
            self.content.put(place, None)
            self.content.put(self.index(key, start, end), None)
