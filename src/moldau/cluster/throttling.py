"""How fast replicas may be copied that are not in sync (KIP-73): some bytes a second, for all of them together.

What is copied is counted as a debt, and the debt is paid with time. While there is one, nobody more is served: so the
average is the rate, whatever the size of a single answer. Replicas in sync are never held back, or they would leave the
ISR. They are counted, too: an answer that brings a few bytes for them is followed at once by the next request, so a
debt that is soon paid must not hold back the others, or their turn would never come while producers write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

UNLIMITED = 2**63 - 1  # the default of the rates
GRACE_MS = 100.0  # a debt that is paid within this time holds back nobody
LONGEST_MS = 1000.0  # after which one looks again: the rate may be another by then

Key = tuple[bytes | str, int]  # topic by its id or its name, and number


@dataclass(slots=True)
class Throttle:
    """One side of replication on a broker: what it sends as a leader, or what it receives as a follower."""

    rate: Callable[[], int]  # bytes a second, as it is set now
    covers: Callable[[Key], bool]  # whether a replica is one of those that are slowed down
    debt: float = 0.0
    counted_ms: float = 0.0

    def is_on(self) -> bool:
        return self.rate() < UNLIMITED

    def holds(self, key: Key, now_ms: float) -> bool:
        """Tell whether a replica that is not in sync has to wait."""
        return self.is_on() and self._due(now_ms) > 0 and self.covers(key)

    def count(self, key: Key, size: int, now_ms: float) -> None:
        """Note what was copied of a replica, in sync or not."""
        if size and self.is_on() and self.covers(key):
            self.debt = self._debt(now_ms) + size

    def free_ms(self, now_ms: float) -> float:
        """Return when to ask again."""
        rate = self.rate()
        return now_ms + (min(LONGEST_MS, 1000 * self._due(now_ms) / rate) if rate else LONGEST_MS)

    def _due(self, now_ms: float) -> float:
        """Return what has to be paid before anybody is served."""
        return max(0.0, self._debt(now_ms) - self.rate() * GRACE_MS / 1000)

    def _debt(self, now_ms: float) -> float:
        self.debt = max(0.0, self.debt - self.rate() * (now_ms - self.counted_ms) / 1000)
        self.counted_ms = now_ms
        return self.debt


def is_listed(replicas: str, index: int, broker: int) -> bool:
    """Tell whether a setting like `0:1,3:2` (partition and broker), or `*`, names a replica."""
    return replicas.strip() == "*" or f"{index}:{broker}" in (one.strip() for one in replicas.split(","))
