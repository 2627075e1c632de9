"""Which windows have closed since the last time that windows were emitted.

The last close time is kept in the store, so each window is emitted once, whatever becomes of the process in between.
Kafka looks at most once a second by the clock (`__emit.interval.ms.kstreams.windowed.aggregation`); here every record
that lets time pass does, which is that setting at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .record import Stamped
from .stores.window import WindowStore
from .windowed import Windowed

NEVER = -1


class EmitFinal:
    """Closed windows of a window store. `inclusive` for sliding windows, whose end belongs to them."""

    __slots__ = ("inclusive", "last", "name", "size", "store")

    def __init__(self, size: int, inclusive: bool = False) -> None:
        self.size = size
        self.inclusive = inclusive

    def init(self, store: WindowStore, node: str) -> None:
        self.store = store
        self.name = f"{node} closed"
        self.last = store.scalars.get(self.name, NEVER)

    def closed(
        self, close: int, has_moved: Callable[[int, int], bool] | None = None
    ) -> Iterator[tuple[Windowed, Stamped]]:
        if self.last != NEVER and self.last >= close:
            return
        last = close - self.size - self.inclusive
        if last < 0:
            return
        first = 0 if self.last == NEVER else max(0, self.last - self.size) + (not self.inclusive)
        if has_moved is not None and self.last != NEVER and not has_moved(first, last):
            return
        yield from self.store.fetch_all(first, last)
        self.last = close
        self.store.scalars.put(self.name, close)
