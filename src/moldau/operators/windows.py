"""Windows, how long changes are held back, and when windowed results are emitted.

Spans of time are given as text ("5 minutes"), as milliseconds or as a timedelta. Without a grace, a record is late as
soon as its window is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from .durations import Duration, milliseconds
from .windowed import LAST_TIME


def grace_of(grace: Duration | None) -> int:
    return 0 if grace is None else milliseconds(grace)


def signed(span: Duration) -> int:
    """Return milliseconds, also of "-5 seconds", for joins with what is only before or only after a record."""
    if isinstance(span, str):
        text = span.strip()
        return -milliseconds(text[1:]) if text.startswith("-") else milliseconds(text)
    is_negative = span < 0 if isinstance(span, int) else span.days < 0
    return -milliseconds(-span) if is_negative else milliseconds(span)


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows of a fixed size, one after another (tumbling), or one every `advance` (hopping). They are aligned to the
    epoch; their end does not belong to them.
    """

    size_ms: int
    advance_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        if self.size_ms <= 0:
            raise ValueError("Window size (sizeMs) must be larger than zero.")
        if not 0 < self.advance_ms <= self.size_ms:
            raise ValueError(
                "Window advancement interval should be more than zero and less than window duration which is "
                f"{self.size_ms} ms, but given advancement interval is: {self.advance_ms} ms"
            )

    @classmethod
    def of(cls, size: Duration, *, advance: Duration | None = None, grace: Duration | None = None) -> Self:
        size_ms = milliseconds(size)
        return cls(size_ms, size_ms if advance is None else milliseconds(advance), grace_of(grace))

    @classmethod
    def of_size_with_no_grace(cls, size: Duration) -> Self:
        return cls.of(size)

    @classmethod
    def of_size_and_grace(cls, size: Duration, grace: Duration) -> Self:
        return cls.of(size, grace=grace)

    def advance_by(self, advance: Duration) -> Self:
        return replace(self, advance_ms=milliseconds(advance))

    def windows_for(self, timestamp: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of each window that a time falls into, the earliest first."""
        size, advance = self.size_ms, self.advance_ms
        start = max(0, timestamp - size + advance) // advance * advance
        while start <= timestamp:
            yield start, start + size
            start += advance


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """A window for each set of records that are within a time difference of each other; both ends belong to it."""

    difference_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        if self.difference_ms < 0:
            raise ValueError("Window time difference must not be negative.")

    @classmethod
    def of(cls, difference: Duration, *, grace: Duration | None = None) -> Self:
        return cls(milliseconds(difference), grace_of(grace))

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> Self:
        return cls.of(difference)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> Self:
        return cls.of(difference, grace=grace)


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Records of a key that follow each other within a gap of inactivity; both ends belong to a session."""

    gap_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        if self.gap_ms <= 0:
            raise ValueError("Gap time cannot be zero or negative.")

    @classmethod
    def of(cls, gap: Duration, *, grace: Duration | None = None) -> Self:
        return cls(milliseconds(gap), grace_of(grace))

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: Duration) -> Self:
        return cls.of(gap)

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: Duration, grace: Duration) -> Self:
        return cls.of(gap, grace=grace)


@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """One window from a start on, without an end."""

    start_ms: int = 0

    def __post_init__(self) -> None:
        if self.start_ms < 0:
            raise ValueError("Window start time (startMs) cannot be negative.")

    @classmethod
    def of(cls, start: Duration = 0) -> Self:
        return cls(milliseconds(start))

    def start_on(self, start: Duration) -> Self:
        return replace(self, start_ms=milliseconds(start))

    @property
    def size_ms(self) -> int:
        return LAST_TIME

    @property
    def grace_ms(self) -> int:
        return 0

    def windows_for(self, timestamp: int) -> Iterator[tuple[int, int]]:
        if timestamp >= self.start_ms:
            yield self.start_ms, LAST_TIME


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """How far before and after a record of the left stream a record of the right one may be. One of both may be
    negative, as long as there is a span: before=-5, after=10 joins with what comes five to ten later. With `eager`, a
    record without a match is forwarded at once, and again with each match that comes later (Kafka before KIP-633).
    """

    before_ms: int
    after_ms: int
    grace_ms: int = 0
    eager: bool = False

    def __post_init__(self) -> None:
        if self.before_ms + self.after_ms < 0:
            raise ValueError("Window interval (ie, beforeMs+afterMs) must not be negative.")

    @classmethod
    def of(
        cls,
        difference: Duration | None = None,
        *,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration | None = None,
    ) -> Self:
        around = 0 if difference is None else milliseconds(difference)
        before_ms, after_ms = (around if given is None else signed(given) for given in (before, after))
        return cls(before_ms, after_ms, grace_of(grace))

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> Self:
        return cls.of(difference)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> Self:
        return cls.of(difference, grace=grace)

    def before(self, span: Duration) -> Self:
        return replace(self, before_ms=signed(span))

    def after(self, span: Duration) -> Self:
        return replace(self, after_ms=signed(span))

    @property
    def size_ms(self) -> int:
        return self.before_ms + self.after_ms


@dataclass(frozen=True, slots=True)
class EmitStrategy:
    """When a windowed aggregate is forwarded: at each update, or once when its window closes."""

    on_close: bool = False

    @classmethod
    def on_window_close(cls) -> Self:
        return cls(on_close=True)

    @classmethod
    def on_window_update(cls) -> Self:
        return cls()


@dataclass(frozen=True, slots=True)
class Bounds:
    max_records: int = LAST_TIME
    max_bytes: int = LAST_TIME
    emit_early: bool = True  # otherwise the application ends


@dataclass(frozen=True, slots=True)
class BufferConfig:
    """The bounds of what suppress() holds back. With `strict`, results are never emitted early."""

    bounds: Bounds = field(default_factory=Bounds)
    logging: bool = True

    @classmethod
    def max_records(cls, count: int) -> Self:
        return cls(Bounds(max_records=count))

    @classmethod
    def max_bytes(cls, size: int) -> Self:
        return cls(Bounds(max_bytes=size))

    @classmethod
    def unbounded(cls) -> Self:
        return cls(Bounds(emit_early=False))

    def with_max_records(self, count: int) -> Self:
        return replace(self, bounds=replace(self.bounds, max_records=count))

    def with_max_bytes(self, size: int) -> Self:
        return replace(self, bounds=replace(self.bounds, max_bytes=size))

    def with_no_bound(self) -> Self:
        return replace(self, bounds=Bounds(emit_early=False))

    def shut_down_when_full(self) -> Self:
        return replace(self, bounds=replace(self.bounds, emit_early=False))

    def emit_early_when_full(self) -> Self:
        return replace(self, bounds=replace(self.bounds, emit_early=True))

    def with_logging_disabled(self) -> Self:
        return replace(self, logging=False)

    def with_logging_enabled(self) -> Self:
        return replace(self, logging=True)

    @property
    def strict(self) -> bool:
        return not self.bounds.emit_early


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Until when changes are held back. Without `wait_ms` it is until windows close."""

    buffer: BufferConfig
    wait_ms: int | None = None
    name: str | None = None

    @classmethod
    def until_window_closes(cls, buffer: BufferConfig | None = None, *, name: str | None = None) -> Self:
        """Emit the final result of each window, once. The buffer must never emit early."""
        chosen = BufferConfig.unbounded() if buffer is None else buffer
        if not chosen.strict:
            raise ValueError(
                "until_window_closes() must not emit early: use BufferConfig.unbounded(), or add shut_down_when_full()"
            )
        return cls(chosen, None, name)

    @classmethod
    def until_time_limit(cls, wait: Duration, buffer: BufferConfig | None = None, *, name: str | None = None) -> Self:
        """Emit the last change of a key some time after its first one."""
        return cls(BufferConfig.unbounded() if buffer is None else buffer, milliseconds(wait), name)

    def with_name(self, name: str) -> Self:
        return replace(self, name=name)
