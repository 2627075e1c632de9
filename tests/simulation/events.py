"""Virtual time: what happens when, in an order that the seed alone decides, and a trace of it."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from hashlib import blake2b

EPOCH_MS = 1_700_000_000_000
LOOK_MS = 0.02
"""Each look at the monotonic clock costs a little, so that work which is bounded by time comes to an end."""
KEPT = 40


class Clock:
    """The node's clock."""

    def __init__(self) -> None:
        self.now = 0.0

    def wall_ms(self) -> int:
        return EPOCH_MS + int(self.now)

    def monotonic_ms(self) -> float:
        self.now += LOOK_MS
        return self.now


class Events:
    """The queue of what is to happen. Nothing happens between two events."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.serial = 0
        self.digest = blake2b(digest_size=8)
        self.recent: deque[str] = deque(maxlen=KEPT)
        self.verbose: Callable[[str], None] | None = None

    def after(self, delay_ms: float, event: Callable[[], None]) -> None:
        self.at(self.clock.now + delay_ms, event)

    def at(self, time_ms: float, event: Callable[[], None]) -> None:
        self.serial += 1
        heapq.heappush(self.queue, (time_ms, self.serial, event))

    def run(self, until_ms: float) -> None:
        """Let everything happen that is due by then."""
        queue, clock = self.queue, self.clock
        while queue and queue[0][0] <= until_ms:
            time_ms, _, event = heapq.heappop(queue)
            clock.now = max(clock.now, time_ms)
            event()

    def note(self, text: str) -> None:
        """One line of the trace, and of the hash by which two runs are compared."""
        line = f"{self.clock.now:10.2f} {text}"
        self.digest.update(line.encode())
        self.recent.append(line)
        if self.verbose is not None:
            self.verbose(line)
