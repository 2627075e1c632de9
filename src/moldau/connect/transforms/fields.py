"""Transforms of fields: ExtractField, HoistField, ReplaceField, InsertField, MaskField and ValueToKey."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from moldau.connect import data
from moldau.connect.config_def import (
    ConfigDef,
    Importance,
    Key,
    Kind,
    distinct,
    non_empty,
    one_of_any_case,
)
from moldau.connect.data import Instant, Int32, Record, Schema, Struct, Type
from moldau.connect.errors import ArgumentError, ConfigError, DataError, invalid
from moldau.connect.transforms.kinds import (
    KEY,
    NULLS,
    VALUE,
    Settings,
    Side,
    Transform,
    TransformClass,
    basics,
    carried,
    per_schema,
    require_map,
    require_struct,
    typed_by,
)
from moldau.connect.transforms.straight import Expression, Part, Shape, Writer, ruled
from moldau.connect.values import parse_decimal, to_number

# What masks a value of a type, if no replacement is given.
MASKS: dict[Type, Any] = {
    Type.BOOLEAN: False,
    **dict.fromkeys(data.BITS, 0),
    Type.FLOAT32: 0.0,
    Type.FLOAT64: 0.0,
    Type.STRING: "",
    Type.ARRAY: [],
    Type.MAP: {},
}
SOME_LOGICAL = {data.DECIMAL: Decimal(0), **dict.fromkeys((data.DATE, data.TIME, data.TIMESTAMP), Instant(0))}


def parse_path(text: str, version: str) -> tuple[str, ...]:
    """Split a path of `field.syntax.version` V2 at its dots; backticks hold a name with dots together."""
    if version.upper() == "V1":
        return (text,)
    steps: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "`":
            step, at = _quoted_step(text, at)
        else:
            end = text.find(".", at)
            step, at = (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)
        steps.append(step)
    return (*steps, "") if text.endswith(".") else tuple(steps)


def _quoted_step(text: str, opening: int) -> tuple[str, int]:
    """Read a name in backticks; one inside it counts only before a dot or at the end, and not after a backslash."""
    start = at = opening + 1
    name = ""
    while True:
        at = text.find("`", at)
        escaped = at > 0 and text[at - 1] == "\\"
        last = at == len(text) - 1
        if at < 0 or (last and escaped):
            raise ConfigError(
                f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at position "
                f"{opening} to escape it"
            )
        if last:
            return name + text[start:at], at + 1
        if text[at + 1] != ".":
            at += 1
        elif escaped:
            name += text[start : at - 1] + "`"
            at += 1
            start = at
        else:
            return name + text[start:at], at + 2


def make_extract(settings: Settings, side: Side) -> Transform:
    *path, last = parse_path(settings["field"], settings["field.syntax.version"]) or ("",)
    with_default = settings["replace.null.with.default"]

    def schema_of(schema: Schema) -> Schema:
        found: Schema | None = schema
        for step in (*path, last):
            place = found.field(step) if found else None
            found = place.schema if place else None
        if found is None:
            raise ArgumentError(f"Unknown field: {settings['field']}")
        return found

    def from_struct(value: Any) -> Any:
        current = value
        for step in path:
            current = require_struct(current, "nested field access").get(step)
            if current is None:
                return None
        found = require_struct(current, "field extraction")
        return found.get(last) if with_default else found.get_without_default(last)

    def from_map(value: Any) -> Any:
        current = require_map(value, "field extraction")
        for step in path:
            current = current.get(step)
            if current is None:
                return None
            current = require_map(current, "nested field access")
        return current.get(last)

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if schema is None:
            return side.put(record, None, None if value is None else from_map(value))
        if value is not None:
            require_struct(value, "field extraction")
        return side.put(record, schema_of(schema), None if value is None else from_struct(value))

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.struct(shape, side)
        place = None if part is None or path else part.schema.by_name.get(last)
        if part is None or place is None:
            return None
        found = part.fields[place.index]
        writer.unless(f"{found.code} is not None")  # what comes after does not change a null
        return shape.put(side, Part(place.schema, found))

    return ruled(apply, rule)


def make_hoist(settings: Settings, side: Side) -> Transform:
    name = settings["field"]
    hoisted = per_schema(lambda schema: data.struct([(name, schema)]))

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if schema is None:
            return side.put(record, None, {name: value})
        return side.put(record, hoisted(schema), Struct.of(hoisted(schema), {name: value}))

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.part(shape, side)
        return part and shape.put(side, Part(hoisted(part.schema), None, (writer.whole(part),)))

    return ruled(apply, rule)


def parse_renames(mappings: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for mapping in mappings:
        parts = mapping.rstrip(":").split(":")
        if len(parts) != 2:
            raise invalid("renames", f"[{', '.join(mappings)}]", f"Invalid rename mapping: {mapping}")
        found[parts[0]] = parts[1]
    return found


def _check_renames(_name: str, value: list[str]) -> None:
    parse_renames(value)


def make_replace(settings: Settings, side: Side) -> Transform:
    exclude, include = set(settings["exclude"]), set(settings["include"])
    renames = parse_renames(settings["renames"])
    origin: dict[str, str] = {new: old for old, new in renames.items()}
    with_default = settings["replace.null.with.default"]

    def kept(name: str) -> bool:
        return name not in exclude and (not include or name in include)

    @per_schema
    def updated(schema: Schema) -> Schema:
        fields = [(renames.get(each.name, each.name), each.schema) for each in schema.fields if kept(each.name)]
        return data.struct(fields, **basics(schema))

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if value is None:
            return record
        if schema is None:
            known = require_map(value, "field replacement")
            return side.put(record, None, {renames.get(k, k): each for k, each in known.items() if kept(k)})
        old = require_struct(value, "field replacement")
        made = updated(old.schema)
        read = old.get if with_default else old.get_without_default
        if origin.keys() & made.by_name.keys():
            found = {place.name: origin.get(place.name, place.name) for place in made.fields}
            read_all = {new: (name, read(name)) for new, name in found.items()}  # refuses a name that is not there
            values = {
                new: _moved(old.schema.by_name[name].schema, made.by_name[new].schema, each)
                for new, (name, each) in read_all.items()
            }
            return side.put(record, made, Struct.of(made, values))
        return side.put(
            record, made, Struct(made, tuple(carried(place, read(place.name), False) for place in made.fields))
        )

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.struct(shape, side)
        if part is None:
            return None
        made = updated(part.schema)
        sources = [part.schema.by_name.get(origin.get(place.name, place.name)) for place in made.fields]
        found = tuple(
            part.fields[source.index]
            for source, place in zip(sources, made.fields, strict=True)
            if source is not None and source.schema == place.schema  # another field may have had the new name
        )
        return shape.put(side, Part(made, None, found)) if len(found) == len(sources) else None

    return ruled(apply, rule)


def _moved(source: Schema, target: Schema, value: Any) -> Any:
    """Return the value of a field for another one, with the class of Java's object.

    A Long or a Double is refused for a narrower field: in Python they have the same class as what fits.
    """
    wide = source.name not in data.LOGICAL and source.type in (Type.INT64, Type.FLOAT64)
    if value is not None and wide and target.name not in data.LOGICAL and target.type is not source.type:
        kind = "Long" if source.type is Type.INT64 else "Double"
        raise DataError(f"Invalid object for schema with type {target.type.name}: class {kind}")
    return typed_by(source, value)


INSERTIONS: dict[str, tuple[Schema, str]] = {
    "topic.field": (data.STRING, "the topic"),
    "partition.field": (data.INT32, "the partition"),
    "offset.field": (data.INT64, "the offset, which only records of sinks have"),
    "timestamp.field": (data.TIMESTAMP_SCHEMA, "the timestamp"),
    "static.field": (data.STRING, "a value that is always the same"),
}


def make_insert(settings: Settings, side: Side) -> Transform:
    with_default = settings["replace.null.with.default"]
    wanted: list[tuple[str, str, Schema]] = []
    for setting, (schema, _) in INSERTIONS.items():
        text = settings[setting]
        if text is not None:
            optional = not text.endswith("!")
            name = text[:-1] if text.endswith(("?", "!")) else text
            wanted.append((setting, name, schema.but(optional=optional)))
    if not wanted:
        raise ConfigError("No field insertion configured")
    if settings["static.field"] is not None and settings["static.value"] is None:
        raise invalid("static.value", "null", f"No value specified for static field: {settings['static.field']}")

    @per_schema
    def updated(schema: Schema) -> Schema:
        old = [(each.name, each.schema) for each in schema.fields]
        return data.struct(old + [(name, inserted) for _, name, inserted in wanted], **basics(schema))

    def found(setting: str, record: Record) -> Any:
        match setting:
            case "topic.field":
                return record.topic
            case "partition.field":
                return None if record.partition is None else Int32(record.partition)
            case "offset.field":
                if not record.is_sink:
                    raise DataError("Only SinkRecord supported for [field insertion], found: SourceRecord")
                return record.offset
            case "timestamp.field":
                return record.timestamp
            case _:
                return settings["static.value"]

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if value is None:
            return record
        if schema is None:
            known = require_map(value, "field insertion")
            given = ((name, found(setting, record)) for setting, name, _ in wanted)
            return side.put(record, None, known | {name: each for name, each in given if each is not None})
        old = require_struct(value, "field insertion")
        made = updated(old.schema)
        values = [carried(place, each, with_default) for place, each in old]
        for setting, _, inserted in wanted:
            each = found(setting, record)
            values.append(Instant(each) if inserted.name and each is not None else each)
        return side.put(record, made, Struct(made, tuple(values)))

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.struct(shape, side)
        if part is None:
            return None
        static = settings["static.value"]
        more = tuple(_inserted(setting, inserted, static, shape, writer) for setting, _, inserted in wanted)
        return shape.put(side, Part(updated(part.schema), None, part.fields + more))

    return ruled(apply, rule)


def _inserted(setting: str, schema: Schema, static: Any, shape: Shape, writer: Writer) -> Expression:
    """Return the expression of what is inserted; a record without what is required goes step by step."""
    if setting == "static.field":
        return writer.constant(static)
    if setting == "topic.field":
        return Expression(shape.topic)
    name = setting.partition(".")[0]
    if setting == "offset.field" or not schema.optional:
        writer.unless(f"record.{name} is not None")
    made = {"partition": "Int32(record.partition)", "timestamp": "Instant(record.timestamp)"}
    return writer.computed(f"None if record.{name} is None else {made.get(name, f'record.{name}')}")


def mask(value: Any, replacement: str | None) -> Any:
    """Return what stands in for a value, which carries its type."""
    kind = data.type_of(value)
    if value is None:
        return None
    if replacement is None:
        return _null_value(value, kind)
    if isinstance(value, str):
        return replacement
    try:
        if isinstance(value, data.BigInt):
            return data.BigInt(replacement)
        if isinstance(value, Decimal):
            return parse_decimal(replacement)
    except ValueError:
        raise DataError(f"Unable to convert {replacement} to number") from None
    if kind in data.BITS or kind in (Type.FLOAT32, Type.FLOAT64):
        return data.typed(kind, to_number(replacement, kind))
    raise DataError(f"Cannot mask value of type {type(value).__qualname__} with custom replacement.")


def _null_value(value: Any, kind: Type | None) -> Any:
    if isinstance(value, Decimal | data.BigInt):
        return type(value)(0)
    if isinstance(value, Instant):
        return Instant(0)
    if kind not in MASKS:
        raise DataError(f"Cannot mask value of type: {type(value).__qualname__}")
    return data.typed(kind, MASKS[kind])


def make_mask(settings: Settings, side: Side) -> Transform:
    masked, replacement = dict.fromkeys(settings["fields"]), settings["replacement"]
    with_default = settings["replace.null.with.default"]

    def field(place: data.Field, value: Any) -> Any:
        value = carried(place, value, with_default)
        return _masked(place.schema, replacement, value) if place.name in masked else value

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if schema is None:
            known = require_map(value, "mask fields")
            return side.put(record, None, known | {name: mask(known.get(name), replacement) for name in masked})
        old = require_struct(value, "mask fields")
        return side.put(record, schema, Struct(old.schema, tuple(field(place, each) for place, each in old)))

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.struct(shape, side)
        if part is None:
            return None
        fields = list(part.fields)
        for place in part.schema.fields:
            if place.name in masked:
                fields[place.index] = _mask_of(place.schema, replacement, fields[place.index], writer)
        return shape.put(side, Part(part.schema, None, tuple(fields)))

    return ruled(apply, rule)


def _mask_of(schema: Schema, replacement: str | None, value: Expression, writer: Writer) -> Expression:
    """Return what stands in for the values of a field: it is the same for all of a type."""
    some = SOME_LOGICAL.get(schema.name or "", MASKS.get(schema.type))
    if some is None:
        raise DataError(f"Values of {schema} are not masked, unless they are null")
    stand_in = writer.constant(_masked(schema, replacement, some))
    if not schema.optional:
        return stand_in
    return writer.computed(f"None if {value.code} is None else {stand_in.code}")


def _masked(schema: Schema, replacement: str | None, value: Any) -> Any:
    return mask(typed_by(schema, value), replacement)


def make_value_to_key(settings: Settings, _side: Side) -> Transform:
    names = settings["fields"]
    with_default = settings["replace.null.with.default"]

    @per_schema
    def key_schema(schema: Schema) -> Schema:
        for name in names:
            if schema.field(name) is None:
                raise DataError(f"Field does not exist: {name}")
        return data.struct([(name, schema.by_name[name].schema) for name in names])

    def apply(record: Record) -> Record:
        value = record.value
        if record.value_schema is None:
            known = require_map(value, "copying fields from value to key")
            return KEY.put(record, None, {name: known.get(name) for name in names})
        old = require_struct(value, "copying fields from value to key")
        made = key_schema(old.schema)
        values = (carried(old.schema.by_name[name], old.get_without_default(name), with_default) for name in names)
        return VALUE.put(KEY.put(record, made, Struct(made, tuple(values))), old.schema, old)

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.struct(shape, VALUE)
        if part is None:
            return None
        made = key_schema(part.schema)
        found = tuple(part.fields[part.schema.by_name[name].index] for name in names)
        return shape.put(KEY, Part(made, None, found))

    return ruled(apply, rule)


OTHERS = distinct(may_be_empty=True)
FIELD = Key("field", doc="The name of the field.")
FIELDS = Key("fields", Kind.LIST, importance=Importance.HIGH, validator=distinct(), doc="The names of the fields.")
EXTRACT_FIELD = TransformClass(
    "ExtractField",
    "Replaces the key or value by one of its fields.",
    ConfigDef(
        [
            FIELD,
            NULLS,
            Key(
                "field.syntax.version",
                default="V1",
                importance=Importance.HIGH,
                validator=one_of_any_case("V1", "V2"),
                doc="How a field is named: V1 is a name of the top level; V2 is a path with dots, where backticks "
                "hold a name with dots together.",
            ),
        ]
    ),
    make_extract,
)
HOIST_FIELD = TransformClass(
    "HoistField", "Wraps the key or value in a struct or map with one field.", ConfigDef([FIELD]), make_hoist
)
REPLACE_FIELD = TransformClass(
    "ReplaceField",
    "Drops or renames fields.",
    ConfigDef(
        [
            Key("exclude", Kind.LIST, [], validator=OTHERS, doc="The fields to drop, even if they are included."),
            Key("include", Kind.LIST, [], validator=OTHERS, doc="The fields to keep. If none is given, all are kept."),
            Key(
                "renames",
                Kind.LIST,
                [],
                doc="Pairs of old and new names: old:new,old:new.",
                validator=_check_renames,
            ),
            NULLS,
        ]
    ),
    make_replace,
)
_MARK = " A name that ends in ! is required; one that ends in ? is optional, which is the default."
INSERT_FIELD = TransformClass(
    "InsertField",
    "Inserts fields with the record's topic, partition, offset or timestamp, or with a fixed value.",
    ConfigDef(
        [
            *(Key(name, default=None, doc=f"The field for {what}.{_MARK}") for name, (_, what) in INSERTIONS.items()),
            Key("static.value", default=None, doc="The value of the static field."),
            NULLS,
        ]
    ),
    make_insert,
)
MASK_FIELD = TransformClass(
    "MaskField",
    "Replaces the values of fields by the empty value of their type (0, false, an empty string, ..) or by another one.",
    ConfigDef(
        [
            FIELDS,
            Key(
                "replacement",
                default=None,
                importance=Importance.LOW,
                validator=non_empty,
                doc="What to put into fields that hold numbers or strings.",
            ),
            NULLS,
        ]
    ),
    make_mask,
)
VALUE_TO_KEY = TransformClass(
    "ValueToKey", "Makes the key from fields of the value.", ConfigDef([FIELDS, NULLS]), make_value_to_key, sides=False
)
