"""Changes of a table that are held back: KTableSuppress.

A change waits in the buffer from its time on (its own, or the end of its window), and replaces an earlier change of its
key. It is let through when the observed time is later by the time to wait: oldest first, then by key. If the buffer
then exceeds its bounds, the oldest changes are let through early, or the application ends. Sizes are counted as Kafka
does. A record that is let through has its original source, timestamp and headers.

With `drop_tombstones` (final results only) a change to None ends here: nothing was forwarded that it could take back.
"""

from __future__ import annotations

from typing import Any

from .context import Context
from .record import Record, Stamped
from .stores.buffers import Held, Origin
from .stores.scalars import Observed
from .stores.suppressed import SuppressStore
from .views import Lookup
from .windows import Bounds


class BufferFull(RuntimeError):
    """A buffer of suppress() exceeds its bounds, and the application is to end then."""


class Suppress:
    def __init__(
        self,
        store: str,
        wait_ms: int,
        bounds: Bounds,
        *,
        by_window_end: bool = False,
        drop_tombstones: bool = False,
    ) -> None:
        self.store_name, self.wait_ms, self.bounds = store, wait_ms, bounds
        self.by_window_end, self.drop_tombstones = by_window_end, drop_tombstones

    def init(self, context: Context) -> None:
        self.context = context
        self.store: SuppressStore = context.store(self.store_name)
        self.observed = Observed(self.store.scalars, "observed")

    def process(self, record: Record) -> None:
        observed = self.observed.see(record.timestamp)
        time = record.key.end if self.by_window_end else record.timestamp
        self.store.put(time, record.key, record.value, Origin.of(self.context.source, record))
        for held in self.store.due(observed - self.wait_ms):
            self.let_through(held)
        if self.is_over():
            self.relieve()

    def is_over(self) -> bool:
        return self.store.count > self.bounds.max_records or self.store.size > self.bounds.max_bytes

    def relieve(self) -> None:
        store, bounds = self.store, self.bounds
        if not bounds.emit_early:
            raise BufferFull(
                f"{self.context.name} buffer exceeded its max capacity. Currently [{store.count}/{bounds.max_records}] "
                f"records and [{store.size}/{bounds.max_bytes}] bytes."
            )
        while self.is_over():
            self.let_through(self.store.oldest())

    def let_through(self, held: Held) -> None:
        """Forward first and remove then: in between, look-ups in the table still find the previous value."""
        key, change = self.store.read(held)
        if change.new is not None or not self.drop_tombstones:
            with self.context.standing_at(held.origin.source()):
                self.context.emit(Record(key, change, held.origin.timestamp, held.origin.headers))
        self.store.remove(held)


class SuppressedView:
    """The table as look-ups see it: for a key that is held back, the value that was last let through."""

    versioned = False

    def __init__(self, store: SuppressStore, above: Lookup) -> None:
        self.store, self.above = store, above

    def get(self, key: Any) -> Stamped | None:
        is_held, value = self.store.prior(key)
        if is_held:
            return None if value is None else Stamped(value, -1)
        return self.above.get(key)

    def as_of(self, key: Any, timestamp: int) -> Stamped | None:
        """Return the only value: a suppressed table is not versioned."""
        return self.get(key)
