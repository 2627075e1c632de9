"""Deadlines, and the pauses between tries."""

from __future__ import annotations

import random
import time


class Deadline:
    """A point in monotonic time."""

    __slots__ = ("at",)

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Return the seconds that are left, at least 0."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self.at

    def within(self, seconds: float) -> Deadline:
        """Return the earlier of this deadline and one in so many seconds."""
        sooner = Deadline(seconds)
        return sooner if sooner.at < self.at else self


def pause_s(attempt: int, first_ms: int, most_ms: int) -> float:
    """Return the pause after a failed attempt (0 is the first): doubled each time, a fifth more or less at random.

    Otherwise clients that failed together would come back together (KIP-580).
    """
    doubled = min(first_ms << min(attempt, 30), most_ms) / 1000
    return doubled * random.uniform(0.8, 1.2)
