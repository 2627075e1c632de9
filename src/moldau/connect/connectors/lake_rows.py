"""Rows of lake tables: structs as columns of Arrow, and keys.

Structs of one schema become columns all at once; a value of a plain type is not looked at on its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import time
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from moldau.connect.connectors.packages import needed
from moldau.connect.data import BITS, DATE, DECIMAL, LOGICAL, TIME, TIMESTAMP, Record, Schema, Struct, Type, scale
from moldau.connect.errors import ConnectError, DataError
from moldau.connect.shapes import plain

SCHEMAS_CACHED = 64
Key = tuple[Any, ...]
Part = tuple[Schema, list[Key], int]  # a schema, the values of each field, and how many they are


def key_of(record: Record, names: Sequence[str]) -> Key:
    """Return the key of a record without a value; a key that is not a struct is the value of the only column."""
    found = plain(record.key_schema, record.key)
    if not isinstance(found, dict):
        found = {names[0]: found} if len(names) == 1 else {}
    if missing := next((name for name in names if found.get(name) is None), None):
        raise DataError(f"The record has no value, and its key has no {missing}.")
    if several := next((name for name in names if isinstance(found[name], list | dict)), None):
        raise DataError(f"The key's {several} is not a single value.")
    return tuple(found[name] for name in names)


def key_of_row(row: Struct, names: tuple[str, ...]) -> Key:
    """Return the columns of a key; DataError if one is missing."""
    values = row.values
    key: list[Any] = []
    for at, schema, is_plain in _key_places(row.schema, names):
        value = values[at]
        value = schema.default if value is None else value
        if value is None:
            raise DataError(f"The value has no {row.schema.fields[at].name}, which is a column of the key.")
        key.append(value if is_plain else plain(schema, value))
    return tuple(key)


@lru_cache(SCHEMAS_CACHED)
def _key_places(schema: Schema, names: tuple[str, ...]) -> list[tuple[int, Schema, bool]]:
    found: list[tuple[int, Schema, bool]] = []
    for name in names:
        place = schema.by_name.get(name)
        if place is None:
            raise DataError(f"The value has no {name}, which is a column of the key.")
        if not place.schema.type.primitive:
            raise DataError(f"The value's {name}, a column of the key, is not a single value.")
        found.append((place.index, place.schema, _is_plain(place.schema)))
    return found


def parts_of(rows: Iterable[Struct]) -> list[Part]:
    """Turn rows into columns, those of one schema together."""
    parts: list[Part] = []
    for schema, group in groupby(rows, attrgetter("schema")):
        values = [one.values for one in group]
        parts.append((schema, list(zip(*values, strict=True)), len(values)))
    return parts


def arrow_table(parts: Sequence[Part], schema: Any) -> Any:
    """Make a table of rows; ConnectError if a value does not fit its column."""
    return _table(([one for part in parts for one in _values(part, column)] for column in schema), schema)


def key_table(keys: Iterable[Key], schema: Any) -> Any:
    columns = list(zip(*keys, strict=True)) or [()] * len(schema)
    return _table((list(map(_shown, one)) for one in columns), schema)


def _table(columns: Iterable[list[Any]], schema: Any) -> Any:
    pa = arrow()
    made: list[Any] = []
    for one, values in zip(schema, columns, strict=True):
        try:
            made.append(pa.array(values, one.type))
        except (pa.ArrowException, OverflowError) as error:
            raise DataError(f"A value does not fit the column {one.name} ({one.type}): {error}") from error
        if made[-1].null_count and not one.nullable:
            raise DataError(f"The column {one.name} takes no nulls, and a record has one.")
    return pa.Table.from_arrays(made, schema=pa.schema([pa.field(one.name, one.type, one.nullable) for one in schema]))


def _values(part: Part, column: Any) -> Sequence[Any]:
    """Return a column of rows as Arrow takes it."""
    schema, columns, count = part
    place = schema.by_name.get(column.name)
    if place is None:
        return [None] * count
    kind, found = place.schema, columns[place.index]
    if kind.default is not None:
        found = [kind.default if one is None else one for one in found]
    if not _is_plain(kind):
        return [_shown(plain(kind, one)) for one in found]
    if kind.type in BITS and arrow().types.is_floating(column.type):
        return [None if one is None else float(one) for one in found]
    return found


def _is_plain(schema: Schema) -> bool:
    return schema.type.primitive and schema.name not in LOGICAL


def _shown(value: Any) -> Any:
    return value.isoformat() if isinstance(value, time) else value


def arrow() -> Any:
    return needed("pyarrow", "A lake table", "delta")


def arrow_schema(schema: Schema) -> Any:
    """Return Arrow's schema of a struct."""
    pa = arrow()
    return pa.schema([pa.field(one.name, arrow_type(one.schema)) for one in schema.fields])


def arrow_type(schema: Schema) -> Any:
    """Return Arrow's type, of those that both Delta and Iceberg have: times of day are texts."""
    pa = arrow()
    named = {DATE: pa.date32, TIME: pa.string, TIMESTAMP: lambda: pa.timestamp("us", "UTC")}
    if schema.name in named:
        return named[schema.name]()
    if schema.name == DECIMAL:
        return pa.decimal128(38, scale(schema))
    match schema.type:
        case Type.STRUCT:
            return pa.struct([pa.field(one.name, arrow_type(one.schema)) for one in schema.fields])
        case Type.ARRAY:
            return pa.list_(arrow_type(_known(schema.value_schema)))
        case Type.MAP:
            return pa.map_(arrow_type(_known(schema.key_schema)), arrow_type(_known(schema.value_schema)))
        case Type.INT64:
            return pa.int64()
        case kind if kind in BITS:
            return pa.int32()
        case kind:
            simple = {Type.FLOAT32: pa.float32, Type.FLOAT64: pa.float64, Type.BOOLEAN: pa.bool_}
            return simple[kind]() if kind in simple else pa.binary() if kind is Type.BYTES else pa.string()


def _known(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("An array or a map has no schema for what is in it.")
    return schema


def key_schema(schema: Any, names: Sequence[str]) -> Any:
    if missing := next((name for name in names if name not in schema.names), None):
        raise ConnectError(f"The table has no column {missing}, which is one of its key.")
    return arrow().schema([schema.field(name) for name in names])
