"""Tables: of a topic or a stream, filtered, mapped, and regrouped. Records carry changes.

A table with a store keeps its values there; one without computes them from the table above whenever a key is looked up
(`views.py`) or an old value is needed.
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
from .user import ForColumns, call_if_defined

KeyValueFunction = Callable[[Any, Any], Any]


class TableSource:
    """A topic or a stream as a table. Without a store it forwards changes and keeps nothing."""

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
        return store_all(self.store, with_keys(columns, self.context))

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
    """Return whether a table with this store, or without one, can take columns: where old values are not needed."""
    return not send_old and (store is None or getattr(store, "in_columns", False))


def store_all(store: Any, columns: Columns) -> Columns:
    """Put new values into the table's store, if it has one, and return what is forwarded now."""
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
    return columns.keep([at for at, key in enumerate(columns.keys) if key is not None], context, "null key")


class Stored:
    """What a derived table does with a new value: store it, if it has a store, and forward it."""

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


class TableMapValues:
    """The values of a table, each computed anew from key and value; None deletes the key."""

    keeps = True

    def __init__(self, compute: KeyValueFunction, store: str | None, send_old: bool) -> None:
        self.compute = compute
        self.stored = Stored(store, send_old)

    def init(self, context: Context) -> None:
        self.stored.init(context)
        self.store, self.in_columns = self.stored.store, self.stored.in_columns

    def process_all(self, columns: Columns) -> Columns:
        values = list(map(self.compute, columns.keys, columns.values))
        return store_all(self.store, Columns(columns.keys, values, columns.timestamps, columns.headers))

    def process(self, record: Record) -> None:
        new = self.compute(record.key, record.value.new)
        self.stored.take(record, new, self.stored.old(record, self.compute))


class TableFilter(TableMapValues):
    """A filter: `compute` returns None for what does not pass. A change from nothing to nothing ends here if old values
    are known; of versioned tables every change goes on.
    """

    def __init__(self, compute: KeyValueFunction, store: str | None, send_old: bool, versioned: bool = False) -> None:
        super().__init__(compute, store, send_old)
        self.silent = send_old and not versioned

    def process(self, record: Record) -> None:
        new = self.compute(record.key, record.value.new)
        old = self.stored.old(record, self.compute)
        if self.silent and new is None and old is None:
            return
        self.stored.take(record, new, old)


def filtered(predicate: KeyValueFunction, negated: bool) -> KeyValueFunction:
    def compute(key: Any, value: Any) -> Any:
        return value if value is not None and bool(predicate(key, value)) is not negated else None

    return compute


def mapped(mapper: KeyValueFunction) -> KeyValueFunction:
    def compute(key: Any, value: Any) -> Any:
        return None if value is None else mapper(key, value)

    return compute


class TableRegroup:
    """A table that is grouped by a new key: the old value goes to its old group, then the new one to its new group."""

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
        """Return the group and what counts there; None if either is missing."""
        if value is None:
            return None
        group, counted = self.selector(key, value)
        return None if group is None or counted is None else (group, counted)


class ToStream:
    """The new values of a table as a stream."""

    in_columns = True

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        self.emit(Record(record.key, record.value.new, record.timestamp, record.headers))

    def process_all(self, columns: Columns) -> Columns:
        return columns


class TableTransformValues:
    """A user's transformer in place of a mapper: it may use stores, and it is called for deleted keys too."""

    keeps = True

    def __init__(self, make: Callable[[], Any], store: str | None, send_old: bool) -> None:
        self.transformer = make()
        self.stored = Stored(store, send_old)

    def init(self, context: Context) -> None:
        self.stored.init(context)
        self.store = self.stored.store
        self.in_columns = self.stored.in_columns and isinstance(self.transformer, ForColumns)
        call_if_defined(self.transformer, "init", context)

    def process_all(self, columns: Columns) -> Columns:
        return store_all(self.store, self.transformer.process_all(columns))

    def process(self, record: Record) -> None:
        new = self.transformer.transform(record.key, record.value.new)
        self.stored.take(record, new, self.stored.old(record, self.transformer.transform))

    def close(self) -> None:
        call_if_defined(self.transformer, "close")
