"""A key in a window: what windowed aggregates emit.

Kafka has three kinds of windows: the end of a time window does not belong to it, that of sliding and session windows
does, and an unlimited window has no end. Here a window is a start and an end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

LAST_TIME = 2**63 - 1  # the end of a window without an end, and the latest time there is


class Window(NamedTuple):
    start: int
    end: int


class Windowed(NamedTuple):
    """A key in a window. `str()` returns Kafka's form: [key@start/end]."""

    key: Any
    start: int
    end: int

    @property
    def window(self) -> Window:
        return Window(self.start, self.end)

    def __str__(self) -> str:
        return f"[{self.key}@{self.start}/{self.end}]"


def window_of(start: int, size: int) -> Window:
    """Return a window by its start and size, for keys without an end."""
    return Window(start, min(start + size, LAST_TIME))
