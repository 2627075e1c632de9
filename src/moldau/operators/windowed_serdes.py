"""Windowed keys as bytes, in Kafka's formats: `key, start` of time windows, `key, end, start` of sessions.

The end of a time window is not written: the reader must know the size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import Struct

from moldau.serdes.context import Context, Serde, SerdeError

from .coders import Write
from .windowed import Windowed, window_of

START = Struct(">q")
START_AND_SEQUENCE = Struct(">qi")
END_AND_START = Struct(">qq")


@dataclass(frozen=True, slots=True)
class TimeWindowedSerde:
    """The serde of keys in time windows; for `changelog`, with a sequence number after the start."""

    inner: Serde | None
    size_ms: int
    changelog: bool = False

    def with_inner(self, inner: Serde) -> TimeWindowedSerde:
        return replace(self, inner=inner)

    def to_bytes(self, value: Windowed | None, context: Context) -> bytes | None:
        assert self.inner is not None
        if value is None:
            return None
        return (self.inner.to_bytes(value.key, context) or b"") + self.suffix(value.start)

    def short(self, inner: Write) -> Write:
        """As `to_bytes`, where the context does not matter."""
        suffix = self.suffix
        return lambda value: None if value is None else (inner(value.key) or b"") + suffix(value.start)

    @property
    def suffix(self) -> Callable[[int], bytes]:
        return first_of_window if self.changelog else START.pack

    def from_bytes(self, data: bytes | None, context: Context) -> Windowed | None:
        assert self.inner is not None
        if not data:
            return None
        suffix = START_AND_SEQUENCE if self.changelog else START
        split = split_at(data, suffix)
        start = suffix.unpack_from(data, split)[0]
        return Windowed(self.inner.from_bytes(data[:split], context), start, window_of(start, self.size_ms).end)


@dataclass(frozen=True, slots=True)
class SessionWindowedSerde:
    inner: Serde | None

    def with_inner(self, inner: Serde) -> SessionWindowedSerde:
        return replace(self, inner=inner)

    def to_bytes(self, value: Windowed | None, context: Context) -> bytes | None:
        assert self.inner is not None
        if value is None:
            return None
        return (self.inner.to_bytes(value.key, context) or b"") + END_AND_START.pack(value.end, value.start)

    def short(self, inner: Write) -> Write:
        """As `to_bytes`, where the context does not matter."""
        pack = END_AND_START.pack
        return lambda value: None if value is None else (inner(value.key) or b"") + pack(value.end, value.start)

    def from_bytes(self, data: bytes | None, context: Context) -> Windowed | None:
        assert self.inner is not None
        if not data:
            return None
        split = split_at(data, END_AND_START)
        end, start = END_AND_START.unpack_from(data, split)
        return Windowed(self.inner.from_bytes(data[:split], context), start, end)


def first_of_window(start: int) -> bytes:
    return START_AND_SEQUENCE.pack(start, 0)


def split_at(data: bytes, suffix: Struct) -> int:
    if len(data) < suffix.size:
        raise SerdeError(f"{len(data)} bytes are too few for a windowed key, which ends in {suffix.size} bytes of time")
    return len(data) - suffix.size
