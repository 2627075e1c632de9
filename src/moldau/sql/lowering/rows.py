"""What a step does with a row: functions made of expressions, and the processors that call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from moldau.operators.columns import Columns
from moldau.operators.record import Record
from moldau.operators.stateless import repeated
from moldau.operators.timestamps import Extractor
from moldau.operators.user import ForColumns
from moldau.operators.windowed import Windowed
from moldau.sql import functions
from moldau.sql.analysis.checks import columns_in
from moldau.sql.catalogue import PSEUDO, Source
from moldau.sql.catalogue import Columns as SqlColumns
from moldau.sql.codegen import Report, compile_row
from moldau.sql.steps import Joined, Named, SelectKey
from moldau.sql.tree import STRING, Call, Column, Expression, Literal
from moldau.sql.typing import type_of

Row = tuple[Any, ...]
Emit = Callable[[Any, "Row | None", int], None]  # key, row, timestamp
POSITION = PSEUDO[1:]  # partition and offset


def projection(columns: Named, before: SqlColumns, log: Report | None) -> Callable[[Row], Row]:
    """Return a function of a row that computes the columns of SELECT."""
    return cast("Callable[[Row], Row]", compile_row([value for _, value in columns], before, log=log))


def predicate(condition: Expression, before: SqlColumns, log: Report | None) -> Callable[[Row], bool]:
    passes = compile_row([], before, where=condition, log=log)
    return lambda row: passes(row) is not None


def grouper(keys: Sequence[Expression], before: SqlColumns, log: Report | None) -> Callable[[Row], Row | None]:
    """Return a function of a row that gives its group; None if a part of it is null, and the row does not count."""
    compute = compile_row(keys, before, log=log)

    def group(row: Row) -> Row | None:
        found = compute(row)
        return None if found is None or None in found else found

    return group


def foreign_key(expression: Expression, before: SqlColumns, log: Report | None) -> Callable[[Row], Row | None]:
    return grouper([expression], before, log)


def rekey(step: SelectKey, log: Report | None) -> Callable[[Any, Row | None], tuple[Row | None, Row | None]]:
    """Return a function that gives a row its new key, and adds the expressions that are not columns to its values."""
    if not step.keys:
        return lambda key, row: (None, row)
    compute = compile_row(step.keys, step.input.schema.value, log=log)
    before = dict(step.input.schema.value)
    added = [at for at, (name, _) in enumerate(step.schema.key) if name not in before]
    names = [name for name, _ in step.input.schema.key]
    known = [set(columns_in([expression])) <= set(names) for expression in step.keys]

    def without_values(key: Any) -> Row:
        """Compute what can be computed from the key alone."""
        columns = dict(zip(names, () if key is None else key_columns(key), strict=False))
        new = compute(tuple(columns.get(name) for name, _ in step.input.schema.value))
        assert new is not None
        return tuple(value if sure else None for value, sure in zip(new, known, strict=True))

    def mapper(key: Any, row: Row | None) -> tuple[Row | None, Row | None]:
        if row is None:
            return without_values(key), None
        new = compute(row)
        assert new is not None
        return new, (*row, *(new[at] for at in added)) if added else row

    return mapper


def exploder(calls: Sequence[tuple[str, Call]], before: SqlColumns, log: Report | None) -> Callable[[Row], list[Row]]:
    """Return a function that makes rows of the results of table functions, side by side."""
    types = dict(before)
    made: list[tuple[Callable[..., list[Any]], Callable[[Row], Row | None]]] = []
    for _, call in calls:
        function, _ = functions.table(call.name, [type_of(arg, types) for arg in call.args])
        made.append((function, compile_row(call.args, before, log=log)))

    def explode(row: Row) -> list[Row]:
        results = [_results(function, arguments(row), log) for function, arguments in made]
        count = max(map(len, results))
        return [(*row, *(r[at] if at < len(r) else None for r in results)) for at in range(count)]

    return explode


def _results(function: Callable[..., list[Any]], arguments: Row | None, log: Report | None) -> list[Any]:
    assert arguments is not None
    try:
        return function(*arguments) or []
    except Exception as error:  # a function of a user may raise anything: its row has no results
        if log is not None:
            log("Table function failed", error, arguments)
        return []


def joiner(step: Joined) -> Callable[[Any, Row | None, Row | None], Row]:
    """Return a function that puts the rows of both sides together, with the key if no side has it."""
    left, right = (tuple(None for _ in side.schema.value) for side in (step.left, step.right))
    own = len(step.schema.value) > len(left) + len(right)

    def join(key: Any, one: Row | None, other: Row | None) -> Row:
        row = (*(left if one is None else one), *(right if other is None else other))
        return (*row, *key_columns(key)) if own else row

    return join


def mirrored(join: Callable[[Any, Any, Any], Row]) -> Callable[[Any, Any, Any], Row]:
    return lambda key, other, one: join(key, one, other)


def key_columns(key: Any) -> Row:
    return key.key if isinstance(key, Windowed) else key


def bounds(key: Any) -> Row:
    return (key.start, key.end) if isinstance(key, Windowed) else ()


def header_columns(source: Source, headers: Sequence[tuple[str, bytes | None]]) -> Row:
    """Return the values of columns that are read from headers."""
    found: list[Any] = []
    for _, name in source.headers:
        if name is None:
            found.append([(key, value) for key, value in headers])
        else:
            found.append(next((value for key, value in reversed(headers) if key == name), None))
    return tuple(found)


def extractor(source: Source) -> Extractor | None:
    """Return a function that reads a record's time from its column; a row without one has no time, and is dropped."""
    if source.timestamp is None:
        return None
    columns = (*source.schema.key, *source.stored_value)
    name = source.timestamp
    expression: Expression = Column(name)
    if dict(columns)[name] == STRING:
        expression = Call("PARSE_TIMESTAMP", (Column(name), Literal(source.timestamp_format, "STRING")))
    compute = compile_row([expression], columns)
    no_key = tuple(None for _ in source.schema.key)

    def extract(record: Record, partition_time: int) -> int:
        if record.value is None:
            return record.timestamp
        key = no_key if record.key is None else key_columns(record.key)
        found = compute((*key, *record.value))
        time = None if found is None else found[0]
        return -1 if time is None else time

    return extract


def with_values(columns: Columns, values: list[Any]) -> Columns:
    return Columns(columns.keys, values, columns.timestamps, columns.headers)


class Processor:
    """A processor of values that forwards to `context`."""

    def init(self, context: Any) -> None:
        self.context = context


class AddColumns(Processor, ForColumns):
    """Adds headers, pseudo columns, the key's columns and the window's bounds to the values of a stream."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.no_key = tuple(None for _ in source.schema.key)
        self.no_bounds = (None, None) if source.window is not None else ()

    def process(self, record: Record) -> None:
        row = record.value
        if row is not None:
            raw = self.context.source
            key = record.key
            headers = header_columns(self.source, record.headers) if self.source.headers else ()
            position = (record.timestamp, raw.partition, raw.offset)
            columns = self.no_key if key is None else key_columns(key)
            row = (*row, *headers, *position, *columns, *(self.no_bounds if key is None else bounds(key)))
        self.context.forward(record.with_value(row))

    def process_all(self, columns: Columns) -> Columns:
        keys, values, times, partition, offsets = (
            columns.keys, columns.values, columns.timestamps, columns.partition, columns.offsets,
        )  # fmt: skip
        assert offsets is not None
        records = zip(values, keys, times, offsets, strict=True)
        is_plain = not self.source.headers and self.source.window is None and None not in keys and None not in values
        if is_plain:
            return with_values(columns, [(*v, time, partition, offset, *key) for v, key, time, offset in records])
        headers = columns.headers or [()] * len(columns)
        made: list[Row | None] = []
        for (row, key, time, offset), carried in zip(records, headers, strict=True):
            if row is not None:
                mine = header_columns(self.source, carried) if self.source.headers else ()
                own, edges = (self.no_key, self.no_bounds) if key is None else (key_columns(key), bounds(key))
                row = (*row, *mine, time, partition, offset, *own, *edges)
            made.append(row)
        return with_values(columns, made)


class AddPosition(ForColumns):
    """Adds headers, partition and offset to the values of a table, before they are stored."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def init(self, context: Any) -> None:
        self.context = context

    def transform(self, key: Any, row: Row | None) -> Row | None:
        if row is None:
            return None
        raw = self.context.source
        position = (-1, -1) if raw is None else (raw.partition, raw.offset)
        headers = header_columns(self.source, () if raw is None else raw.headers) if self.source.headers else ()
        return (*row, *headers, *position)

    def process_all(self, columns: Columns) -> Columns:
        assert columns.offsets is not None
        partition, headers = columns.partition, columns.headers or [()] * len(columns)
        has_headers = bool(self.source.headers)
        records = zip(columns.values, headers, columns.offsets, strict=True)
        made = [
            None
            if row is None
            else (*row, *(header_columns(self.source, carried) if has_headers else ()), partition, offset)
            for row, carried, offset in records
        ]
        return with_values(columns, made)


class AddKeyColumns(ForColumns):
    """Adds the time, the key's columns and the window's bounds to the values of a table, after they are stored."""

    def init(self, context: Any) -> None:
        self.context = context

    def transform(self, key: Any, row: Row | None) -> Row | None:
        if row is None:
            return None
        return (*row[:-2], self.context.timestamp, *row[-2:], *key_columns(key), *bounds(key))

    def process_all(self, columns: Columns) -> Columns:
        made = [
            None if row is None else (*row[:-2], time, *row[-2:], *key_columns(key), *bounds(key))
            for key, row, time in zip(columns.keys, columns.values, columns.timestamps, strict=True)
        ]
        return with_values(columns, made)


class AddBounds(ForColumns):
    def transform(self, key: Any, row: Row | None) -> Row | None:
        return None if row is None else (*row, *bounds(key))

    def process_all(self, columns: Columns) -> Columns:
        return with_values(columns, list(map(self.transform, columns.keys, columns.values)))


class Unchanged(ForColumns):
    """Passes the values of a table on: ksqlDB has a node here."""

    def transform(self, key: Any, row: Row | None) -> Row | None:
        return row

    def process_all(self, columns: Columns) -> Columns:
        return columns


class TransformRow(ForColumns):
    """Computes the values of a table anew."""

    def __init__(self, compute: Callable[[Row], Row]) -> None:
        self.compute = compute

    def transform(self, key: Any, row: Row | None) -> Row | None:
        return None if row is None else self.compute(row)

    def process_all(self, columns: Columns) -> Columns:
        return with_values(columns, computed(self.compute, columns.values))


def computed(compute: Callable[[Row], Row], values: list[Row | None]) -> list[Row | None]:
    if None not in values:
        return list(map(compute, cast("list[Row]", values)))
    return [None if row is None else compute(row) for row in values]


class Project(Processor, ForColumns):
    """Computes the values of a stream anew. Before an aggregate, records without a value are dropped: windowed ones
    would fail.
    """

    def __init__(self, compute: Callable[[Row], Row], drops: bool = False) -> None:
        self.compute, self.drops = compute, drops

    def process(self, record: Record) -> None:
        row = record.value
        if row is not None or not self.drops:
            self.context.forward(record.with_value(None if row is None else self.compute(row)))

    def process_all(self, columns: Columns) -> Columns:
        if self.drops and None in columns.values:
            columns = columns.where([at for at, row in enumerate(columns.values) if row is not None])
        return with_values(columns, computed(self.compute, columns.values))


class Filter(Processor, ForColumns):
    def __init__(self, passes: Callable[[Row], bool]) -> None:
        self.passes = passes

    def process(self, record: Record) -> None:
        if record.value is not None and self.passes(record.value):
            self.context.forward(record)

    def process_all(self, columns: Columns) -> Columns:
        passes = self.passes
        return columns.where([at for at, row in enumerate(columns.values) if row is not None and passes(row)])


class FlatMap(Processor, ForColumns):
    def __init__(self, explode: Callable[[Row], list[Row]]) -> None:
        self.explode = explode

    def process(self, record: Record) -> None:
        if record.value is not None:
            for row in self.explode(record.value):
                self.context.forward(record.with_value(row))

    def process_all(self, columns: Columns) -> Columns:
        made = [[] if row is None else self.explode(row) for row in columns.values]
        keys = [key for key, some in zip(columns.keys, made, strict=True) for _ in some]
        return Columns(keys, [row for some in made for row in some], *repeated(columns, made))


class SetTimestamp(Processor):
    """Gives records the time of a column; a row without one is dropped."""

    def __init__(self, extract: Extractor | None) -> None:
        assert extract is not None
        self.extract = extract

    def process(self, record: Record) -> None:
        time = self.extract(record, -1)
        if time >= 0:
            self.context.forward(record.with_timestamp(time))


class Emitter(Processor):
    """Hands the rows of a transient query to whoever asked for them."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit

    def process(self, record: Record) -> None:
        self.emit(record.key, record.value, record.timestamp)
