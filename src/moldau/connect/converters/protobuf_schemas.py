"""Schemas of Connect as Protobuf, and back, with the mapping of Confluent's converter.

A struct is a message, nested in the one that has it; a map is a repeated message `..Entry` of key and value; a oneof is
an optional struct named `io.confluent.connect.protobuf.Union.NAME`. What Protobuf cannot say stands in parameters: the
number of a field, and the symbols of an enum. Decimal, Date, Time and Timestamp are messages that people know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from confluent_kafka.schema_registry.confluent import meta_pb2
from google.protobuf.descriptor import Descriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from moldau.connect import data
from moldau.connect.data import Schema, Type
from moldau.connect.errors import DataError

SPACE = "io.confluent.connect.protobuf."
ENUM, UNION, TAG = SPACE + "Enum", SPACE + "Union.", SPACE + "Tag"
UNNAMED = "ConnectDefault"
PRECISION, SCALE, CONNECT_TYPE = "connect.decimal.precision", "scale", "connect.type"
META_FILE, WRAPPERS_FILE = "confluent/meta.proto", "google/protobuf/wrappers.proto"
MAX_DEPTH = 100
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
P = FieldDescriptorProto
Found = Any  # a FieldDescriptor; the stubs of its two implementations do not fit each other


class Logical(NamedTuple):
    """A logical type: its message, the file of that, and the schema."""

    message: str
    file: str
    schema: Schema


LOGICAL = {
    data.DECIMAL: Logical("confluent.type.Decimal", "confluent/type/decimal.proto", data.decimal(0)),
    data.DATE: Logical("google.type.Date", "google/type/date.proto", data.DATE_SCHEMA),
    data.TIME: Logical("google.type.TimeOfDay", "google/type/timeofday.proto", data.TIME_SCHEMA),
    data.TIMESTAMP: Logical("google.protobuf.Timestamp", "google/protobuf/timestamp.proto", data.TIMESTAMP_SCHEMA),
}
BY_MESSAGE = {row.message: row.schema for row in LOGICAL.values()}
SCALARS = {  # the type of a field, and the message that stands for it where null is allowed
    Type.INT8: (P.TYPE_INT32, "Int32Value"),
    Type.INT16: (P.TYPE_INT32, "Int32Value"),
    Type.INT32: (P.TYPE_INT32, "Int32Value"),
    Type.INT64: (P.TYPE_INT64, "Int64Value"),
    Type.FLOAT32: (P.TYPE_FLOAT, "FloatValue"),
    Type.FLOAT64: (P.TYPE_DOUBLE, "DoubleValue"),
    Type.BOOLEAN: (P.TYPE_BOOL, "BoolValue"),
    Type.STRING: (P.TYPE_STRING, "StringValue"),
    Type.BYTES: (P.TYPE_BYTES, "BytesValue"),
}
TYPES: dict[int, Type] = {
    **dict.fromkeys((P.TYPE_INT32, P.TYPE_SINT32, P.TYPE_SFIXED32), Type.INT32),
    **dict.fromkeys((P.TYPE_UINT32, P.TYPE_FIXED32, P.TYPE_INT64, P.TYPE_UINT64), Type.INT64),
    **dict.fromkeys((P.TYPE_SINT64, P.TYPE_FIXED64, P.TYPE_SFIXED64), Type.INT64),
    P.TYPE_FLOAT: Type.FLOAT32,
    P.TYPE_DOUBLE: Type.FLOAT64,
    P.TYPE_BOOL: Type.BOOLEAN,
    P.TYPE_STRING: Type.STRING,
    P.TYPE_BYTES: Type.BYTES,
}
WRAPPED = {f"google.protobuf.{message}": kind for kind, (_, message) in SCALARS.items() if kind.value[-1:] != "8"}
WRAPPED |= {"google.protobuf.UInt32Value": Type.INT64, "google.protobuf.UInt64Value": Type.INT64}
WRAPPED["google.protobuf.Int32Value"] = Type.INT32


@dataclass(frozen=True, slots=True)
class Style:
    """The settings of the converter that change the mapping."""

    full_names: bool = False  # enhanced.protobuf.schema.support
    scrub: bool = False  # scrub.invalid.names
    wrapper: bool = False  # wrapper.for.nullables
    optional: bool = False  # optional.for.nullables
    index_unions: bool = True  # generate.index.for.unions

    @staticmethod
    def of(settings: Mapping[str, Any]) -> Style:
        return Style(
            settings["enhanced.protobuf.schema.support"],
            settings["scrub.invalid.names"],
            settings["wrapper.for.nullables"],
            settings["optional.for.nullables"],
            settings["generate.index.for.unions"],
        )

    def name(self, text: str) -> str:
        """Return a name that Protobuf takes: with `scrub.invalid.names` any name is made one."""
        if not self.scrub:
            if not NAME.fullmatch(text):
                raise DataError(f"Protobuf does not allow the name {text}; scrub.invalid.names=true changes such names")
            return text
        made = quote_plus(text, safe="*")
        return re.sub(r"[^A-Za-z0-9_]", "_", made if re.match(r"[A-Za-z]", made) else "x" + made)

    def union(self, oneof: OneofDescriptor) -> str:
        return f"{oneof.name}_{oneof.index}" if self.index_unions else oneof.name

    def wraps(self, schema: Schema) -> bool:
        return self.wrapper and schema.optional and schema.type in SCALARS and not is_enum(schema)


def is_enum(schema: Schema) -> bool:
    return schema.type is Type.STRING and ENUM in (schema.parameters or {})


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and (schema.name or "").startswith(UNION)


# From Connect.


@dataclass(slots=True)
class Writing:
    """Makes one file. `known` are the structs that have a message already."""

    style: Style
    file: FileDescriptorProto = field(default_factory=lambda: FileDescriptorProto(syntax="proto3"))
    known: dict[str, tuple[Schema, str]] = field(default_factory=dict)
    unnamed: int = 0

    def root(self, schema: Schema) -> FileDescriptorProto:
        if schema.type is not Type.STRUCT:
            raise DataError(f"ProtobufConverter writes structs only, not values of the type {schema.type.name}")
        package, _, name = self._name(schema.name).rpartition(".")
        if package:
            self.file.package = ".".join(self.style.name(part) for part in package.split("."))
        message = self.file.message_type.add(name=self.style.name(name))
        path = f".{self.file.package}.{message.name}" if package else f".{message.name}"
        if schema.name:
            self.known[schema.name] = schema, path
        self._fields(schema, message, path)
        return self.file

    def _name(self, name: str | None) -> str:
        if name:
            return name
        self.unnamed += 1
        return f"{UNNAMED}{self.unnamed}"

    def _simple(self, name: str | None) -> str:
        return self.style.name(self._name(name).rpartition(".")[2])

    def _fields(self, schema: Schema, message: DescriptorProto, path: str) -> None:
        taken = {int(tag) for each in members(schema) if (tag := tag_of(each)) is not None}
        numbers = (n for n in range(1, 1 << 29) if n not in taken)
        for each in schema.fields:
            if is_union(each.schema):
                self._oneof(each.schema, message, path, numbers)
            else:
                self._add(each.name, each.schema, message, path, numbers)
        for made in message.field:  # oneofs that stand for `optional` come after all others
            if made.proto3_optional:
                made.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{made.name}")

    def _oneof(self, schema: Schema, message: DescriptorProto, path: str, numbers: Iterator[int]) -> None:
        at = len(message.oneof_decl)
        message.oneof_decl.add(name=self._simple((schema.name or "").removeprefix(UNION)))
        for each in schema.fields:
            made = self._add(each.name, each.schema.but(optional=False), message, path, numbers)
            if made.label == P.LABEL_REPEATED:
                raise DataError(f"The field {each.name} of a oneof is an array or a map, which Protobuf does not have")
            made.oneof_index = at

    def _add(
        self, name: str, schema: Schema, message: DescriptorProto, path: str, numbers: Iterator[int]
    ) -> FieldDescriptorProto:
        tag = tag_of(schema)
        made = message.field.add(name=self.style.name(name), number=next(numbers) if tag is None else int(tag))
        made.label = P.LABEL_OPTIONAL
        if schema.type is Type.ARRAY:
            made.label = P.LABEL_REPEATED
            if schema.value_schema is None or schema.value_schema.type in (Type.ARRAY, Type.MAP):
                raise DataError(f"The array {name} has arrays or maps, which Protobuf does not have")
            schema = schema.value_schema.but(optional=False)
        elif schema.type is Type.MAP:
            made.label = P.LABEL_REPEATED
        elif self.style.optional and schema.optional and schema.type is not Type.STRUCT:
            made.proto3_optional = True
        self._set_type(made, schema, message, path)
        return made

    def _set_type(self, made: FieldDescriptorProto, schema: Schema, message: DescriptorProto, path: str) -> None:
        if schema.name in LOGICAL:
            row = LOGICAL[schema.name or ""]
            self._import(row.file)
            made.type, made.type_name = P.TYPE_MESSAGE, f".{row.message}"
            given = schema.parameters or {}
            names = {"precision": given.get(PRECISION), "scale": given.get(SCALE)} if row.schema.parameters else {}
            self._meta(made, {key: text for key, text in names.items() if text is not None})
        elif schema.type is Type.STRUCT:
            made.type, made.type_name = P.TYPE_MESSAGE, self._message(made.name, schema, message, path)
        elif schema.type is Type.MAP:
            made.type, made.type_name = P.TYPE_MESSAGE, self._entry(schema, message, path)
        elif is_enum(schema):
            made.type, made.type_name = P.TYPE_ENUM, self._enum(schema, message, path)
        else:
            kind, wrapper = SCALARS[schema.type]
            made.type = kind
            if self.style.wraps(schema):
                self._import(WRAPPERS_FILE)
                made.type, made.type_name = P.TYPE_MESSAGE, f".google.protobuf.{wrapper}"
            if schema.type in (Type.INT8, Type.INT16):
                self._meta(made, {CONNECT_TYPE: schema.type.value})

    def _message(self, field_name: str, schema: Schema, message: DescriptorProto, path: str) -> str:
        if schema.name in self.known:
            other, place = self.known[schema.name or ""]
            if other.fields != schema.fields:
                raise DataError(f"Protobuf cannot have two different structs named {schema.name}")
            return place
        name = self._simple(schema.name)
        inner = message.nested_type.add(name=name + "Message" if name == field_name else name)
        place = f"{path}.{inner.name}"
        if schema.name:
            self.known[schema.name] = schema, place
        self._fields(schema, inner, place)
        return place

    def _entry(self, schema: Schema, message: DescriptorProto, path: str) -> str:
        if schema.key_schema is None or schema.value_schema is None:
            raise DataError("Protobuf needs the schemas of a map's keys and values")
        name = self._simple(schema.name)
        camel = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
        inner = message.nested_type.add(name=f"{camel}Entry")
        place = f"{path}.{inner.name}"
        pairs = [("key", schema.key_schema), ("value", schema.value_schema)]
        self._fields(data.struct([(name, without_tag(each)) for name, each in pairs]), inner, place)
        return place

    def _enum(self, schema: Schema, message: DescriptorProto, path: str) -> str:
        given = schema.parameters or {}
        name = self._simple(given[ENUM])
        if all(each.name != name for each in message.enum_type):
            symbols = [(key[len(ENUM) + 1 :], int(text)) for key, text in given.items() if key.startswith(ENUM + ".")]
            made = message.enum_type.add(name=name)
            for symbol, number in sorted(symbols, key=lambda pair: pair[1] != 0):  # 0 must be the first
                made.value.add(name=symbol, number=number)
        return f"{path}.{name}"

    def _import(self, file: str) -> None:
        if file not in self.file.dependency:
            self.file.dependency.append(file)

    def _meta(self, made: FieldDescriptorProto, params: Mapping[str, str]) -> None:
        if params:
            self._import(META_FILE)
            made.options.Extensions[meta_pb2.field_meta].params.update(params)  # type: ignore[index]


def members(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas of the fields of a message, those of its oneofs too."""
    for each in schema.fields:
        if is_union(each.schema):
            yield from members(each.schema)
        else:
            yield each.schema


def tag_of(schema: Schema) -> str | None:
    return (schema.parameters or {}).get(TAG)


def without_tag(schema: Schema) -> Schema:
    left = {key: text for key, text in (schema.parameters or {}).items() if key != TAG}
    return schema.but(parameters=left or None)


# To Connect.


def message_schema(style: Style, message: Descriptor, depth: int = 0) -> Schema:
    """Return the schema of a message."""
    if depth > MAX_DEPTH:
        raise DataError(f"{message.full_name} contains itself, or nests too deeply, which a schema of Connect cannot")
    pairs = [(style.union(oneof), _union(style, oneof, depth)) for oneof in real_oneofs(message)]
    pairs += [(each.name, _field(style, each, depth)) for each in message.fields if real_oneof(each) is None]
    return data.struct(pairs, name=message.full_name if style.full_names else message.name)


def real_oneofs(message: Descriptor) -> list[OneofDescriptor]:
    return [oneof for oneof in message.oneofs if any(real_oneof(each) is not None for each in oneof.fields)]


def real_oneof(found: Found) -> OneofDescriptor | None:
    """Return the oneof of a field, unless that only stands for the word `optional`."""
    oneof = found.containing_oneof
    return None if oneof is None or is_optional(found) else oneof


def is_optional(found: Found) -> bool:
    oneof = found.containing_oneof
    return oneof is not None and len(oneof.fields) == 1 and oneof.name == f"_{found.name}"


def is_map(message: Descriptor) -> bool:
    return message.name.endswith("Entry") and [each.name for each in message.fields] == ["key", "value"]


def _union(style: Style, oneof: OneofDescriptor, depth: int) -> Schema:
    pairs = [(each.name, _field(style, each, depth)) for each in oneof.fields]
    return data.struct(pairs, name=UNION + oneof.name, optional=True)


def _field(style: Style, found: Found, depth: int) -> Schema:
    schema = _basic(style, found, depth)
    optional = schema.optional or is_optional(found) or not (style.wrapper or style.optional)
    if found.is_repeated and schema.type is not Type.MAP:
        schema, optional = data.array(schema.but(optional=True)), True
    tag = {TAG: str(found.number)}
    return schema.but(optional=optional, parameters={**(schema.parameters or {}), **tag})


def _basic(style: Style, found: Found, depth: int) -> Schema:
    params = found.GetOptions().Extensions[meta_pb2.field_meta].params  # type: ignore[index]
    if found.type in TYPES:
        kind = TYPES[found.type]
        narrow = params.get(CONNECT_TYPE) if kind is Type.INT32 else None
        return Schema(Type(narrow) if narrow in ("int8", "int16") else kind)
    if found.type == P.TYPE_ENUM:
        values = {f"{ENUM}.{each.name}": str(each.number) for each in found.enum_type.values}
        return Schema(
            Type.STRING, name=found.enum_type.name, parameters={ENUM: found.enum_type.name, **values}, optional=True
        )
    message = found.message_type
    if message is None:
        raise DataError(f"The field {found.full_name} is a group, which Connect does not have")
    if message.full_name == LOGICAL[data.DECIMAL].message:
        scale, precision = params.get("scale", "0"), params.get("precision")
        schema = data.decimal(int(scale) if scale.lstrip("-").isdigit() else 0, optional=True)
        more = {PRECISION: precision} if precision and precision.isdigit() else {}
        return schema.but(parameters={**(schema.parameters or {}), **more})
    if message.full_name in BY_MESSAGE:
        return BY_MESSAGE[message.full_name].but(optional=True)
    if style.wrapper and message.full_name in WRAPPED:
        narrow = params.get(CONNECT_TYPE)
        kind = WRAPPED[message.full_name]
        return Schema(Type(narrow) if kind is Type.INT32 and narrow in ("int8", "int16") else kind, optional=True)
    if found.is_repeated and is_map(message):
        key, value = (_field(style, each, depth + 1) for each in message.fields)
        return data.map_of(key, value, name=message.name.removesuffix("Entry"), optional=True)
    return message_schema(style, message, depth + 1).but(optional=True)
