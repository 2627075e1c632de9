"""Aggregates without windows: of grouped streams, and of grouped tables, where the old value is taken back first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .columns import NO_AGGREGATE, Columns, InRows
from .context import Context
from .forwarding import teller, value_of
from .record import Record
from .stores.latest import Latest
from .stores.spec import LATEST, NOT_PUT
from .table import keeps_columns

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]  # key, value, aggregate
Reducer = Callable[[Any, Any], Any]  # aggregate, value
Begin = Callable[[Any, Any], Any]  # key, value: the first aggregate
Go = Callable[[Any, Any, Any], Any]  # key, value, aggregate: the next one


class StoreOwner:
    """An operator that keeps a table in a store, and forwards its changes by `tell`."""

    def __init__(self, store: str, send_old: bool) -> None:
        self.store_name, self.send_old = store, send_old

    def init(self, context: Context) -> None:
        self.context = context
        self.store = context.store(self.store_name)
        self.tell = teller(context, self.store, self.send_old)


class StreamTable(StoreOwner):
    """A table made of a stream. It takes columns if its store can and old values are not needed."""

    keeps = True

    def init(self, context: Context) -> None:
        super().init(context)
        self.in_columns = keeps_columns(self.store, self.send_old)


class StreamAggregate(StreamTable):
    """The aggregate of a grouped stream."""

    def __init__(self, store: str, initializer: Initializer, adder: Aggregator, send_old: bool) -> None:
        super().__init__(store, send_old)
        self.initializer, self.adder = initializer, adder

    def process(self, record: Record) -> None:
        key, value, timestamp = record.key, record.value, record.timestamp
        if key is None or value is None:
            self.context.dropped("null key or value")
            return
        found = self.store.get(key)
        if found is None:
            old = self.initializer()
        else:
            old = found[0]
            if found[1] > timestamp:
                timestamp = found[1]
        new = self.adder(key, value, old)
        put = self.store.put(key, new, timestamp)
        if put != NOT_PUT:
            self.tell(record, new, old, timestamp, put == LATEST)

    def process_all(self, columns: Columns) -> Columns:
        adder, initializer = self.adder, self.initializer
        return aggregate_all(columns, self, lambda key, value: adder(key, value, initializer()), adder)


class StreamReduce(StreamTable):
    """The reduction of a grouped stream."""

    def __init__(self, store: str, reducer: Reducer, send_old: bool) -> None:
        super().__init__(store, send_old)
        self.reducer = reducer

    def process(self, record: Record) -> None:
        key, new, timestamp = record.key, record.value, record.timestamp
        if key is None or new is None:
            self.context.dropped("null key or value")
            return
        found, old = self.store.get(key), None
        if found is not None:
            old = found[0]
            new = self.reducer(old, new)
            timestamp = max(timestamp, found[1])
        put = self.store.put(key, new, timestamp)
        if put != NOT_PUT:
            self.tell(record, new, old, timestamp, put == LATEST)

    def process_all(self, columns: Columns) -> Columns:
        reducer = self.reducer
        return aggregate_all(columns, self, lambda key, value: value, lambda key, value, old: reducer(old, value))


def aggregate_all(columns: Columns, operator: StreamTable, begin: Begin, go: Go) -> Columns:
    """Aggregate records in columns, with the same result as one by one."""
    columns = complete(columns, operator.context)
    latest: Latest = operator.store.latest
    now, get = latest.now, latest.get
    news, times = [], []
    records = zip(columns.keys, columns.values, columns.timestamps, strict=True)
    for number, (key, value, timestamp) in enumerate(records, latest.changes):
        entry = now.get(key) or get(key)
        old = entry.value
        new = entry.value = begin(key, value) if old is None else go(key, value, old)
        if timestamp > entry.time:
            entry.time = timestamp
        entry.change = number
        news.append(new)
        times.append(entry.time)
    if None in news:
        raise InRows(NO_AGGREGATE)  # the times of deleted keys differ
    return latest.tell(Columns(columns.keys, news, times, columns.headers))


def complete(columns: Columns, context: Context) -> Columns:
    """Return the records that have a key and a value."""
    if None not in columns.keys and None not in columns.values:
        return columns
    pairs = enumerate(zip(columns.keys, columns.values, strict=True))
    chosen = [at for at, (key, value) in pairs if key is not None and value is not None]
    return columns.keep(chosen, context, "null key or value")


class TableAggregate(StoreOwner):
    """The aggregate of a grouped table: it takes back the old value, then adds the new one."""

    def __init__(
        self, store: str, initializer: Initializer, adder: Aggregator, subtractor: Aggregator, send_old: bool
    ) -> None:
        super().__init__(store, send_old)
        self.initializer, self.adder, self.subtractor = initializer, adder, subtractor

    def process(self, record: Record) -> None:
        key, change = record.key, record.value
        if key is None:
            raise ValueError(f"{self.context.name}: the key of a grouped table's record must not be None")
        found = self.store.get(key)
        old = aggregate = value_of(found)
        timestamp = record.timestamp if found is None else max(record.timestamp, found.timestamp)
        if change.old is not None and aggregate is not None:
            aggregate = self.subtractor(key, change.old, aggregate)
        if change.new is not None:
            aggregate = self.adder(key, change.new, self.initializer() if aggregate is None else aggregate)
        put = self.store.put(key, aggregate, timestamp)
        if put != NOT_PUT:
            self.tell(record, aggregate, old, timestamp, put == LATEST)
