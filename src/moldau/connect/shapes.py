"""Schemas of plain Python values: from type hints, or from the values themselves, widened as others come.

A dict or a dataclass becomes a struct, `datetime`, `date`, `time` and `Decimal` Connect's logical types. Fields that
are inferred are optional: the next row may lack them. `plain` is the way back.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from enum import Enum
from typing import Any
from uuid import UUID

from moldau.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    DATE_SCHEMA,
    DECIMAL,
    FLOAT64,
    INT64,
    STRING,
    TIME,
    TIME_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    Instant,
    Schema,
    Struct,
    Type,
    array,
    decimal,
    map_of,
    scale,
    struct,
)
from moldau.connect.data import PLAIN as BY_CLASS
from moldau.connect.errors import DataError

PLAIN: dict[type, Schema] = {
    bool: BOOLEAN,
    int: INT64,
    float: FLOAT64,
    str: STRING,
    bytes: BYTES,
    UUID: STRING,
    datetime: TIMESTAMP_SCHEMA,
    date: DATE_SCHEMA,
    time: TIME_SCHEMA,
}
EXACT = Context(prec=400)
SCALE = 9  # of a Decimal of which only the type is known
# The classes that a value of a type may have.
CLASSES: dict[Type, tuple[type, ...]] = {
    Type.BOOLEAN: (bool,),
    Type.STRING: (str, UUID, Enum),
    Type.BYTES: (bytes, bytearray, memoryview),
    Type.FLOAT32: (float, int),
    Type.FLOAT64: (float, int),
}
# What needs no conversion to a schema without a name.
STRAIGHT = {**BY_CLASS, int: Type.INT64}
MOMENTS: dict[str, tuple[type, ...]] = {DATE: (date,), TIME: (time,), TIMESTAMP: (datetime, date)}


def schema_of(hint: Any) -> Schema:
    """Return the schema of a type: a plain one, `list[X]`, `dict[str, X]`, `X | None`, a dataclass or a TypedDict."""
    if isinstance(hint, Schema):
        return hint
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        known = [one for one in inner if one is not type(None)]
        if len(known) == 1:
            found = schema_of(known[0])
            return found.but(optional=True) if len(known) < len(inner) else found
    elif origin is typing.Annotated:
        return schema_of(inner[0])
    elif origin in (list, tuple, set, frozenset) and inner:
        return array(schema_of(inner[0]))
    elif origin in (dict, Mapping) and len(inner) == 2:
        return map_of(schema_of(inner[0]), schema_of(inner[1]))
    elif hint is Decimal:
        return decimal(SCALE)
    elif isinstance(hint, type):
        if hint in PLAIN:
            return PLAIN[hint]
        if issubclass(hint, Enum):
            return STRING
        if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
            hints = typing.get_type_hints(hint)
            return struct({name: schema_of(one) for name, one in hints.items()}, name=hint.__qualname__)
    raise DataError(f"There is no schema for {hint}: use plain types, list, dict, a dataclass or a TypedDict.")


def infer(value: Any) -> Schema | None:
    """Return the schema of a value, optional at each place; None if nothing can be said."""
    if value is None:
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return schema_of(type(value)).but(optional=True)
    if isinstance(value, Mapping):
        fields = {str(name): infer(each) for name, each in value.items()}
        return struct({name: one for name, one in fields.items() if one is not None}, optional=True)
    if isinstance(value, list | tuple | set | frozenset):
        inner: Schema | None = None
        for each in value:
            inner = merged(inner, infer(each))
        return None if inner is None else array(inner, optional=True)
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return decimal(max(0, -exponent) if isinstance(exponent, int) else 0, optional=True)
    if isinstance(value, Enum):
        return STRING.but(optional=True)
    for kind in type(value).__mro__:
        if kind in PLAIN:
            return PLAIN[kind].but(optional=True)
    if isinstance(value, bytearray | memoryview):
        return BYTES.but(optional=True)
    raise DataError(f"A value of type {type(value).__qualname__} has no schema.")


def merged(one: Schema | None, other: Schema | None, place: str = "value") -> Schema | None:
    """Return the schema that takes what either takes: more fields, wider numbers; DataError if there is none."""
    if one is None or other is None or one == other:
        return one or other
    optional = one.optional or other.optional
    types_ = {one.type, other.type}
    if types_ == {Type.STRUCT}:
        fields: dict[str, Schema] = {each.name: each.schema for each in one.fields}
        for each in other.fields:
            found = merged(fields.get(each.name), each.schema, each.name)
            assert found is not None
            fields[each.name] = found if each.name in fields else found.but(optional=True)
        return struct(fields, optional=optional, name=one.name, version=one.version, doc=one.doc)
    if types_ == {Type.ARRAY}:
        inner = merged(one.value_schema, other.value_schema, f"element of {place}")
        return one.but(value_schema=inner, optional=optional)
    if one.name == other.name == DECIMAL:
        return decimal(max(scale(one), scale(other)), optional=optional)
    if types_ == {Type.INT64, Type.FLOAT64} and one.name is None and other.name is None:
        return FLOAT64.but(optional=optional)
    if one.type is other.type and one.name == other.name:
        return one.but(optional=optional)
    raise DataError(f"{place} was of type {_shown(one)} and now is of type {_shown(other)}")


def _shown(schema: Schema) -> str:
    return schema.name.rpartition(".")[2] if schema.name else schema.type.name


def convert(schema: Schema, value: Any, place: str = "value") -> Any:
    """Turn a plain value into one of a schema; DataError if it does not fit."""
    if value is None:
        if not schema.optional and schema.default is None:
            raise DataError(f"{place} is missing, and its schema does not allow that")
        return None
    if schema.name == DECIMAL:
        return _decimal(schema, value, place)
    if schema.name in MOMENTS:
        return value if isinstance(value, Instant) else _moment(schema.name, value, place)
    match schema.type:
        case Type.STRUCT:
            return _struct(schema, value, place)
        case Type.ARRAY if isinstance(value, list | tuple | set | frozenset):
            inner = schema.value_schema
            return [convert(inner, each, f"element of {place}") if inner else each for each in value]
        case Type.MAP if isinstance(value, Mapping):
            keys, values = schema.key_schema, schema.value_schema
            assert keys is not None and values is not None
            return {convert(keys, key, place): convert(values, each, place) for key, each in value.items()}
        case Type.ARRAY | Type.MAP:
            raise _misfit(schema, value, place)
    wanted = CLASSES.get(schema.type, (int,))
    if not isinstance(value, wanted) or (isinstance(value, bool) and schema.type is not Type.BOOLEAN):
        raise _misfit(schema, value, place)
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return float(value)
    if schema.type is Type.STRING:
        return str(value.value if isinstance(value, Enum) else value)
    return bytes(value) if schema.type is Type.BYTES else value


def _misfit(schema: Schema, value: Any, place: str) -> DataError:
    return DataError(f"{place} is a {type(value).__qualname__}, and its schema says {_shown(schema)}")


def _decimal(schema: Schema, value: Any, place: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, Decimal | int):
        raise _misfit(schema, value, place)
    made = Decimal(value)
    try:
        exact = EXACT.quantize(made, Decimal(1).scaleb(-scale(schema)))
    except InvalidOperation:
        raise _misfit(schema, value, place) from None
    if exact != made:
        raise DataError(f"{place} is {value}, and its schema has {scale(schema)} digits after the point")
    return exact


def _moment(name: str, value: Any, place: str) -> Instant:
    if not isinstance(value, MOMENTS[name]) or (name == DATE and isinstance(value, datetime)):
        raise DataError(f"{place} is a {type(value).__qualname__}, and its schema says {name.rpartition('.')[2]}")
    return Instant.of(value)


def _struct(schema: Schema, value: Any, place: str) -> Struct:
    if isinstance(value, Struct):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if not isinstance(value, Mapping):
        raise _misfit(schema, value, place)
    more = () if value.keys() <= schema.by_name.keys() else [name for name in value if name not in schema.by_name]
    if (unknown := next((name for name in more if infer(value[name]) is not None), None)) is not None:
        raise DataError(f"{place} has a field {unknown} that its schema lacks")
    found: list[Any] = []
    for one in schema.fields:
        each, kind = value.get(one.name), one.schema
        is_one = kind.name is None and STRAIGHT.get(each.__class__) is kind.type
        found.append(each if is_one else convert(kind, each, one.name))
    return Struct(schema, tuple(found))


class Shape:
    """The schema of one stream of values: the one that was declared, or one that grows with the values."""

    def __init__(self, declared: Any = None) -> None:
        self._is_fixed = declared is not None
        self._schema = schema_of(declared) if declared is not None else None

    def take(self, value: Any) -> tuple[Schema | None, Any]:
        """Return a value with its schema; DataError if it fits none."""
        if value is None or isinstance(value, Struct):
            return (None, None) if value is None else (value.schema, value)
        if not self._is_fixed and dataclasses.is_dataclass(value):
            found = schema_of(type(value))
            return found, convert(found, value)
        if self._schema is not None:
            try:
                return self._schema, convert(self._schema, value)
            except DataError:
                if self._is_fixed:
                    raise
        self._schema = merged(self._schema, infer(value))
        if self._schema is None:
            return None, value
        self._schema = self._schema.but(optional=False)
        return self._schema, convert(self._schema, value)


def plain(schema: Schema | None, value: Any) -> Any:
    """Turn a value of Connect into a plain one: structs into dicts, logical types into Python's."""
    if value is None:
        return None
    if isinstance(value, Struct):
        return {one.name: plain(one.schema, value.get(one.name)) for one in value.schema.fields}
    if isinstance(value, list | tuple):
        return [plain(schema.value_schema if schema else None, each) for each in value]
    if isinstance(value, dict):
        keys, values = (schema.key_schema, schema.value_schema) if schema else (None, None)
        return {plain(keys, key): plain(values, each) for key, each in value.items()}
    if isinstance(value, Instant):
        name = schema.name if schema else TIMESTAMP
        return value.date if name == DATE else value.time if name == TIME else value.datetime
    return value
