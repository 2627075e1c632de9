"""Which segments of a log are to go: those before its start offset, those beyond its size, those past their time.

The three rules are applied in this order, each to what the one before has left, and each to the oldest segments until
one must stay. No segment with an offset at or beyond the high watermark goes, so that the log start offset never passes
it. The active segment may go too: a new one is begun first, and so `retention.ms` empties a log that is no longer
written. A log that is only compacted obeys the start offset alone.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from moldau.log.checkpoints import Damaged
from moldau.log.config import LogConfig
from moldau.log.log import Log
from moldau.log.segment import Segment


class Measured(Protocol):
    """A segment, as far as retention looks at it."""

    @property
    def base_offset(self) -> int: ...
    @property
    def largest_timestamp(self) -> int: ...
    def look(self) -> int: ...


S = TypeVar("S", bound=Measured)


class Bounds(NamedTuple):
    """Where a log begins and ends."""

    start_offset: int
    end_offset: int
    high_watermark: int


Breach = Callable[[Measured, Measured | None], str | None]


def retain(log: Log, now_ms: int) -> list[tuple[Segment, str]]:
    """Delete what is to go, and say what it was and why."""
    log.wake()
    bounds = Bounds(log.start_offset, log.end_offset, log.high_watermark)
    try:
        gone = expired(log.segments.items, bounds, log.config, now_ms)
    except (Damaged, OSError) as error:
        raise log.fail(f"{log.path} cannot be read: {error}") from error
    log.delete_segments([segment for segment, _ in gone], now_ms)
    return gone


def expired(segments: Sequence[S], bounds: Bounds, config: LogConfig, now_ms: int) -> list[tuple[S, str]]:
    """Return the oldest segments that are to go, each with its reason; perhaps all of them."""
    gone: list[tuple[S, str]] = []
    for rule in _rules(config):
        left = segments[len(gone) :]
        gone += _oldest(left, bounds, rule(left, bounds, config, now_ms))
    return gone


Rule = Callable[[Sequence[Measured], Bounds, LogConfig, int], Breach]


def _rules(config: LogConfig) -> tuple[Rule, ...]:
    if "delete" in config.cleanup_policy:
        return (_before_start, _beyond_size, _past_time)
    return (_before_start,) if config.compacted else ()


def _oldest(segments: Sequence[S], bounds: Bounds, breach: Breach) -> list[tuple[S, str]]:
    gone: list[tuple[S, str]] = []
    for at, segment in enumerate(segments):
        following = segments[at + 1] if at + 1 < len(segments) else None
        upper = following.base_offset if following else bounds.end_offset
        is_empty_tail = following is None and segment.look() == 0
        if bounds.high_watermark < upper or is_empty_tail:
            break
        reason = breach(segment, following)
        if reason is None:
            break
        gone.append((segment, reason))
    return gone


def _before_start(_segments: Sequence[Measured], bounds: Bounds, _config: LogConfig, _now_ms: int) -> Breach:
    def breach(_: Measured, following: Measured | None) -> str | None:
        if following is None or following.base_offset > bounds.start_offset:
            return None
        return f"it ends before the log start offset {bounds.start_offset}"

    return breach


def _beyond_size(segments: Sequence[Measured], _bounds: Bounds, config: LogConfig, _now_ms: int) -> Breach:
    limit = config.retention_bytes
    surplus = sum(segment.look() for segment in segments) - limit if limit >= 0 else -1

    def breach(segment: Measured, _: Measured | None) -> str | None:
        nonlocal surplus
        if surplus - segment.look() < 0:
            return None
        surplus -= segment.look()
        return f"without it the log still has the {limit} bytes of retention.bytes"

    return breach


def _past_time(_segments: Sequence[Measured], _bounds: Bounds, config: LogConfig, now_ms: int) -> Breach:
    limit = config.retention_ms

    def breach(segment: Measured, _: Measured | None) -> str | None:
        if limit < 0 or now_ms - segment.largest_timestamp <= limit:
            return None
        return f"its newest record, of {segment.largest_timestamp}, is older than the {limit} ms of retention.ms"

    return breach
