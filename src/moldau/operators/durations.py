"""Durations as people write them: "5 minutes", "30s", milliseconds as a number, timedelta."""

from __future__ import annotations

import re
from typing import Protocol, Self, runtime_checkable


@runtime_checkable
class Span(Protocol):
    """A timedelta, by its parts."""

    @property
    def days(self) -> int: ...
    @property
    def seconds(self) -> int: ...
    @property
    def microseconds(self) -> int: ...
    def __neg__(self) -> Self: ...


Duration = str | int | Span
UNITS = {
    "ms": 1, "milli": 1, "millisecond": 1, "s": 1000, "sec": 1000, "second": 1000, "m": 60_000, "min": 60_000,
    "minute": 60_000, "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000, "w": 604_800_000,
    "week": 604_800_000,
}  # fmt: skip
PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")


def milliseconds(duration: Duration, what: str = "the duration") -> int:
    """Return whole milliseconds, not negative."""
    match duration:
        case bool():
            raise ValueError(f"{what} must be a duration, not {duration}")
        case int():
            total = duration
        case Span():
            total = (duration.days * 86_400 + duration.seconds) * 1000 + duration.microseconds // 1000
        case str():
            total = parse(duration, what)
        case _:
            raise ValueError(
                f"{what} must be a duration such as '5 minutes', 300000 (ms) or timedelta, not {duration!r}"
            )
    if total < 0:
        raise ValueError(f"{what} must not be negative: {duration!r}")
    return total


def parse(text: str, what: str) -> int:
    total, position, lowered = 0.0, 0, text.lower()
    while position < len(lowered):
        part = PART.match(lowered, position)
        unit = part.group(2) if part else ""
        factor = UNITS.get(unit) or UNITS.get(unit.removesuffix("s"))
        if part is None or factor is None:
            raise ValueError(f"{what} is {text!r}: write it as '5 minutes', '30s', '1h 30m', or in milliseconds")
        total += float(part.group(1)) * factor
        position = part.end()
    if not position:
        raise ValueError(f"{what} is empty: write it as '5 minutes', '30s' or in milliseconds")
    return round(total)
