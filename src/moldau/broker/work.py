"""Long work in small steps: a generator that yields BUSY after each step, or IDLE while it waits for something.

The node gives such work a slice of time in each tick, so that no request waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

BUSY, IDLE = True, False

Work = Iterator[bool]


class Workshop:
    """The work under way; each piece has its turn."""

    def __init__(self) -> None:
        self.pieces: deque[Work] = deque()

    def __bool__(self) -> bool:
        return bool(self.pieces)

    def add(self, work: Work) -> None:
        self.pieces.append(work)

    def advance(self, is_over: Callable[[], bool]) -> None:
        """Go round until the slice is over, or all that is left waits."""
        idle = 0
        while len(self.pieces) > idle and not is_over():
            piece = self.pieces.popleft()
            step = next(piece, None)
            if step is not None:
                self.pieces.append(piece)
            idle = idle + 1 if step is IDLE else 0
