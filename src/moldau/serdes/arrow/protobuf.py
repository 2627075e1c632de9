"""Protobuf messages as Arrow columns: parsed by the Protobuf library, then gathered field by field.

A field without presence is never null; an unset message or optional field is. Unsigned numbers of 32 bits are int64,
those of 64 bits decimals, as Spark has them; enums are their names, unknown ones their numbers as text. Of the
well-known types, Timestamp and Duration are microseconds, wrappers nullable values, and Struct, Value and ListValue
their JSON text.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from ..context import SerdeError
from ..framing import SchemaRef
from ..protobuf import file_of, message_at, named, path_to
from ..registry import Schema
from .batch import Converted, Slices

F = FieldDescriptor
SCALARS = {
    F.CPPTYPE_INT32: pa.int32(),
    F.CPPTYPE_INT64: pa.int64(),
    F.CPPTYPE_UINT32: pa.int64(),
    F.CPPTYPE_UINT64: pa.decimal128(20, 0),
    F.CPPTYPE_DOUBLE: pa.float64(),
    F.CPPTYPE_FLOAT: pa.float32(),
    F.CPPTYPE_BOOL: pa.bool_(),
    F.CPPTYPE_ENUM: pa.string(),
}
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
DOCUMENTS = {"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"}
WELL_KNOWN = {TIMESTAMP: pa.timestamp("us", "UTC"), DURATION: pa.duration("us")}
WELL_KNOWN |= dict.fromkeys(DOCUMENTS, pa.string())
MICROS = 1_000_000


@lru_cache(maxsize=1000)
def message_type(descriptor: Descriptor) -> pa.DataType:
    return struct_type(descriptor, ())


def struct_type(descriptor: Descriptor, above: tuple[str, ...]) -> pa.DataType:
    if descriptor.full_name in above:
        raise SerdeError(f"{descriptor.full_name} contains itself, and columns cannot: read it value by value")
    above = (*above, descriptor.full_name)
    return pa.struct([pa.field(f.name, field_type(f, above), is_nullable(f)) for f in descriptor.fields])


def is_nullable(field: FieldDescriptor) -> bool:
    return not field.is_repeated and field.has_presence


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def entry_of(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    assert field.message_type is not None
    return field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]


def field_type(field: FieldDescriptor, above: tuple[str, ...]) -> pa.DataType:
    if is_map(field):
        key, value = entry_of(field)
        nullable = value.message_type is not None
        return pa.map_(one_type(key, above), pa.field("value", one_type(value, above), nullable))
    one = one_type(field, above)
    return pa.list_(pa.field("item", one, False)) if field.is_repeated else one


def one_type(field: FieldDescriptor, above: tuple[str, ...]) -> pa.DataType:
    if field.type == F.TYPE_BYTES:
        return pa.binary()
    if field.type == F.TYPE_STRING:
        return pa.string()
    inner = field.message_type
    if inner is None:
        return SCALARS[field.cpp_type]
    if inner.full_name in WRAPPERS:
        return one_type(inner.fields_by_name["value"], above)
    return WELL_KNOWN[inner.full_name] if inner.full_name in WELL_KNOWN else struct_type(inner, above)


def messages_array(descriptor: Descriptor, rows: Sequence[Any], type: pa.DataType) -> pa.Array:
    """Make a struct of messages; None is null."""
    nulls = pa.array([row is None for row in rows]) if any(row is None for row in rows) else None
    full = rows if nulls is None else [empty(descriptor) if row is None else row for row in rows]
    columns = [column(f, full, one.type) for f, one in zip(descriptor.fields, type, strict=True)]
    if not columns:
        return pa.array([None if row is None else {} for row in rows], type)
    return pa.StructArray.from_arrays(columns, fields=list(type), mask=nulls)


@lru_cache(maxsize=1000)
def empty(descriptor: Descriptor) -> Message:
    return GetMessageClass(descriptor)()


def column(field: FieldDescriptor, rows: Sequence[Any], type: pa.DataType) -> pa.Array:
    of = attrgetter(field.name)
    if is_map(field):
        return map_array(field, [of(row) for row in rows], type)
    if field.is_repeated:
        lists = [of(row) for row in rows]
        offsets = offsets_of(lists)
        items = values_array(field, [item for one in lists for item in one], type.value_type)
        return pa.Array.from_buffers(type, len(rows), [None, offsets.buffers()[1]], children=[items])
    if field.has_presence:
        name = field.name
        return values_array(field, [of(row) if row.HasField(name) else None for row in rows], type)
    return values_array(field, list(map(of, rows)), type)


def map_array(field: FieldDescriptor, maps: list[Any], type: pa.DataType) -> pa.Array:
    key, value = entry_of(field)
    offsets = offsets_of(maps)
    keys = values_array(key, [one for each in maps for one in each], type.key_type)
    items = values_array(value, [each[one] for each in maps for one in each], type.item_type)
    entries = pa.StructArray.from_arrays([keys, items], fields=[type.key_field, type.item_field])
    return pa.Array.from_buffers(type, len(maps), [None, offsets.buffers()[1]], children=[entries])


def offsets_of(lists: list[Any]) -> pa.Array:
    total, out = 0, [0]
    for one in lists:
        total += len(one)
        out.append(total)
    return pa.array(out, pa.int32())


def values_array(field: FieldDescriptor, values: list[Any], type: pa.DataType) -> pa.Array:
    inner = field.message_type
    if inner is not None and pa.types.is_struct(type):
        return messages_array(inner, values, type)
    taken = taker(field)
    return pa.array([None if v is None else taken(v) for v in values] if taken else values, type)


def taker(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    """Return what turns a value into one that pyarrow takes; None if nothing needs to."""
    if field.enum_type is not None:
        names = field.enum_type.values_by_number
        return lambda number: names[number].name if number in names else str(number)
    if field.cpp_type == F.CPPTYPE_UINT64:
        return decimal.Decimal
    if field.message_type is None:
        return None
    name = field.message_type.full_name
    if name in (TIMESTAMP, DURATION):
        return lambda moment: moment.seconds * MICROS + moment.nanos // 1000
    if name in WRAPPERS:
        inner = taker(field.message_type.fields_by_name["value"])
        return lambda wrapper: inner(wrapper.value) if inner else wrapper.value
    return lambda document: json.dumps(json_format.MessageToDict(document), ensure_ascii=False)


def read_protobuf(
    payloads: Slices, writer: Schema, reader: Schema, ref: SchemaRef, message: str | None = None
) -> Converted:
    """Read payloads of one message as the reader's message."""
    wrote = message_at(file_of(writer), ref.indexes or (0,))
    wanted = named(file_of(reader), message)
    if wrote.full_name != wanted.full_name:
        raise SerdeError(f"the message is a {wrote.full_name}, not a {wanted.full_name}")
    parse = GetMessageClass(wanted).FromString
    errors: dict[int, str] = {}
    rows: list[Message | None] = []
    for row, data in enumerate(payloads.rows()):
        made = None
        if data is not None:
            try:
                made = parse(data)
            except DecodeError as error:
                errors[row] = f"the bytes are not a {wanted.full_name}: {error}"
        rows.append(made)
    return Converted(messages_array(wanted, rows, message_type(wanted)), errors)


def write_protobuf(
    values: pa.Array, schema: Schema, head: Callable[[tuple[int, ...] | None], bytes], message: str | None = None
) -> Converted:
    wanted = named(file_of(schema), message)
    type, before, make = message_type(wanted), head(path_to(wanted)), GetMessageClass(wanted)
    fill = filler(wanted)
    if not pa.types.is_struct(values.type):
        raise SerdeError(f"a column of {values.type} cannot be written as {wanted.full_name}")
    unknown = {one.name for one in values.type} - {one.name for one in type}
    if unknown:
        raise SerdeError(f"{', '.join(sorted(unknown))}: the message {wanted.full_name} has no such field")
    errors: dict[int, str] = {}
    out: list[bytes | None] = []
    for row, value in enumerate(values.to_pylist()):
        try:
            out.append(None if value is None else before + make(**fill(value)).SerializeToString())
        except (ValueError, TypeError) as error:
            errors[row] = str(error)
            out.append(None)
    return Converted(pa.array(out, pa.binary()), errors)


def filler(descriptor: Descriptor) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what turns a row of Arrow into arguments of the message's class. Nulls are fields that are not set."""
    fields = {f.name: giver(f) for f in descriptor.fields}
    return lambda row: {name: fields[name](value) for name, value in row.items() if value is not None}


def giver(field: FieldDescriptor) -> Callable[[Any], Any]:
    if is_map(field):
        key, value = map(one_giver, entry_of(field))
        return lambda pairs: {key(k): value(v) for k, v in pairs}
    one = one_giver(field)
    return (lambda values: [one(value) for value in values]) if field.is_repeated else one


def one_giver(field: FieldDescriptor) -> Callable[[Any], Any]:
    if field.cpp_type == F.CPPTYPE_UINT64:
        return int
    if field.cpp_type == F.CPPTYPE_ENUM:
        return lambda name: int(name) if name.lstrip("-").isdecimal() else name
    if field.message_type is None:
        return lambda value: value
    inner = field.message_type
    if inner.full_name in (TIMESTAMP, DURATION):
        make = GetMessageClass(inner)
        fill = "FromDatetime" if inner.full_name == TIMESTAMP else "FromTimedelta"
        return lambda value: fill_by(make(), fill, value)
    if inner.full_name in WRAPPERS:
        value_of = one_giver(inner.fields_by_name["value"])
        return lambda value: {"value": value_of(value)}
    if inner.full_name in DOCUMENTS:
        return lambda text: json_format.Parse(text, GetMessageClass(inner)())
    return filler(inner)


def fill_by(message: Any, fill: str, value: Any) -> Any:
    getattr(message, fill)(value)
    return message
