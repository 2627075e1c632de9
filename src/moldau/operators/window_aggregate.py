"""Aggregates by time window, hopping, tumbling or without an end: KStreamWindowAggregate.

A record goes to each window that it falls into, the earliest first, if the window is still open: its end is later than
the observed time less the grace. The observed time is this operator's own, of records with a key, late ones too. The
result has the later of the timestamps of the record and of the aggregate. An aggregate that became None is begun anew,
and what went before is then the initial one: so a change that starts a window carries it as its old value.

With `EmitFinal` nothing is forwarded until windows close; then each window that closed is, once, by start and key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from .at_once import NOTHING, Held, at_hand
from .context import Context, Shard
from .emit_final import EmitFinal
from .observed import Observed
from .record import Change, Headers, Raw, Record, Stamped
from .stores.window import WindowStore
from .windowed import Windowed

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]  # key, value, aggregate
Windows = dict[tuple[Any, int], Held]  # by key and start


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


class TimeWindowAggregate:
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

    def take_rows(self, records: Iterable[tuple[Raw, Record]], shard: Shard) -> None:
        """With a cache: `at_once.py` says why that makes no difference."""
        store, aggregator, initializer = self.store, self.aggregator, self.initializer
        see, windows_for, grace = self.observed.see, self.windows.windows_for, self.windows.grace_ms
        changed: Windows = {}
        for raw, record in records:
            at_hand(shard, raw, record)
            key, value, timestamp = record.key, record.value, record.timestamp
            if key is None:
                self.context.dropped("null key")
                continue
            close = see(timestamp) - grace
            for start, end in windows_for(timestamp):
                if end <= close:
                    self.context.dropped("late")
                    continue
                found = changed.pop((key, start), None) or store.fetch(key, start) or NOTHING
                old = initializer() if found[0] is None else found[0]
                latest = timestamp if found[0] is None or timestamp > found[1] else found[1]
                changed[key, start] = aggregator(key, value, old), latest, record, raw
            if len(changed) >= store.at_once:
                changed = self.put_all(changed, shard)
        self.put_all(changed, shard)

    def put_all(self, changed: Windows, shard: Shard) -> Windows:
        for (key, start), (value, timestamp, record, raw) in changed.items():
            shard.record, shard.source = record, raw
            self.store.put(key, None if value is None else Stamped(value, timestamp), start)
        return {}

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
