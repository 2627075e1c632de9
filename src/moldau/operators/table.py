"""Tables: from a topic or a stream, filtered, mapped, and regrouped. Records carry changes.

A table that has a store keeps there what it shows; one that has none computes it anew from the table above, for those
who look a key up (`views.py`) as for old values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .columns import Columns
from .context import Context
from .forwarding import teller, value_of
from .record import Change, Record
from .stores.latest import Entry, Latest
from .stores.spec import LATEST, NOT_PUT

KeyValueFunction = Callable[[Any, Any], Any]


class TableSource:
    """A topic, or a stream, as a table. Without a store its changes are forwarded, and nothing is kept."""

    keeps = True

    def __init__(self, store: str | None, send_old: bool) -> None:
        self.store_name, self.send_old = store, send_old

    def init(self, context: Context) -> None:
        self.context = context
        self.store = None if self.store_name is None else context.store(self.store_name)
        if self.store is not None:
            self.tell = teller(context, self.store, self.send_old)
        self.in_columns = keeps_columns(self.store, self.send_old)

    def process_all(self, columns: Columns) -> Columns:
        return kept(self.store, with_keys(columns, self.context))

    def process(self, record: Record) -> None:
        key, value, timestamp = record.key, record.value, record.timestamp
        if key is None:
            self.context.dropped("null key")
            return
        if self.store is None:
            self.context.emit(Record(key, Change(value, None), timestamp, record.headers))
            return
        old = value_of(self.store.get(key))
        put = self.store.put(key, value, timestamp)
        if put != NOT_PUT:
            self.tell(record, value, old, timestamp, put == LATEST)


def keeps_columns(store: Any, send_old: bool) -> bool:
    """Whether a table with this store, or without one, can take columns: where nobody asks for old values."""
    return not send_old and (store is None or getattr(store, "in_columns", False))


def kept(store: Any, columns: Columns) -> Columns:
    """New values of a table are taken into its store, if it has one; what is told of them now."""
    if store is None:
        return columns
    latest: Latest = store.latest
    now = latest.now
    records = zip(columns.keys, columns.values, columns.timestamps, strict=True)
    for number, (key, value, timestamp) in enumerate(records, latest.changes):
        entry = now.get(key)
        if entry is None:
            now[key] = Entry(key, value, timestamp, number)
        else:
            entry.value, entry.time, entry.change = value, timestamp, number
    return latest.tell(columns)


def with_keys(columns: Columns, context: Context) -> Columns:
    if None not in columns.keys:
        return columns
    chosen = [at for at, key in enumerate(columns.keys) if key is not None]
    for _ in range(len(columns) - len(chosen)):
        context.dropped("null key")
    return columns.where(chosen)


class Stored:
    """What a derived table does with a new value: keep it if it has a store, and tell."""

    def __init__(self, store: str | None, send_old: bool) -> None:
        self.store_name, self.send_old = store, send_old

    def init(self, context: Context) -> None:
        self.emit = context.emit
        self.store = None if self.store_name is None else context.store(self.store_name)
        self.in_columns = keeps_columns(self.store, self.send_old)
        if self.store is not None:
            self.tell = teller(context, self.store, self.send_old)

    def old(self, record: Record, compute: KeyValueFunction) -> Any:
        if not self.send_old:
            return None
        if self.store is not None:
            return value_of(self.store.get(record.key))
        return compute(record.key, record.value.old)

    def take(self, record: Record, new: Any, old: Any) -> None:
        if self.store is None:
            change = Change(new, old, record.value.latest)
            self.emit(Record(record.key, change, record.timestamp, record.headers))
            return
        put = self.store.put(record.key, new, record.timestamp)
        if put != NOT_PUT:
            self.tell(record, new, old, record.timestamp, put == LATEST)


class TableFilter:
    """What does not pass is deleted. Of versioned tables every change goes on, even one from nothing to nothing."""

    keeps = True

    def __init__(
        self, predicate: KeyValueFunction, negated: bool, store: str | None, send_old: bool, versioned: bool = False
    ) -> None:
        self.compute = filtered(predicate, negated)
        self.silent = send_old and not versioned
        self.stored = Stored(store, send_old)

    def init(self, context: Context) -> None:
        self.stored.init(context)
        self.store, self.in_columns = self.stored.store, self.stored.in_columns

    def process_all(self, columns: Columns) -> Columns:
        return computed(self.compute, self.store, columns)

    def process(self, record: Record) -> None:
        new = self.compute(record.key, record.value.new)
        old = self.stored.old(record, self.compute)
        if self.silent and new is None and old is None:
            return
        self.stored.take(record, new, old)


def computed(compute: KeyValueFunction, store: Any, columns: Columns) -> Columns:
    values = list(map(compute, columns.keys, columns.values))
    return kept(store, Columns(columns.keys, values, columns.timestamps, columns.headers))


def filtered(predicate: KeyValueFunction, negated: bool) -> KeyValueFunction:
    def compute(key: Any, value: Any) -> Any:
        return value if value is not None and bool(predicate(key, value)) is not negated else None

    return compute


class TableMapValues:
    keeps = True

    def __init__(self, mapper: KeyValueFunction, store: str | None, send_old: bool) -> None:
        self.compute = mapped(mapper)
        self.stored = Stored(store, send_old)

    def init(self, context: Context) -> None:
        self.stored.init(context)
        self.store, self.in_columns = self.stored.store, self.stored.in_columns

    def process_all(self, columns: Columns) -> Columns:
        return computed(self.compute, self.store, columns)

    def process(self, record: Record) -> None:
        new = self.compute(record.key, record.value.new)
        self.stored.take(record, new, self.stored.old(record, self.compute))


def mapped(mapper: KeyValueFunction) -> KeyValueFunction:
    def compute(key: Any, value: Any) -> Any:
        return None if value is None else mapper(key, value)

    return compute


class TableRegroup:
    """Of a table that is grouped anew: what was goes to its old group, what is to its new one, in this order."""

    def __init__(self, selector: KeyValueFunction, versioned: bool = False) -> None:
        self.selector, self.versioned = selector, versioned

    def init(self, context: Context) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        if record.key is None:
            raise ValueError(f"{self.context.name}: the key of a record of a table must not be None")
        change, emit = record.value, self.context.emit
        if self.versioned and not change.latest:
            self.context.dropped("out-of-order record of a versioned table")
            return
        new = self.select(record.key, change.new)
        old = self.select(record.key, change.old)
        if new is not None and old is not None and old[0] == new[0]:
            emit(Record(old[0], Change(new[1], old[1]), record.timestamp, record.headers))
            return
        if old is not None:
            emit(Record(old[0], Change(None, old[1]), record.timestamp, record.headers))
        if new is not None:
            emit(Record(new[0], Change(new[1], None), record.timestamp, record.headers))

    def select(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        """The group and what counts there; None where either is missing."""
        if value is None:
            return None
        group, counted = self.selector(key, value)
        return None if group is None or counted is None else (group, counted)


class ToStream:
    """From a table to a stream: the new values."""

    in_columns = True

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        self.emit(Record(record.key, record.value.new, record.timestamp, record.headers))

    def process_all(self, columns: Columns) -> Columns:
        return columns


class TableTransformValues:
    """As TableMapValues, with a transformer of the user that may use stores, and that is asked about None too."""

    def __init__(self, make: Callable[[], Any], store: str | None, send_old: bool) -> None:
        self.transformer = make()
        self.stored = Stored(store, send_old)

    def init(self, context: Context) -> None:
        self.stored.init(context)
        start = getattr(self.transformer, "init", None)
        if start is not None:
            start(context)

    def process(self, record: Record) -> None:
        new = self.transformer.transform(record.key, record.value.new)
        self.stored.take(record, new, self.stored.old(record, self.transformer.transform))

    def close(self) -> None:
        close = getattr(self.transformer, "close", None)
        if close is not None:
            close()
