"""Operators on streams, without state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .columns import Columns
from .context import Context
from .record import Headers, Record

KeyValueFunction = Callable[[Any, Any], Any]


class Each:
    """An operator that calls a function of key and value for each record."""

    in_columns = True

    def __init__(self, function: KeyValueFunction) -> None:
        self.function = function

    def init(self, context: Context) -> None:
        self.emit = context.emit


class Filter(Each):
    """Passes the records for which the predicate holds; if `negated`, the others."""

    def __init__(self, predicate: KeyValueFunction, negated: bool = False) -> None:
        super().__init__(predicate)
        self.negated = negated

    def process(self, record: Record) -> None:
        if bool(self.function(record.key, record.value)) is not self.negated:
            self.emit(record)

    def process_all(self, columns: Columns) -> Columns:
        negated = self.negated
        passed = list(map(self.function, columns.keys, columns.values))
        if not negated and all(passed):
            return columns
        return columns.where([at for at, one in enumerate(passed) if bool(one) is not negated])


class Map(Each):
    """Gives records a new key and value: the pair that the function returns."""

    def process(self, record: Record) -> None:
        key, value = self.function(record.key, record.value)
        self.emit(Record(key, value, record.timestamp, record.headers))

    def process_all(self, columns: Columns) -> Columns:
        pairs = [(key, value) for key, value in map(self.function, columns.keys, columns.values)]
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        return Columns(keys, values, columns.timestamps, columns.headers)


class SelectKey(Each):
    """Gives records a new key."""

    def process(self, record: Record) -> None:
        value = record.value
        self.emit(Record(self.function(record.key, value), value, record.timestamp, record.headers))

    def process_all(self, columns: Columns) -> Columns:
        keys = list(map(self.function, columns.keys, columns.values))
        return Columns(keys, columns.values, columns.timestamps, columns.headers)


class MapValues(Each):
    """Gives records a new value."""

    def process(self, record: Record) -> None:
        key = record.key
        self.emit(Record(key, self.function(key, record.value), record.timestamp, record.headers))

    def process_all(self, columns: Columns) -> Columns:
        values = list(mapped(self.function, columns))
        return Columns(columns.keys, values, columns.timestamps, columns.headers)


class FlatMap(Each):
    """Turns each record into any number of pairs of key and value."""

    def process(self, record: Record) -> None:
        emit, timestamp, headers = self.emit, record.timestamp, record.headers
        for key, value in self.function(record.key, record.value):
            emit(Record(key, value, timestamp, headers))

    def process_all(self, columns: Columns) -> Columns:
        made = [[(key, value) for key, value in some] for some in map(self.function, columns.keys, columns.values)]
        keys, values = [key for some in made for key, _ in some], [value for some in made for _, value in some]
        return Columns(keys, values, *repeated(columns, made))


class FlatMapValues(Each):
    """Turns each record into any number of values of the same key."""

    def process(self, record: Record) -> None:
        emit, key, timestamp, headers = self.emit, record.key, record.timestamp, record.headers
        for value in self.function(key, record.value):
            emit(Record(key, value, timestamp, headers))

    def process_all(self, columns: Columns) -> Columns:
        made = list(map(list, mapped(self.function, columns)))
        keys = [key for key, some in zip(columns.keys, made, strict=True) for _ in some]
        return Columns(keys, [value for some in made for value in some], *repeated(columns, made))


class Foreach(Each):
    """Calls the function; nothing is forwarded."""

    in_columns = False

    def process(self, record: Record) -> None:
        self.function(record.key, record.value)


class Peek(Each):
    """Calls the function, and passes the record on."""

    in_columns = False

    def process(self, record: Record) -> None:
        self.function(record.key, record.value)
        self.emit(record)


class PassThrough:
    """The node of merged streams, and of a branch of a split."""

    in_columns = True

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        self.emit(record)

    def process_all(self, columns: Columns) -> Columns:
        return columns


class Branch:
    """Forwards a record to the child of the first predicate that holds."""

    def __init__(self, predicates: Sequence[KeyValueFunction], children: Sequence[str]) -> None:
        self.predicates, self.children = predicates, children

    def init(self, context: Context) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        for predicate, child in zip(self.predicates, self.children, strict=True):
            if predicate(record.key, record.value):
                self.context.forward(record, child)
                return
        self.context.dropped("no branch takes the record")


def repeated(columns: Columns, made: Sequence[Sequence[Any]]) -> tuple[list[int], list[Headers] | None]:
    """Repeat times and headers of records that became several each."""
    times = [time for time, some in zip(columns.timestamps, made, strict=True) for _ in some]
    headers = columns.headers
    if headers is None:
        return times, None
    return times, [one for one, some in zip(headers, made, strict=True) for _ in some]


def mapped(mapper: KeyValueFunction, columns: Columns) -> Iterable[Any]:
    """Call the function of the value alone, where the mapper has one as `of_value`: it saves a call."""
    alone = getattr(mapper, "of_value", None)
    return map(mapper, columns.keys, columns.values) if alone is None else map(alone, columns.values)
