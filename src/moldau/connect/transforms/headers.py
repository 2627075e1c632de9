"""Transforms of headers: DropHeaders, HeaderFrom and InsertHeader."""

from __future__ import annotations

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, distinct, non_empty_list, non_null, one_of
from moldau.connect.data import Header, Record, Schema, Struct
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
from moldau.connect.values import parse


def make_drop(settings: Settings, _side: Side) -> Transform:
    dropped = set(settings["headers"])

    def kept(headers: tuple[Header, ...]) -> tuple[Header, ...]:
        return tuple(each for each in headers if each.name not in dropped)

    def rule(shape: Shape, writer: Writer) -> Shape:
        return shape.but(headers=f"{writer.bind(kept)}({shape.headers})", added=kept(shape.added))

    return ruled(lambda record: record.but(headers=kept(record.headers)), rule)


def make_insert(settings: Settings, _side: Side) -> Transform:
    literal = parse(settings["value.literal"])
    header = Header(settings["header"], literal.schema, literal.value)

    def rule(shape: Shape, _writer: Writer) -> Shape:
        return shape.but(headers=shape.headers, added=(*shape.added, header))

    return ruled(lambda record: record.but(headers=(*record.headers, header)), rule)


def make_header_from(settings: Settings, side: Side) -> Transform:
    fields, headers = settings["fields"], settings["headers"]
    move, with_default = settings["operation"] == "move", settings["replace.null.with.default"]
    if len(fields) != len(headers):
        raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")

    @per_schema
    def without_moved(schema: Schema) -> Schema:
        kept = [(each.name, each.schema) for each in data.fields_of(schema) if each.name not in fields]
        return data.struct(kept, **basics(schema))

    def header(value: Struct, field: str, name: str) -> Header:
        place = value.schema.field(field)
        if place is None:
            raise DataError(f"Unknown field: {field}")
        read = value.get if with_default else value.get_without_default
        return Header(name, place.schema, read(field))

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if schema is None:
            known = require_map(value, f"header {settings['operation']}")
            new = (Header(name, None, known.get(field)) for field, name in zip(fields, headers, strict=True))
            kept = {key: each for key, each in known.items() if not move or key not in fields}
            return side.put(record, None, kept, (*record.headers, *new))
        old = require_struct(value, f"header {settings['operation']}")
        new = tuple(header(old, field, name) for field, name in zip(fields, headers, strict=True))
        if not move:
            return record.but(headers=(*record.headers, *new))
        made = without_moved(schema)
        values = (carried(place, each, with_default) for place, each in old if place.name not in fields)
        return side.put(record, made, Struct(made, tuple(values)), (*record.headers, *new))

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.struct(shape, side)
        if part is None or not all(field in part.schema.by_name for field in fields):
            return None
        for field, name in zip(fields, headers, strict=True):
            place = part.schema.by_name[field]
            shape = shape.with_header(writer, name, place.schema, part.fields[place.index])
        if not move:
            return shape
        kept = tuple(part.fields[place.index] for place in part.schema.fields if place.name not in fields)
        return shape.put(side, Part(without_moved(part.schema), None, kept))

    return ruled(apply, rule)


DROP_HEADERS = TransformClass(
    "DropHeaders",
    "Removes headers.",
    ConfigDef(
        [
            Key(
                "headers",
                Kind.LIST,
                importance=Importance.HIGH,
                validator=distinct(),
                doc="The names of the headers to remove.",
            )
        ]
    ),
    make_drop,
    sides=False,
)
INSERT_HEADER = TransformClass(
    "InsertHeader",
    "Adds a header to each record.",
    ConfigDef(
        [
            Key("header", importance=Importance.HIGH, validator=non_null, doc="The name of the header."),
            Key(
                "value.literal",
                importance=Importance.HIGH,
                validator=non_null,
                doc="The value of the header. Its type is guessed as SimpleHeaderConverter does.",
            ),
        ]
    ),
    make_insert,
    sides=False,
)
HEADER_FROM = TransformClass(
    "HeaderFrom",
    "Copies or moves fields to headers.",
    ConfigDef(
        [
            Key(
                "fields",
                Kind.LIST,
                importance=Importance.HIGH,
                validator=non_empty_list,
                doc="The names of the fields.",
            ),
            Key(
                "headers",
                Kind.LIST,
                importance=Importance.HIGH,
                validator=non_empty_list,
                doc="The names of the headers, one for each field.",
            ),
            Key(
                "operation",
                importance=Importance.HIGH,
                validator=one_of("move", "copy"),
                doc="Whether to copy or to move the fields.",
            ),
            NULLS,
        ]
    ),
    make_header_from,
)
