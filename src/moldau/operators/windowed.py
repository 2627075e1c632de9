"""A key in a window: what windowed aggregates emit.

Kafka has three kinds of windows that differ in whether their end belongs to them: that of a time window does not, those
of sliding and session windows do, and an unlimited window has no end. Here a window is a start and an end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

LAST_TIME = 2**63 - 1  # the end of a window without an end, and the latest time there is


class Window(NamedTuple):
    start: int
    end: int


class Windowed(NamedTuple):
    """`str()` of it is Kafka's form: [key@start/end]."""

    key: Any
    start: int
    end: int

    @property
    def window(self) -> Window:
        return Window(self.start, self.end)

    def __str__(self) -> str:
        return f"[{self.key}@{self.start}/{self.end}]"


def window_of(start: int, size: int) -> Window:
    """A window by its start and size, as it is read back from a key that has no end in it."""
    return Window(start, min(start + size, LAST_TIME))
