"""INSERT INTO ... VALUES: expressions become the key, the value and the time of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.sql.catalogue import PSEUDO, Catalogue, Source
from moldau.sql.errors import SqlError
from moldau.sql.extensions import DeleteFrom
from moldau.sql.printer import expression_text, quoted
from moldau.sql.strictness import CannotCoerceError, given_value
from moldau.sql.tree import DATE, TIME, TIMESTAMP, Column, Compare, Expression, InsertValues, Logical, Type, walk
from moldau.sql.types import text

Row = tuple[Any, ...]
FORMATS: dict[Type, str] = {
    TIMESTAMP: ". Timestamp format must be yyyy-mm-ddThh:mm:ss[.S]",
    TIME: ". Time format must be hh:mm:ss[.S]",
    DATE: ". Date format must be yyyy-mm-dd",
}


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
    if statement.columns and len(statement.columns) != len(statement.values):
        raise SqlError(
            f"Expected number columns and values to match: {len(statement.columns)}, {len(statement.values)}"
        )
    headers = [name for name, _ in source.headers if name in statement.columns]
    if headers:
        raise SqlError(f"Cannot insert into HEADER columns: {', '.join(headers)}")
    _check_qualified(statement)
    try:
        return row_of(source, _values(statement, source), now_ms)
    except SqlError as error:
        raise SqlError(f"Failed to insert values into '{source.name}'. {error}") from None


def _values(statement: InsertValues, source: Source) -> dict[str, Any]:
    """Return the value of each column that the statement names; of all columns if it names none."""
    names = statement.columns or tuple(name for name, _ in (*source.schema.key, *source.stored_value))
    if len(names) != len(statement.values):
        given = ", ".join(map(expression_text, statement.values))
        raise SqlError(f"Expected a value for each column. Expected Columns: []. Got [{given}]")
    known = dict((*source.schema.key, *source.schema.value, *PSEUDO))
    for name in names:
        if name not in known:
            raise SqlError(f"Column name {quoted(name)} does not exist.")
        if name in dict(PSEUDO) and name != "ROWTIME":
            raise SqlError(f"Inserting into column {quoted(name)} is not allowed.")
    return {name: _value(name, each, known[name]) for name, each in zip(names, statement.values, strict=True)}


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
        without = [name for name, _ in source.schema.key if name not in values]
        if without:
            raise SqlError(f"Value for primary key column(s) {', '.join(without)} is required for tables")
        if not any(name in values for name, _ in columns):
            value = None
    time = values.get("ROWTIME")
    missing = all(part is None for part in key)
    return Inserted(source, None if missing else key, value, now_ms if time is None else time)


def _check_qualified(statement: InsertValues) -> None:
    """Refuse columns with the name of a source: there is none here."""
    for part in (each for value in statement.values for each in walk(value)):
        if isinstance(part, Column) and part.source is not None:
            raise SqlError(f"Failed to prepare statement: '{part.source}' is not a valid stream/table name or alias.")


def _value(name: str, expression: Expression, kind: Type) -> Any:
    if any(isinstance(part, Column) for part in walk(expression)):
        raise SqlError(f"Unsupported column reference in insert value: {expression_text(expression)}")
    try:
        return given_value(expression, kind)
    except CannotCoerceError as found:
        hint = FORMATS.get(kind, "") if str(found).startswith("STRING(") else ""
        raise SqlError(f"Expected type {text(kind)} for field {quoted(name)} but got {found}{hint}") from None
