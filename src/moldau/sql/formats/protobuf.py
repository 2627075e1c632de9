"""PROTOBUF and PROTOBUF_NOSR: rows as messages of a schema that the columns decide.

A nested struct is a nested message, a map a repeated message of key and value. A scalar that is null is left out, and
reads as its default unless the nullable representation is `optional` or `wrapper`.
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from moldau.serdes.context import SerdeError
from moldau.serdes.framing import SchemaRef, frame, unframe
from moldau.serdes.protobuf import file_of, message_at, meta_of, named, of_bytes, path_to
from moldau.serdes.registry import Schema
from moldau.serdes.typed import Subjects

from ..casts import EXACT, exact_decimal
from ..catalogue import Format
from ..errors import SqlError
from ..tree import ArrayType, DecimalType, Field, MapType, Primitive, StructType, Type
from ..types import Columns, base
from .registered import Place
from .rows import Row

SCALARS = {
    "BOOLEAN": "bool",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "bytes",
}
MESSAGES = {
    "DECIMAL": ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    "DATE": ("google.type.Date", "google/type/date.proto"),
    "TIME": ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    "TIMESTAMP": ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
WRAPPERS = {
    "bool": "Bool",
    "int32": "Int32",
    "int64": "Int64",
    "double": "Double",
    "string": "String",
    "bytes": "Bytes",
}
FIRST_DAY = datetime.date(1970, 1, 1).toordinal()
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(slots=True)
class _Writing:
    """The text of a schema in the making."""

    nullable: str | None
    imports: set[str] = field(default_factory=set)
    count: int = 1

    def message(self, name: str, columns: Columns, depth: int) -> Iterator[str]:
        pad = "  " * depth
        yield f"{pad}message {name} {{"
        nested: list[tuple[str, Columns]] = []
        for number, (column, type) in enumerate(columns, 1):
            if not _NAME.fullmatch(column):
                raise SqlError(f"Schema is not compatible with Protobuf: {column} is not a valid name of a field")
            yield f"{pad}  {self.kind(type, nested)} {column} = {number}{self.meta(type)};"
        for inner, fields in nested:
            yield ""
            yield from self.message(inner, fields, depth + 1)
        yield f"{pad}}}"

    def meta(self, type: Type) -> str:
        if not isinstance(type, DecimalType):
            return ""
        self.imports.add("confluent/meta.proto")
        params = f'{{ key: "precision", value: "{type.precision}" }}, {{ key: "scale", value: "{type.scale}" }}'
        return f" [(confluent.field_meta) = {{ params: [{params}] }}]"

    def kind(self, type: Type, nested: list[tuple[str, Columns]], repeated: bool = False) -> str:
        match type:
            case ArrayType(item):
                if repeated or isinstance(item, ArrayType | MapType):
                    raise SqlError("The 'PROTOBUF' format does not support arrays of arrays and of maps")
                return f"repeated {self.kind(item, nested, True)}"
            case MapType(key, value):
                return f"repeated {self.inner(nested, [('key', key), ('value', value)], 'Entry')}"
            case StructType(fields):
                return self.inner(nested, [(each.name, each.type) for each in fields])
        if base(type) in MESSAGES:
            name, path = MESSAGES[base(type)]
            self.imports.add(path)
            return name
        scalar = SCALARS[base(type)]
        if self.nullable == "wrapper" and not repeated:
            self.imports.add("google/protobuf/wrappers.proto")
            return f"google.protobuf.{WRAPPERS[scalar]}Value"
        return f"optional {scalar}" if self.nullable == "optional" and not repeated else scalar

    def inner(self, nested: list[tuple[str, Columns]], columns: Columns, suffix: str = "") -> str:
        self.count += 1
        name = f"ConnectDefault{self.count}{suffix}"
        nested.append((name, columns))
        return name


def schema_text(format: Format, columns: Columns) -> str:
    writing = _Writing((format.property("nullableRepresentation") or "").lower() or None)
    full = format.property("fullSchemaName") or "ConnectDefault1"
    package, _, name = full.rpartition(".")
    body = "\n".join(writing.message(name, columns, 0))
    head = ['syntax = "proto3";', *([f"package {package};"] if package else []), ""]
    imports = [f'import "{path}";' for path in sorted(writing.imports)]
    return "\n".join([*head, *imports, *([""] if imports else []), body]) + "\n"


Read = Callable[[Any], Any]


def _decimal_of(message: Any, type: DecimalType) -> Decimal:
    number = int.from_bytes(message.value, "big", signed=True)
    return exact_decimal(Decimal(number).scaleb(-message.scale, EXACT), type)


def _day(message: Any) -> int:
    return datetime.date(message.year, message.month, message.day).toordinal() - FIRST_DAY


def _clock(message: Any) -> int:
    seconds = (message.hours * 60 + message.minutes) * 60 + message.seconds
    return seconds * 1000 + message.nanos // 1_000_000


def _moment(message: Any) -> int:
    return message.seconds * 1000 + message.nanos // 1_000_000


def reader(type: Type) -> Read:
    """Return a function that makes a value of what a message holds."""
    match type:
        case DecimalType():
            return lambda value: _decimal_of(value, type)
        case ArrayType(item):
            of_item = reader(item)
            return lambda value: [of_item(each) for each in value]
        case MapType(key, value_type):
            of_key, of_value = reader(key), reader(value_type)
            return lambda value: {of_key(k): of_value(v) for k, v in _pairs(value)}
        case StructType(fields):
            return message_reader(fields)
        case Primitive("DATE"):
            return _day
        case Primitive("TIME"):
            return _clock
        case Primitive("TIMESTAMP"):
            return _moment
        case Primitive("DOUBLE"):
            return lambda value: float(_unwrapped(value))
        case _:
            return _unwrapped


def _unwrapped(value: Any) -> Any:
    return getattr(value, "value") if isinstance(value, Message) else value  # noqa: B009


def _pairs(value: Any) -> Any:
    return value.items() if hasattr(value, "items") else ((each.key, each.value) for each in value)


def message_reader(fields: tuple[Field, ...]) -> Read:
    parts = [(each.name, reader(each.type)) for each in fields]

    def read(message: Message) -> Row:
        known = {each.name: each for each in message.DESCRIPTOR.fields}
        upper = {name.upper(): each for name, each in known.items()}
        found = (known.get(name) or upper.get(name.upper()) for name, _ in parts)
        return tuple(_present(message, each, one) for each, (_, one) in zip(found, parts, strict=True))

    return read


def _present(message: Message, field: Any, read: Read) -> Any:
    if field is None or (field.has_presence and not message.HasField(field.name)):
        return None
    found = getattr(message, field.name)
    if field.enum_type is not None:
        return [_label(field, each) for each in found] if field.is_repeated else _label(field, found)
    return read(found)


def _label(field: Any, number: int) -> str:
    found = field.enum_type.values_by_number.get(number)
    return found.name if found else str(number)


def fill(message: Any, columns: Columns, row: Row) -> None:
    """Set the fields of a message."""
    for (name, type), value in zip(columns, row, strict=True):
        if value is not None:
            _set(message, _field_name(message, name), type, value)


def _field_name(message: Any, name: str) -> str:
    known = message.DESCRIPTOR.fields_by_name
    if name in known:
        return name
    for each in known:
        if each.upper() == name.upper():
            return each
    raise SerdeError(f"the message {message.DESCRIPTOR.full_name} has no field {name}")


def _set(message: Any, name: str, type: Type, value: Any) -> None:
    match type:
        case ArrayType(item):
            if None in value:
                raise ValueError(f"the array {name} has a null in it")
            target = getattr(message, name)
            for each in value:
                if isinstance(item, Primitive) and base(item) in SCALARS:
                    target.append(each)
                else:
                    _into(target.add(), item, each)
        case MapType(key, value_type):
            target = getattr(message, name)
            for one, two in value.items():
                if hasattr(target, "items"):
                    target[one] = two
                else:
                    fill(target.add(), [("key", key), ("value", value_type)], (one, two))
        case Primitive(kind) if kind in SCALARS:
            if message.DESCRIPTOR.fields_by_name[name].message_type is not None:
                getattr(message, name).value = value
                getattr(message, name).SetInParent()
            elif message.DESCRIPTOR.fields_by_name[name].enum_type is not None:
                setattr(message, name, message.DESCRIPTOR.fields_by_name[name].enum_type.values_by_name[value].number)
            else:
                setattr(message, name, value)
        case _:
            inner = getattr(message, name)
            inner.SetInParent()
            _into(inner, type, value)


def _into(message: Any, type: Type, value: Any) -> None:
    """Set a message that stands for one value."""
    match type:
        case StructType(fields):
            fill(message, [(each.name, each.type) for each in fields], value)
        case DecimalType(precision, scale):
            number = int(value.scaleb(scale, EXACT))
            message.value = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
            message.precision, message.scale = precision, scale
        case Primitive("DATE"):
            at = datetime.date.fromordinal(value + FIRST_DAY)
            message.year, message.month, message.day = at.year, at.month, at.day
        case Primitive("TIME"):
            message.hours, rest = divmod(value, 3_600_000)
            message.minutes, rest = divmod(rest, 60_000)
            message.seconds, message.nanos = rest // 1000, rest % 1000 * 1_000_000
        case _:
            message.seconds, message.nanos = value // 1000, value % 1000 * 1_000_000


@dataclass(frozen=True, slots=True)
class Protobuf:
    """Rows as messages; without subjects there is no frame, and the schema is that of the columns."""

    place: Place
    subjects: Subjects | None
    own: Schema
    columns: Columns
    read: Read
    message: str | None

    @classmethod
    def of(cls, format: Format, columns: Columns, place: Place) -> Protobuf:
        own = Schema("PROTOBUF", schema_text(format, columns))
        registered = format.name == "PROTOBUF"
        subjects = place.subjects(own, format.property("schemaId")) if registered else None
        read = message_reader(tuple(Field(name, type) for name, type in columns))
        return cls(place, subjects, own, columns, read, format.property("fullSchemaName"))

    def dumps(self, row: Row | None) -> bytes | None:
        if row is None:
            return None
        if self.subjects is None:
            return self.filled(self.own, row).SerializeToString()
        written = self.subjects.to_write(self.place.context)
        message = self.filled(written.schema, row)
        descriptor: Any = message.DESCRIPTOR
        ref = SchemaRef(written.ref.id, written.ref.guid, path_to(descriptor))
        return frame(ref, message.SerializeToString(), self.place.context, in_header=False)

    def filled(self, schema: Schema, row: Row) -> Message:
        message = GetMessageClass(named(file_of(schema), self.message))()
        try:
            fill(message, self.columns, row)
        except (TypeError, ValueError) as error:
            raise SerdeError(f"the row cannot be written as PROTOBUF: {error}") from None
        return message

    def loads(self, data: bytes | None) -> Row | None:
        message = self.parsed(data)
        return None if message is None else self.read(message)

    def parsed(self, data: bytes | None) -> Message | None:
        if data is None:
            return None
        if self.subjects is None:
            return of_bytes(data, GetMessageClass(named(file_of(self.own), self.message)))
        ref, payload = unframe(data, self.place.context, indexes=True)
        writer = file_of(self.subjects.writer(ref, self.place.context))
        return of_bytes(bytes(payload), GetMessageClass(message_at(writer, ref.indexes or (0,))))


def columns_of(schema: Schema, name: str | None, upper: bool) -> StructType:
    """Return the columns of a message that others registered."""
    return _struct(named(file_of(schema), name), upper)


def _struct(descriptor: Any, upper: bool) -> StructType:
    return StructType(
        tuple(Field(each.name.upper() if upper else each.name, _type(each, upper)) for each in descriptor.fields)
    )


_KINDS = {
    FieldDescriptor.CPPTYPE_BOOL: "BOOLEAN",
    FieldDescriptor.CPPTYPE_INT32: "INTEGER",
    FieldDescriptor.CPPTYPE_UINT32: "BIGINT",
    FieldDescriptor.CPPTYPE_INT64: "BIGINT",
    FieldDescriptor.CPPTYPE_UINT64: "BIGINT",
    FieldDescriptor.CPPTYPE_DOUBLE: "DOUBLE",
    FieldDescriptor.CPPTYPE_FLOAT: "DOUBLE",
    FieldDescriptor.CPPTYPE_ENUM: "STRING",
}


def _type(field: Any, upper: bool) -> Type:
    inner = field.message_type
    if inner is not None and (inner.GetOptions().map_entry or _is_entry(field)):
        return MapType(_single(inner.fields_by_name["key"], upper), _single(inner.fields_by_name["value"], upper))
    found = _single(field, upper)
    return ArrayType(found) if field.is_repeated else found


def _is_entry(field: Any) -> bool:
    inner = field.message_type
    return (
        field.is_repeated and inner.name.endswith("Entry") and [each.name for each in inner.fields] == ["key", "value"]
    )


def _single(field: Any, upper: bool) -> Type:
    inner = field.message_type
    if inner is None:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return Primitive("BYTES")
        return Primitive(_KINDS.get(field.cpp_type, "STRING"))
    known = {name: kind for kind, (name, _) in MESSAGES.items()}
    if inner.full_name == "confluent.type.Decimal":
        return _decimal_type(field)
    if inner.full_name in known:
        return Primitive(known[inner.full_name])
    if inner.full_name.startswith("google.protobuf.") and inner.name.endswith("Value") and len(inner.fields) == 1:
        return _single(inner.fields[0], upper)
    return _struct(inner, upper)


def _decimal_type(field: Any) -> DecimalType:
    params = dict(meta_of(field).params)
    return DecimalType(int(params.get("precision", 64)), int(params.get("scale", 0)))


def node_of(message: Message, types: dict[str, Type]) -> dict[str, Any]:
    """Return a message as a node of a test case, all fields with their defaults."""
    made = {}
    for each in message.DESCRIPTOR.fields:
        value = _present(message, each, lambda found: found)
        made[each.name] = None if value is None else _node(value, types.get(each.name) or _type(each, False))
    return made


def _node(value: Any, type: Type) -> Any:
    match type:
        case ArrayType(item):
            return [_node(each, item) for each in value]
        case MapType(key, value_type):
            return {str(_node(k, key)): _node(v, value_type) for k, v in _pairs(value)}
        case StructType(fields):
            return node_of(value, {each.name: each.type for each in fields})
        case Primitive("BYTES"):
            return base64.b64encode(_unwrapped(value)).decode()
        case _:
            return reader(type)(value)
