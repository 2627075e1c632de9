"""Operators without state, on streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .columns import Columns
from .context import Context
from .record import Headers, Record

KeyValueFunction = Callable[[Any, Any], Any]


class Filter:
    in_columns = True

    def __init__(self, predicate: KeyValueFunction, negated: bool = False) -> None:
        self.predicate, self.negated = predicate, negated

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        if bool(self.predicate(record.key, record.value)) is not self.negated:
            self.emit(record)

    def process_all(self, columns: Columns) -> Columns:
        negated = self.negated
        passed = list(map(self.predicate, columns.keys, columns.values))
        if not negated and all(passed):
            return columns
        return columns.where([at for at, one in enumerate(passed) if bool(one) is not negated])


class Map:
    """A new key and value. The function returns the pair."""

    in_columns = True

    def __init__(self, mapper: KeyValueFunction) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        key, value = self.mapper(record.key, record.value)
        self.emit(Record(key, value, record.timestamp, record.headers))

    def process_all(self, columns: Columns) -> Columns:
        pairs = [(key, value) for key, value in map(self.mapper, columns.keys, columns.values)]
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        return Columns(keys, values, columns.timestamps, columns.headers)


class SelectKey:
    in_columns = True

    def __init__(self, mapper: KeyValueFunction) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        value = record.value
        self.emit(Record(self.mapper(record.key, value), value, record.timestamp, record.headers))

    def process_all(self, columns: Columns) -> Columns:
        keys = list(map(self.mapper, columns.keys, columns.values))
        return Columns(keys, columns.values, columns.timestamps, columns.headers)


class MapValues:
    in_columns = True

    def __init__(self, mapper: KeyValueFunction) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        key = record.key
        self.emit(Record(key, self.mapper(key, record.value), record.timestamp, record.headers))

    def process_all(self, columns: Columns) -> Columns:
        values = list(mapped(self.mapper, columns))
        return Columns(columns.keys, values, columns.timestamps, columns.headers)


class FlatMap:
    in_columns = True

    def __init__(self, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        emit, timestamp, headers = self.emit, record.timestamp, record.headers
        for key, value in self.mapper(record.key, record.value):
            emit(Record(key, value, timestamp, headers))

    def process_all(self, columns: Columns) -> Columns:
        found = [[(key, value) for key, value in some] for some in map(self.mapper, columns.keys, columns.values)]
        keys, values = [key for some in found for key, _ in some], [value for some in found for _, value in some]
        return Columns(keys, values, *repeated(columns, found))


class FlatMapValues:
    in_columns = True

    def __init__(self, mapper: Callable[[Any, Any], Iterable[Any]]) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        emit, key, timestamp, headers = self.emit, record.key, record.timestamp, record.headers
        for value in self.mapper(key, record.value):
            emit(Record(key, value, timestamp, headers))

    def process_all(self, columns: Columns) -> Columns:
        found = list(map(list, mapped(self.mapper, columns)))
        keys = [key for key, some in zip(columns.keys, found, strict=True) for _ in some]
        return Columns(keys, [value for some in found for value in some], *repeated(columns, found))


class Foreach:
    """Ends here."""

    def __init__(self, action: KeyValueFunction) -> None:
        self.action = action

    def init(self, context: Context) -> None:
        return

    def process(self, record: Record) -> None:
        self.action(record.key, record.value)


class Peek:
    def __init__(self, action: KeyValueFunction) -> None:
        self.action = action

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        self.action(record.key, record.value)
        self.emit(record)


class PassThrough:
    """Of merged streams, and of the branches of a split."""

    in_columns = True

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        self.emit(record)

    def process_all(self, columns: Columns) -> Columns:
        return columns


class Branch:
    """To the child of the first predicate that holds; to the last child, if it is the default, when none does."""

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


def repeated(columns: Columns, found: Sequence[Sequence[Any]]) -> tuple[list[int], list[Headers] | None]:
    """The times and headers of records that became several each."""
    times = [time for time, some in zip(columns.timestamps, found, strict=True) for _ in some]
    headers = columns.headers
    if headers is None:
        return times, None
    return times, [one for one, some in zip(headers, found, strict=True) for _ in some]


def mapped(mapper: KeyValueFunction, columns: Columns) -> Iterable[Any]:
    """A function that looks at the value alone says so by `of_value`, and is called without a detour."""
    alone = getattr(mapper, "of_value", None)
    return map(mapper, columns.keys, columns.values) if alone is None else map(alone, columns.values)
