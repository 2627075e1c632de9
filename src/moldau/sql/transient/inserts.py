"""INSERT INTO ... VALUES: expressions become the key, the value and the time of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.sql.catalogue import PSEUDO, Catalogue, Source
from moldau.sql.codegen import constant
from moldau.sql.errors import SqlError
from moldau.sql.extensions import DeleteFrom
from moldau.sql.printer import quoted
from moldau.sql.tree import BIGINT, Column, Compare, Expression, InsertValues, Logical, Type, walk

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Inserted:
    """A row to be written. Key or value are None if they have no columns at all; a table without values deletes."""

    source: Source
    key: Row | None
    value: Row | None
    timestamp: int


def insertable(name: str, catalogue: Catalogue) -> Source:
    """Return a source that rows may be inserted into."""
    source = catalogue.sources.get(name)
    if source is None:
        raise SqlError(f"Cannot insert values into an unknown stream/table: {quoted(name)}{catalogue.hint(name)}")
    if source.window is not None:
        raise SqlError("Cannot insert values into windowed stream/table!")
    if source.read_only:
        raise SqlError(f"Cannot insert values into read-only {source.kind.lower()}: {name}")
    return source


def inserted(statement: InsertValues, catalogue: Catalogue, now_ms: int) -> Inserted:
    """Evaluate a statement."""
    source = insertable(statement.name, catalogue)
    names = statement.columns or _all(source)
    if len(names) != len(statement.values):
        raise SqlError(_counts(source, statement))
    headers = {name for name, _ in source.headers}
    known = dict((*source.schema.key, *source.schema.value, ("ROWTIME", BIGINT)))
    values: dict[str, Any] = {}
    for name, expression in zip(names, statement.values, strict=True):
        if name in headers:
            raise SqlError(f"Cannot insert into HEADER columns: {name}")
        if name in dict(PSEUDO) and name != "ROWTIME":
            raise SqlError(f"Inserting into column {quoted(name)} is not allowed.")
        if name not in known:
            raise SqlError(f"Column name {quoted(name)} does not exist.")
        values[name] = _value(name, expression, known[name])
    return row_of(source, values, now_ms)


def deleted(statement: DeleteFrom, catalogue: Catalogue, now_ms: int) -> Inserted:
    """Return the tombstone of a row: WHERE must give each key column a value."""
    source = insertable(statement.name, catalogue)
    if source.kind != "TABLE":
        raise SqlError(f"DELETE FROM is for tables. {source.name} is a stream: its rows are events, which stay.")
    if source.by_query:
        raise SqlError(f"A query fills {source.name}, and would not know of it: delete from what it reads.")
    types = dict(source.schema.key)
    key: dict[str, Any] = {}
    conditions = [statement.where]
    while conditions:
        match conditions.pop():
            case Logical(op="AND", left=left, right=right):
                conditions += [left, right]
            case Compare(op="=", left=Column(name=name), right=value) if name in types and name not in key:
                key[name] = _value(name, value, types[name])
            case _:
                raise SqlError(f"DELETE FROM takes a condition of the form {_shape(source)}.")
    if len(key) < len(types) or None in key.values():
        raise SqlError(f"DELETE FROM takes a condition of the form {_shape(source)}.")
    return Inserted(source, tuple(key[name] for name in types), None, now_ms)


def _shape(source: Source) -> str:
    return " AND ".join(f"{name} = ..." for name, _ in source.schema.key)


def row_of(source: Source, values: Mapping[str, Any], now_ms: int) -> Inserted:
    """Make a row of values by column; columns without a value are null."""
    key = tuple(values.get(name) for name, _ in source.schema.key)
    columns = source.stored_value
    value: Row | None = tuple(values.get(name) for name, _ in columns)
    if source.kind == "TABLE":
        for (name, _), part in zip(source.schema.key, key, strict=True):
            if part is None:
                raise SqlError(
                    f"Failed to insert values into '{source.name}'. Value for primary key column(s) {quoted(name)} is "
                    "required for tables"
                )
        if not any(name in values for name, _ in columns):
            value = None
    time = values.get("ROWTIME")
    missing = all(part is None for part in key)
    return Inserted(source, None if missing else key, value, now_ms if time is None else time)


def _all(source: Source) -> tuple[str, ...]:
    return tuple(name for name, _ in (*source.schema.key, *source.stored_value))


def _counts(source: Source, statement: InsertValues) -> str:
    if statement.columns:
        return (
            f"Expected number columns and values to match: {list(map(quoted, statement.columns))}, "
            f"{len(statement.values)}"
        )
    count = len(_all(source))
    return f"Expected a value for each of the {count} columns of {source.name}, but got {len(statement.values)} values"


def _value(name: str, expression: Expression, kind: Type) -> Any:
    for part in walk(expression):
        if isinstance(part, Column):
            if part.source is not None:
                raise SqlError(
                    f"Failed to prepare statement: '{part.source}' is not a valid stream/table name or alias."
                )
            raise SqlError(f"Unsupported column reference in INSERT VALUES: {quoted(part.name)}")
    try:
        return constant(expression, kind)
    except SqlError as error:
        raise SqlError(f"Failed to insert values into column {quoted(name)}: {error}") from None
