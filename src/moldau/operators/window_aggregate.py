"""Aggregates by time window, hopping, tumbling or without an end: KStreamWindowAggregate.

A record is added to each open window that it falls into, the earliest first. A window is open while its end is later
than the observed time less the grace. The observed time is this operator's own, of records with a key, late ones too.
The result has the later timestamp of the record and the aggregate. An aggregate that became None starts again from the
initial one, so a change that starts a window has the initial aggregate as its old value.

With `EmitFinal` nothing is forwarded until windows close; then each closed window is, once, by start and key.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from .columns import NO_AGGREGATE, Columns, InRows
from .context import Context
from .emit_final import EmitFinal
from .record import Change, Headers, Record, Stamped, new_tuple
from .stores.latest import NOTHING, Entry
from .stores.scalars import Observed
from .stores.window import WindowStore
from .windowed import Windowed
from .windows import TimeWindows, UnlimitedWindows

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]  # key, value, aggregate


FixedWindows = TimeWindows | UnlimitedWindows
Tell = Callable[[Windowed, Any, Any, int, Headers], None]  # window, new, old, timestamp, headers


def teller(context: Context, store: WindowStore, final: bool, send_old: bool) -> Tell:
    """Return what an operator calls after each update of a window."""
    emit = context.emit
    if final:
        return hold_back
    if store.cached:

        def released(key: Windowed, new: Stamped | None, old: Stamped | None, cause: Record) -> None:
            value, timestamp = (None, cause.timestamp) if new is None else new
            before = old.value if send_old and old is not None else None
            emit(Record(key, Change(value, before), timestamp, cause.headers))

        store.listen(released)
        return hold_back

    def tell(key: Windowed, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
        emit(Record(key, Change(new, old if send_old else None), timestamp, headers))

    return tell


def hold_back(key: Windowed, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
    """Forward nothing yet: that is left to the cache, or to the end of the window."""


class Spans:
    """The windows of a time, and the entries of each by key. They are the same for all times between two at which a
    window begins or ends.
    """

    def __init__(self, windows: FixedWindows, parts: dict[Any, dict[Any, Entry]]) -> None:
        self.windows_for, self.parts = windows.windows_for, parts
        self.step = gcd(windows.size_ms, getattr(windows, "advance_ms", 1))
        self.known: dict[int, list[tuple[int, int, dict[Any, Entry]]]] = {}

    def of(self, timestamp: int) -> list[tuple[int, int, dict[Any, Entry]]]:
        windows = self.known.get(timestamp // self.step)
        if windows is None:
            spans = self.windows_for(timestamp)
            windows = [(start, end, self.parts.setdefault((start, end), {})) for start, end in spans]
            self.known[timestamp // self.step] = windows
        return windows


class TimeWindowAggregate:
    keeps = True

    def __init__(
        self,
        store: str,
        windows: FixedWindows,
        initializer: Initializer,
        aggregator: Aggregator,
        *,
        final: bool = False,
        send_old: bool = False,
    ) -> None:
        self.store_name, self.windows, self.send_old = store, windows, send_old
        self.initializer, self.aggregator = initializer, aggregator
        self.final = EmitFinal(windows.size_ms) if final else None

    def init(self, context: Context) -> None:
        self.context = context
        self.store: WindowStore = context.store(self.store_name)
        self.observed = Observed(self.store.scalars, f"{context.name} observed")
        if self.final is not None:
            self.final.init(self.store, context)
        self.tell = teller(context, self.store, self.final is not None, self.send_old)
        self.in_columns = self.store.in_columns and self.final is None and not self.send_old

    def process(self, record: Record) -> None:
        if record.key is None:
            self.context.dropped("null key")
            return
        timestamp = record.timestamp
        close = self.observed.see(timestamp) - self.windows.grace_ms
        for start, end in self.windows.windows_for(timestamp):
            if end > close:
                self.update(record, start, end)
            else:
                self.context.dropped("late")
        if self.final is not None:
            self.final.emit_closed(record, close, self.has_moved)

    def process_all(self, columns: Columns) -> Columns:
        """Aggregate records in columns, with the same result as one by one."""
        latest, aggregator, initializer = self.store.latest, self.aggregator, self.initializer
        get, number, grace = latest.get, latest.changes, self.windows.grace_ms
        spans, observed, late = Spans(self.windows, latest.parts), self.observed.time, 0
        step, current, found = spans.step, None, []
        at, keys, news, times = [], [], [], []
        headers, silent = columns.headers, self.store.cached and columns.headers is None
        records = zip(columns.keys, columns.values, columns.timestamps, strict=True)
        for place, (key, value, timestamp) in enumerate(records):
            if key is None:
                self.context.dropped("null key")
                continue
            if timestamp > observed:
                observed = timestamp
            if timestamp // step != current:
                current, found = timestamp // step, spans.of(timestamp)
            for start, end, entries in found:
                if end <= observed - grace:
                    late += 1
                    continue
                entry = entries.get(key)
                if entry is None:
                    entry = entries[key] = get(new_tuple(Windowed, (key, start, end)))
                old = entry.value
                new = entry.value = aggregator(key, value, initializer() if old is None else old)
                if timestamp > entry.time:
                    entry.time = timestamp
                entry.change = number
                number += 1
                if new is None:
                    raise InRows(NO_AGGREGATE)  # what is deleted has other times
                if silent:
                    continue
                at.append(place)
                keys.append(entry.key)
                news.append(new)
                times.append(entry.time)
        self.observed.see(observed)
        for _ in range(late):
            self.context.dropped("late")
        if silent:
            latest.changes = number
            return NOTHING
        return latest.tell(Columns(keys, news, times, None if headers is None else [headers[one] for one in at]))

    def update(self, record: Record, start: int, end: int) -> None:
        key, timestamp, store = record.key, record.timestamp, self.store
        found = store.fetch(key, start)
        if found is None:
            old = self.initializer()
        else:
            old, latest = found
            if latest > timestamp:
                timestamp = latest
        new = self.aggregator(key, record.value, old)
        store.put(key, None if new is None else Stamped(new, timestamp), start)
        self.tell(Windowed(key, start, end), new, old, timestamp, record.headers)

    def has_moved(self, first: int, last: int) -> bool:
        """Return whether a window may have closed: not while both times are in the same windows."""
        return list(self.windows.windows_for(last)) != list(self.windows.windows_for(first - 1))
