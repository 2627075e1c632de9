"""Aggregates by time window, hopping, tumbling or without an end: KStreamWindowAggregate.

A record goes to each window that it falls into, the earliest first, if the window is still open: its end is later than
the observed time less the grace. The observed time is this operator's own, of records with a key, late ones too. The
result has the later of the timestamps of the record and of the aggregate. An aggregate that became None is begun anew,
and what went before is then the initial one: so a change that starts a window carries it as its old value.

With `EmitFinal` nothing is forwarded until windows close; then each window that closed is, once, by start and key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd
from typing import Any, Protocol

from .columns import NO_AGGREGATE, Columns, InRows
from .context import Context
from .emit_final import EmitFinal
from .observed import Observed
from .record import Change, Headers, Record, Stamped, new_tuple
from .stores.latest import NOTHING, Entry
from .stores.window import WindowStore
from .windowed import Windowed

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]  # key, value, aggregate


class FixedWindows(Protocol):
    """Windows that stand before any record comes: where they lie depends on time alone."""

    @property
    def size_ms(self) -> int: ...

    @property
    def grace_ms(self) -> int: ...

    def windows_for(self, timestamp: int) -> Iterable[tuple[int, int]]: ...


Tell = Callable[[Windowed, Any, Any, int, Headers], None]  # window, new, old, timestamp, headers


def teller(context: Context, store: WindowStore, final: bool, send_old: bool) -> Tell:
    """What an operator calls after each update of a window."""
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
    """The cache will tell, or the close of the window."""


class Spans:
    """The windows of a time, and what is known of each of them by key. They are the same for all times between two at
    which one begins or ends.
    """

    def __init__(self, windows: FixedWindows, parts: dict[Any, dict[Any, Entry]]) -> None:
        self.windows_for, self.parts = windows.windows_for, parts
        self.step = gcd(windows.size_ms, getattr(windows, "advance_ms", 1))
        self.known: dict[int, list[tuple[int, int, dict[Any, Entry]]]] = {}

    def of(self, timestamp: int) -> list[tuple[int, int, dict[Any, Entry]]]:
        found = self.known.get(timestamp // self.step)
        if found is None:
            spans = self.windows_for(timestamp)
            found = [(start, end, self.parts.setdefault((start, end), {})) for start, end in spans]
            self.known[timestamp // self.step] = found
        return found


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
        self.store_name = store
        self.windows = windows
        self.initializer = initializer
        self.aggregator = aggregator
        self.final = EmitFinal(windows.size_ms) if final else None
        self.send_old = send_old

    def init(self, context: Context) -> None:
        self.context = context
        self.store: WindowStore = context.store(self.store_name)
        self.observed = Observed(self.store.scalars, f"{context.name} observed")
        if self.final is not None:
            self.final.init(self.store, context.name)
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
            self.emit_final(record, close)

    def process_all(self, columns: Columns) -> Columns:
        """What one record after the other would do."""
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

    def emit_final(self, record: Record, close: int) -> None:
        assert self.final is not None
        for key, found in self.final.closed(close, self.has_moved):
            self.context.emit(Record(key, Change(found.value, None), found.timestamp, record.headers))

    def has_moved(self, first: int, last: int) -> bool:
        """Whether a window may have closed: not while the same windows hold the first and the last time."""
        return list(self.windows.windows_for(last)) != list(self.windows.windows_for(first - 1))
