"""Aggregates without windows: of grouped streams, and of grouped tables, where what was is taken back first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .at_once import Begin, Go, take_all
from .context import Context, Shard
from .forwarding import teller, value_of
from .record import Raw, Record
from .stores.spec import LATEST, NOT_PUT

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]  # key, value, aggregate
Reducer = Callable[[Any, Any], Any]  # aggregate, value


class StreamAggregate:
    def __init__(self, store: str, initializer: Initializer, adder: Aggregator, send_old: bool) -> None:
        self.store_name, self.initializer, self.adder, self.send_old = store, initializer, adder, send_old

    def init(self, context: Context) -> None:
        self.context = context
        self.store = context.store(self.store_name)
        self.tell = teller(context, self.store, self.send_old)

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

    def process_all(self, records: Iterable[tuple[Raw, Record]], shard: Shard) -> None:
        adder, initializer = self.adder, self.initializer
        begin: Begin = lambda key, value: adder(key, value, initializer())  # noqa: E731
        take_all(records, shard, self.context, self.store, begin, adder)


class StreamReduce:
    def __init__(self, store: str, reducer: Reducer, send_old: bool) -> None:
        self.store_name, self.reducer, self.send_old = store, reducer, send_old

    def init(self, context: Context) -> None:
        self.context = context
        self.store = context.store(self.store_name)
        self.tell = teller(context, self.store, self.send_old)

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

    def process_all(self, records: Iterable[tuple[Raw, Record]], shard: Shard) -> None:
        reducer = self.reducer
        go: Go = lambda key, value, old: reducer(old, value)  # noqa: E731
        take_all(records, shard, self.context, self.store, lambda key, value: value, go)


class TableAggregate:
    """Takes back the old value, then adds the new one."""

    def __init__(
        self, store: str, initializer: Initializer, adder: Aggregator, subtractor: Aggregator, send_old: bool
    ) -> None:
        self.store_name, self.initializer, self.send_old = store, initializer, send_old
        self.adder, self.subtractor = adder, subtractor

    def init(self, context: Context) -> None:
        self.context = context
        self.store = context.store(self.store_name)
        self.tell = teller(context, self.store, self.send_old)

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
