"""Transforms of schemas: Flatten and SetSchemaMetadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind
from moldau.connect.data import Record, Schema, Struct, Type
from moldau.connect.errors import ConfigError, DataError, SchemaBuilderError
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


def make_flatten(settings: Settings, side: Side) -> Transform:
    delimiter = settings["delimiter"]

    def joined(prefix: str, name: str) -> str:
        return f"{prefix}{delimiter}{name}" if prefix else name

    def fields(schema: Schema, prefix: str, optional: bool, default: Struct | None) -> Iterator[tuple[str, Schema]]:
        for place in data.fields_of(schema):
            name, inner = joined(prefix, place.name), place.schema
            own = inner.default if inner.default is not None else default.get(place.name) if default else None
            if inner.type is Type.STRUCT:
                yield from fields(inner, name, optional or inner.optional, own)
            elif inner.type is Type.MAP:
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            else:
                yield name, inner.but(optional=optional or inner.optional, default=own)

    @per_schema
    def updated(schema: Schema) -> Schema:
        found: dict[str, Schema] = {}
        for name, inner in fields(schema, "", schema.optional, schema.default):
            if name in found:
                raise SchemaBuilderError(f"Cannot create field because of field name duplication {name}")
            found[name] = inner
        return data.struct(found, **basics(schema))

    def values(struct: Struct, prefix: str) -> Iterator[tuple[str, Any]]:
        for place, value in struct:
            if place.schema.type is not Type.STRUCT:
                yield joined(prefix, place.name), struct.get(place.name)
            elif value is not None:
                yield from values(value, joined(prefix, place.name))

    def flat(value: dict[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for key, each in value.items():
            kind = data.type_of(each)
            if isinstance(each, dict):
                yield from flat(each, joined(prefix, key))
            elif each is not None and kind in (None, Type.STRUCT):
                found = type(each).__qualname__
                raise DataError(f"Flatten transformation does not support {found} (for field {joined(prefix, key)}).")
            else:
                yield joined(prefix, key), each

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if value is None:
            return record
        if schema is None:
            return side.put(record, None, dict(flat(require_map(value, "flattening"), "")))
        old = require_struct(value, "flattening")
        made = updated(schema)
        return side.put(record, made, Struct.of(made, dict(values(old, ""))))

    return apply


def make_set_metadata(settings: Settings, side: Side) -> Transform:
    name, version = settings["schema.name"], settings["schema.version"]
    with_default = settings["replace.null.with.default"]
    if name is None and version is None:
        raise ConfigError("Neither schema name nor version configured")

    @per_schema
    def updated(schema: Schema) -> Schema:
        data.fields_of(schema)
        new_name = schema.name if name is None else name
        new_version = schema.version if version is None else version
        return schema.but(name=new_name, version=new_version, checked=False)

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if schema is None and value is None:
            return record
        if schema is None:
            raise DataError("Schema required for [updating schema metadata]")
        made = updated(schema)
        if isinstance(value, Struct):
            value = Struct(made, tuple(carried(place, each, with_default) for place, each in value))
        return side.put(record, made, value)

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.struct(shape, side)
        if part is None or name in data.LOGICAL:
            return None
        return shape.put(side, Part(updated(part.schema), None, part.fields))

    return ruled(apply, rule)


FLATTEN = TransformClass(
    "Flatten",
    "Lifts the fields of nested structs or maps to the top level, under the joined names. Arrays stay as they are.",
    ConfigDef([Key("delimiter", default=".", doc="What joins the names.")]),
    make_flatten,
)
SET_SCHEMA_METADATA = TransformClass(
    "SetSchemaMetadata",
    "Sets the name and the version of the schema.",
    ConfigDef(
        [
            Key("schema.name", default=None, importance=Importance.HIGH, doc="The name of the schema."),
            Key("schema.version", Kind.INT, None, Importance.HIGH, "The version of the schema."),
            NULLS,
        ]
    ),
    make_set_metadata,
)
