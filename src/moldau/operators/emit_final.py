"""Windows that are emitted once, when they close.

The last close time is kept in the store, so each window is emitted once, even if the process is restarted in between.
Kafka checks at most once a second (`__emit.interval.ms.kstreams.windowed.aggregation`); here every record that advances
the time does, as with that setting at 0.
"""

from __future__ import annotations

from collections.abc import Callable

from .context import Context
from .record import Change, Record
from .stores.window import WindowStore

NEVER = -1


class EmitFinal:
    """The closed windows of a window store. `inclusive` for sliding windows, whose end belongs to them."""

    __slots__ = ("emit", "inclusive", "last", "name", "size", "store")

    def __init__(self, size: int, inclusive: bool = False) -> None:
        self.size = size
        self.inclusive = inclusive

    def init(self, store: WindowStore, context: Context) -> None:
        self.store, self.emit = store, context.emit
        self.name = f"{context.name} closed"
        self.last = store.scalars.get(self.name, NEVER)

    def emit_closed(self, record: Record, close: int, has_moved: Callable[[int, int], bool] | None = None) -> None:
        """Emit each window that has closed by the time `close`, with the headers of the record that caused it."""
        if self.last != NEVER and self.last >= close:
            return
        last = close - self.size - self.inclusive
        if last < 0:
            return
        first = 0 if self.last == NEVER else max(0, self.last - self.size) + (not self.inclusive)
        if has_moved is not None and self.last != NEVER and not has_moved(first, last):
            return
        for key, found in self.store.fetch_all(first, last):
            self.emit(Record(key, Change(found.value, None), found.timestamp, record.headers))
        self.last = close
        self.store.scalars.put(self.name, close)
