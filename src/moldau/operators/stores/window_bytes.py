"""Windows as bytes: the keys under which their values are kept, the order in which they are read, and how they expire.

There are two orders, as in Kafka:
- by key: `segment, key, start, sequence`. The order of a persistent store: within a time segment all windows of a key
  are together. Windows of many keys are read segment by segment, key by key.
- by time: `start, key, sequence`, with an index `key, start, sequence` if windows of one key are looked up. The order
  of stores in memory, and of those that emit windows when they close.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from .ordered import OrderedBytes, remove_range
from .segments import DATA, INDEX, Segments, time_key

SUFFIX = Struct(">qi")  # start, sequence
SEQUENCE = Struct(">i")
LAST_SEQUENCE = 2**31 - 1  # of which -1 has the bytes that come last of all

Entry = tuple[bytes, int, bytes]  # key, start of the window, value


class ByKey:
    """Windows of a persistent store."""

    __slots__ = ("_first", "_key", "_last", "_place", "_prefix", "_start", "content", "segments")

    def __init__(self, content: OrderedBytes, segments: Segments) -> None:
        self.content, self.segments = content, segments
        self._first, self._last, self._prefix = 0, -1, b""  # the segment that was last used, most often the next too
        self._key, self._start, self._place = b"", -1, b""  # the window that was last looked for, without duplicates

    def around(self, start: int) -> tuple[bytes, bytes]:
        """Return the bytes before and after the key, for windows that start then."""
        return DATA + time_key(self.segments.of(start)), SUFFIX.pack(start, 0)

    def place(self, key: bytes, start: int, sequence: int) -> bytes:
        if key is self._key and start == self._start and not sequence:
            return self._place
        if not self._first <= start <= self._last:
            segment, interval = self.segments.of(start), self.segments.interval
            self._first, self._last = segment * interval, (segment + 1) * interval - 1
            self._prefix = DATA + time_key(segment)
        place = self._prefix + key + SUFFIX.pack(start, sequence)
        if not sequence:
            self._key, self._start, self._place = key, start, place
        return place

    def put(self, key: bytes, start: int, sequence: int, value: bytes | None) -> None:
        self.content.put(self.place(key, start, sequence), value)

    def of_key(self, key: bytes, first: int, last: int, reverse: bool) -> Iterator[tuple[int, bytes]]:
        """Yield the windows of one key. Other keys among them have places of another length."""
        low, high = key + SUFFIX.pack(first, 0), key + SUFFIX.pack(last, LAST_SEQUENCE)
        length = len(key) + 21
        spans = self.segments.between(first, last)
        for segment in reversed(spans) if reverse else spans:
            prefix = DATA + time_key(segment)
            for place, value in self.content.range(prefix + low, prefix + high, reverse):
                if len(place) == length:
                    yield SUFFIX.unpack_from(place, length - 12)[0], value

    def of_keys(
        self, lowest: bytes | None, highest: bytes | None, first: int, last: int, reverse: bool
    ) -> Iterator[Entry]:
        spans = self.segments.between(first, last)
        for segment in reversed(spans) if reverse else spans:
            prefix = DATA + time_key(segment)
            end = DATA + time_key(segment + 1) if highest is None else prefix + above(highest, SUFFIX.pack(last, -1))
            for place, value in self.content.range(prefix + (lowest or b""), end, reverse):
                key, start = place[9:-12], SUFFIX.unpack_from(place, len(place) - 12)[0]
                if within(key, lowest, highest) and first <= start <= last:
                    yield key, start, value

    def expire(self) -> None:
        remove_range(self.content, DATA, DATA + time_key(self.segments.lowest))


class ByTime:
    """Windows of a store in memory, or of one that emits them as they close."""

    __slots__ = ("content", "indexed", "segments")

    def __init__(self, content: OrderedBytes, segments: Segments, indexed: bool) -> None:
        self.content, self.segments, self.indexed = content, segments, indexed

    def place(self, key: bytes, start: int, sequence: int) -> bytes:
        return DATA + time_key(start) + key + SEQUENCE.pack(sequence)

    def put(self, key: bytes, start: int, sequence: int, value: bytes | None) -> None:
        self.content.put(self.place(key, start, sequence), value)
        if self.indexed:
            self.content.put(INDEX + key + SUFFIX.pack(start, sequence), None if value is None else b"")

    def of_key(self, key: bytes, first: int, last: int, reverse: bool) -> Iterator[tuple[int, bytes]]:
        if not self.indexed:
            yield from ((start, value) for _, start, value in self.of_keys(key, key, first, last, reverse))
            return
        low, high = INDEX + key + SUFFIX.pack(first, 0), INDEX + key + SUFFIX.pack(last, LAST_SEQUENCE)
        for place, _ in self.content.range(low, high, reverse):
            if len(place) == len(low):
                start, sequence = SUFFIX.unpack_from(place, len(place) - 12)
                value = self.content.get(self.place(key, start, sequence))
                if value is not None:
                    yield start, value

    def of_keys(
        self, lowest: bytes | None, highest: bytes | None, first: int, last: int, reverse: bool
    ) -> Iterator[Entry]:
        end = DATA + time_key(min(last, self.segments.latest) + 1)
        for place, value in self.content.range(DATA + time_key(first), end, reverse):
            key = place[9:-4]
            if within(key, lowest, highest):
                yield key, int.from_bytes(place[1:9], "big"), value

    def expire(self) -> None:
        end = DATA + time_key(self.segments.lowest * self.segments.interval)
        for place, _ in self.content.range(DATA, end):
            self.content.put(place, None)
            if self.indexed:
                self.content.put(INDEX + place[9:-4] + place[1:9] + place[-4:], None)


def above(highest: bytes, suffix: bytes) -> bytes:
    """Return the last place that a key up to this one may have, as a shorter key is followed by its suffix earlier."""
    return max(highest[:length] + suffix for length in range(len(highest) + 1))


def within(key: bytes, lowest: bytes | None, highest: bytes | None) -> bool:
    return (lowest is None or key >= lowest) and (highest is None or key <= highest)
