"""Cast: fields, or the whole key or value, to another primitive type, with Java's narrowing."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind
from moldau.connect.data import Field, Instant, Record, Schema, Struct, Type
from moldau.connect.errors import ConfigError, DataError
from moldau.connect.transforms.kinds import (
    NULLS,
    Settings,
    Side,
    Transform,
    TransformClass,
    basics,
    carried,
    per_schema,
    require_map,
    require_struct,
)
from moldau.connect.transforms.straight import Part, Shape, Writer, ruled
from moldau.connect.values import date_text, to_string
from moldau.java import numbers

OUTPUTS = tuple(each for each in Type if each.primitive and each is not Type.BYTES)
TEMPORAL = (data.DATE, data.TIME, data.TIMESTAMP)


def parse_spec(mappings: list[str]) -> dict[str | None, Type]:
    """Read `field:type` pairs, or a single type for the whole value, which stands under None."""
    found: dict[str | None, Type] = {}
    for mapping in mappings:
        field, _, kind = mapping.rstrip(":").rpartition(":")
        if ":" in field or not mapping.rstrip(":"):
            raise ConfigError(f"Invalid mapping in casting spec: {mapping}")
        whole = ":" not in mapping.rstrip(":")
        found[None if whole else numbers.trim(field)] = _output(numbers.trim(kind))
    if None in found and len(mappings) > 1:
        raise ConfigError("A cast of the entire value must be the only one in the spec")
    return found


def _output(name: str) -> Type:
    try:
        kind = Type[name.upper()]
    except KeyError:
        raise ConfigError(f"Invalid type found in casting spec: {name}") from None
    if kind not in OUTPUTS:
        raise ConfigError(f"Cast transformation does not support casting to {kind.name}")
    return kind


def _check_spec(_name: str, value: list[str] | None) -> None:
    if not value:
        raise ConfigError("Must specify at least one field to cast.")
    parse_spec(value)


def cast(schema: Schema | None, value: Any, target: Type) -> Any:
    """Cast one value; without a schema the result carries its type."""
    if value is None:
        return None
    source = schema.type if schema else data.type_of(value)
    if source is None:
        raise DataError(f"A value of class {type(value).__qualname__} is not supported by Connect's data API")
    if not source.primitive:
        raise DataError(f"Cast transformation does not support casting from {source.name}")
    if schema and schema.name in TEMPORAL and target is not Type.STRING:
        value = data.encode_logical(schema, value)
    try:
        found = CASTS[target](schema, value)
    except ValueError:
        raise DataError(f"Value ({value}) was out of range for requested data type") from None
    return found if schema else data.typed(target, found)


def _unexpected(value: Any) -> DataError:
    return DataError(f"Unexpected type in Cast transformation: {type(value).__qualname__}")


def _whole(value: Any, bits: int) -> int:
    """Convert as `intValue` and its siblings do: a float saturates at an int or a long, and what is narrower is cut."""
    if isinstance(value, str):
        return numbers.parse_int(value, bits)
    if isinstance(value, float):
        wide = max(bits, 32)
        value = 0 if value != value else int(max(-(2.0 ** (wide - 1)), min(2.0 ** (wide - 1), value)))
        value = min(value, (1 << wide - 1) - 1)
    elif isinstance(value, Decimal):
        value = int(value) if value.adjusted() < 1000 else 0
    elif isinstance(value, Instant) or not isinstance(value, int):
        raise _unexpected(value)
    return data.wrap(int(value), bits)


def _to_whole(bits: int) -> Callable[[Schema | None, Any], int]:
    return lambda _schema, value: _whole(value, bits)


def _double(value: Any) -> float:
    if isinstance(value, str):
        return numbers.parse_double(value)
    if isinstance(value, Instant) or not isinstance(value, int | float | Decimal):
        raise _unexpected(value)
    return float(value)


def _boolean(_schema: Schema | None, value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() == "true"
    return value if isinstance(value, bool) else _whole(value, 64) != 0


def _string(schema: Schema | None, value: Any) -> str:
    if isinstance(value, Instant):
        return date_text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return to_string(schema, value)


CASTS: dict[Type, Callable[[Schema | None, Any], Any]] = {
    **{kind: _to_whole(bits) for kind, bits in data.BITS.items()},
    Type.FLOAT32: lambda _schema, value: data.to_float32(_double(value)),
    Type.FLOAT64: lambda _schema, value: _double(value),
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
}


def make_cast(settings: Settings, side: Side) -> Transform:
    casts = parse_spec(settings["spec"])
    whole = casts.get(None)
    with_default = settings["replace.null.with.default"]

    @per_schema
    def updated(schema: Schema) -> Schema:
        if whole:
            return Schema(whole, schema.optional, cast(schema, schema.default, whole), **basics(schema))
        fields = [(each.name, _cast_field(each, casts.get(each.name))) for each in data.fields_of(schema)]
        if schema.default is not None:
            raise DataError("Cast transformation does not support casting from STRUCT, which the default is")
        return data.struct(fields, optional=schema.optional, **basics(schema))

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if value is None:
            return record
        if schema is None and whole:
            return side.put(record, None, cast(None, value, whole))
        if schema is None:
            known = require_map(value, "cast types")
            return side.put(record, None, known | {k: cast(None, known.get(k), to) for k, to in casts.items()})
        made = updated(schema)
        if whole:
            return side.put(record, made, cast(schema, value, whole))
        old = require_struct(value, "cast types")
        values = tuple(
            _cast_value(place, made.fields[place.index], each, casts.get(place.name), with_default)
            for place, each in old
        )
        return side.put(record, made, Struct(made, values))

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.part(shape, side) if whole else writer.struct(shape, side)
        if part is None:
            return None
        made = updated(part.schema)
        if whole:
            if part.whole is None or made.name in data.LOGICAL:  # the name stays, and no longer fits
                return None
            to = partial(cast, part.schema, target=whole)
            return shape.put(side, Part(made, writer.call(to, part.whole, may_be_null=False)))
        fields = list(part.fields)
        for place in part.schema.fields:
            if (target := casts.get(place.name)) is not None:
                to = partial(cast, place.schema, target=target)
                fields[place.index] = writer.call(to, fields[place.index], place.schema.optional)
        return shape.put(side, Part(made, None, tuple(fields)))

    return ruled(apply, rule)


def _cast_field(place: Field, target: Type | None) -> Schema:
    if target is None:
        return place.schema
    schema = place.schema
    return Schema(target, schema.optional, cast(schema, schema.default, target))


def _cast_value(old: Field, new: Field, value: Any, target: Type | None, with_default: bool) -> Any:
    value = carried(old, value, with_default)
    return value if target is None else cast(old.schema, value, target)


CAST = TransformClass(
    "Cast",
    "Casts fields, or the whole key or value, to another type: numbers, booleans and strings to each other, bytes to "
    "strings in base64.",
    ConfigDef(
        [
            Key(
                "spec",
                Kind.LIST,
                importance=Importance.HIGH,
                doc="Fields and their new types, as field1:type,field2:type; or one type for the whole value. Types "
                "are int8, int16, int32, int64, float32, float64, boolean and string.",
                validator=_check_spec,
            ),
            NULLS,
        ]
    ),
    make_cast,
)
