"""Operators without state, on streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .context import Context
from .record import Record

KeyValueFunction = Callable[[Any, Any], Any]


class Filter:
    def __init__(self, predicate: KeyValueFunction, negated: bool = False) -> None:
        self.predicate, self.negated = predicate, negated

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        if bool(self.predicate(record.key, record.value)) is not self.negated:
            self.emit(record)


class Map:
    """A new key and value. The function returns the pair."""

    def __init__(self, mapper: KeyValueFunction) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        key, value = self.mapper(record.key, record.value)
        self.emit(Record(key, value, record.timestamp, record.headers))


class SelectKey:
    def __init__(self, mapper: KeyValueFunction) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        value = record.value
        self.emit(Record(self.mapper(record.key, value), value, record.timestamp, record.headers))


class MapValues:
    def __init__(self, mapper: KeyValueFunction) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        key = record.key
        self.emit(Record(key, self.mapper(key, record.value), record.timestamp, record.headers))


class FlatMap:
    def __init__(self, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        emit, timestamp, headers = self.emit, record.timestamp, record.headers
        for key, value in self.mapper(record.key, record.value):
            emit(Record(key, value, timestamp, headers))


class FlatMapValues:
    def __init__(self, mapper: Callable[[Any, Any], Iterable[Any]]) -> None:
        self.mapper = mapper

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        emit, key, timestamp, headers = self.emit, record.key, record.timestamp, record.headers
        for value in self.mapper(key, record.value):
            emit(Record(key, value, timestamp, headers))


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

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        self.emit(record)


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
