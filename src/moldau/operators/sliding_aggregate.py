"""Aggregates by sliding window: KStreamSlidingWindowAggregate.

There is a sliding window for each set of records that are within the time difference of each other: the one that ends
at a record (its left window), and the one that begins just after it (its right window), if that has any record. Both
ends belong to a window. A new record is added to the windows that it falls into, and creates up to three: the right
window of the record before it, its own left window, and its own right window.

The store's timestamp of a window is that of its latest record, by which windows are told apart. All windows that would
begin before time 0 are one, from 0: records earlier than the time difference are added to it.

Kafka visits the windows of a key from the latest to the earliest, and forwards in that order; for early records the
other way round.
"""

from __future__ import annotations

from typing import Any

from .context import Context
from .emit_final import EmitFinal
from .record import Record, Stamped
from .stores.scalars import Observed
from .stores.window import WindowStore
from .window_aggregate import Aggregator, Initializer, teller
from .windowed import Windowed
from .windows import SlidingWindows


class SlidingAggregate:
    def __init__(
        self,
        store: str,
        windows: SlidingWindows,
        initializer: Initializer,
        aggregator: Aggregator,
        *,
        final: bool = False,
        send_old: bool = False,
    ) -> None:
        self.store_name, self.send_old = store, send_old
        self.difference, self.grace = windows.difference_ms, windows.grace_ms
        self.initializer, self.aggregator = initializer, aggregator
        self.final = EmitFinal(windows.difference_ms, inclusive=True) if final else None

    def init(self, context: Context) -> None:
        self.context = context
        self.store: WindowStore = context.store(self.store_name)
        self.observed = Observed(self.store.scalars, f"{context.name} observed")
        if self.final is not None:
            self.final.init(self.store, context)
        self.tell = teller(context, self.store, self.final is not None, self.send_old)

    def process(self, record: Record) -> None:
        if record.key is None or record.value is None:
            self.context.dropped("null key or value")
            return
        timestamp = record.timestamp
        close = self.observed.see(timestamp) - self.grace
        if timestamp + self.difference < close:
            self.context.dropped("late")
        elif timestamp < self.difference:
            self.add_early(record, close)
        else:
            self.add(record, close)
            if self.final is not None:
                self.final.emit_closed(record, close)

    def add(self, record: Record, close: int) -> None:
        """Add the record to existing windows, the latest first, and then create the new ones."""
        key, at = record.key, record.timestamp
        starts: list[int] = []
        left: Stamped | None = None  # the aggregate of the last window that ended before
        right: Stamped | None = None  # that of the latest window around the record
        has_left = has_right = False
        previous: int | None = None  # the time of the record before
        for start, found in self.store.fetch_range(key, max(0, at - 2 * self.difference), at + 1, reverse=True):
            starts.append(start)
            end = start + self.difference
            if start == at + 1:
                has_right = True
            elif end > at:
                right = right or found
                self.update(record, start, found, close)
            elif end == at:
                has_left = True
                self.update(record, start, found, close)
                if found.timestamp >= at:
                    return
                previous = found.timestamp
            else:
                left, previous = found, found.timestamp
                break
        if previous is not None and previous + 1 not in starts and previous + 1 + self.difference >= at:
            self.update(record, previous + 1, self.fresh(at), close)
        if not has_left:
            reaches = left is not None and previous is not None and at - self.difference <= previous
            found = Stamped(left.value, at) if reaches and left is not None else self.fresh(at)
            self.update(record, at - self.difference, found, close)
        if not has_right and right is not None and right.timestamp > at:
            self.begin_right(record, right)

    def add_early(self, record: Record, close: int) -> None:
        key, at = record.key, record.timestamp
        starts: list[int] = []
        combined: Stamped | None = None  # the window from 0, with all early records
        right: Stamped | None = None
        has_right = False
        previous: int | None = None
        for start, found in self.store.fetch_range(key, 0, at + 1):
            starts.append(start)
            if start == 0:
                combined = found
                if found.timestamp < at:
                    previous = found.timestamp
            elif start <= at:
                right = found
                self.update(record, start, found, close)
            else:
                has_right = True
        if right is None and combined is not None and combined.timestamp > at:
            right = combined
        if not has_right and right is not None and right.timestamp > at:
            self.begin_right(record, right)
        if previous is not None and previous + 1 not in starts:
            self.update(record, previous + 1, self.fresh(at), close)
        self.update(record, 0, combined or self.fresh(at), close)

    def fresh(self, timestamp: int) -> Stamped | None:
        """Return a new aggregate; None if the initial one is None, as in a reduction."""
        initial = self.initializer()
        return None if initial is None else Stamped(initial, timestamp)

    def update(self, record: Record, start: int, found: Stamped | None, close: int) -> None:
        end = start + self.difference
        if end < close:
            self.context.dropped("late")
            return
        old, timestamp = (None, record.timestamp) if found is None else found
        new = self.aggregator(record.key, record.value, old)
        timestamp = max(record.timestamp, timestamp)
        self.store.put(record.key, None if new is None else Stamped(new, timestamp), start)
        self.forward(record, start, old, new, timestamp)

    def begin_right(self, record: Record, found: Stamped) -> None:
        """Create the window just after a record, with the later records of the windows around it."""
        start = record.timestamp + 1
        self.store.put(record.key, found, start)
        self.forward(record, start, None, found.value, found.timestamp)

    def forward(self, record: Record, start: int, old: Any, new: Any, timestamp: int) -> None:
        self.tell(Windowed(record.key, start, start + self.difference), new, old, timestamp, record.headers)
