"""ProtobufConverter: values as Protobuf in Confluent's wire format, with their schemas in the registry.

`protobuf_schemas.py` has the mapping of schemas. Protobuf has no null: a field without a value is left out, and reads
back as its type's default, unless `wrapper.for.nullables` or `optional.for.nullables` says how null is told from it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from moldau.connect import data
from moldau.connect.converters.kinds import Converter
from moldau.connect.converters.protobuf_schemas import (
    ENUM,
    WRAPPED,
    Found,
    Style,
    Writing,
    is_enum,
    is_map,
    is_optional,
    is_union,
    message_schema,
    real_oneof,
    real_oneofs,
)
from moldau.connect.converters.registry import Subject, connected
from moldau.connect.data import MS_PER_DAY, NULL, Instant, Schema, SchemaAndValue, Struct, Type, wrap
from moldau.connect.errors import DataError
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import SchemaRef, frame, unframe
from moldau.serdes.protobuf import file_of, message_at, named, of_bytes, path_to
from moldau.serdes.registry import Registry
from moldau.serdes.registry import Schema as Registered
from moldau.serdes.schemas import parse

EPOCH_DAY = date(1970, 1, 1).toordinal()


class ProtobufConverter:
    """The two directions for keys or for values."""

    def __init__(self, settings: Mapping[str, Any], registry: Registry, field: str) -> None:
        self.style = Style.of(settings)
        self.subject = Subject(settings, registry, "key" if field == "key" else "value")
        size: int = settings["schemas.cache.config"]
        self.written = lru_cache(size)(self._written)
        self.schema = lru_cache(size)(lambda message: message_schema(self.style, message))

    def _written(self, schema: Schema) -> tuple[Registered, str]:
        """Return the schema to register, and the full name of its message."""
        file = Writing(self.style).root(schema)
        encoded = base64.b64encode(file.SerializeToString(deterministic=True)).decode()
        try:
            text = parse("PROTOBUF", encoded, (), {}).text
        except ValueError as error:
            raise DataError(f"The schema {schema.name} has no equivalent in Protobuf: {error}") from None
        name = file.message_type[0].name
        return Registered("PROTOBUF", text), f"{file.package}.{name}" if file.package else name

    def write(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None and (schema is None or schema.optional):
            return None
        if schema is None:
            raise DataError("ProtobufConverter needs a schema: without one use JsonConverter with schemas.enable=false")
        own, name = self.written(schema)
        context = Context(topic, self.subject.field)
        written = self.subject.settle(context, own, name)
        try:
            descriptor = named(file_of(written.schema), name if written.schema == own else None)
            message = self._message(descriptor, schema, value)
            ref = SchemaRef(written.ref.id, written.ref.guid, path_to(descriptor))
            return frame(ref, message.SerializeToString(deterministic=True), context, in_header=False)
        except (SerdeError, EncodeError, TypeError, ValueError) as error:
            raise DataError(f"Failed to serialize Protobuf data from topic {topic}: {error}") from None

    def read(self, topic: str, found: bytes | None) -> SchemaAndValue:
        if found is None:
            return NULL
        context = Context(topic, self.subject.field)
        try:
            ref, payload = unframe(found, context, indexes=True)
            descriptor = message_at(file_of(self.subject.registered(ref, context)), ref.indexes or (0,))
            message = of_bytes(payload, GetMessageClass(descriptor))
        except SerdeError as error:
            raise DataError(f"Failed to deserialize data for topic {topic} to Protobuf: {error}") from None
        schema = self.schema(descriptor)
        return SchemaAndValue(schema, self._struct(schema, message))

    # From Connect.

    def _message(self, descriptor: Descriptor, schema: Schema, value: Any) -> Message:
        if not isinstance(value, Struct):
            raise DataError(f"The value for the message {descriptor.full_name} is not a struct")
        made = GetMessageClass(descriptor)()
        for place, each in value:
            if each is None:
                continue
            if is_union(place.schema):
                chosen = [(branch, inner) for branch, inner in each if inner is not None]
                if not chosen:
                    raise DataError("Cannot find non-null field")
                place, each = chosen[0]
            found = descriptor.fields_by_name.get(self.style.name(place.name))
            if found is None:
                raise DataError(f"Cannot find field with name {place.name}")
            self._set(made, found, place.schema, each)
        return made

    def _set(self, made: Any, found: Found, schema: Schema, value: Any) -> None:
        if schema.type is Type.MAP:
            keys, values = schema.key_schema or data.STRING, schema.value_schema or data.STRING
            for key, each in value.items():
                entry = getattr(made, found.name).add()
                inner = found.message_type.fields_by_name
                self._set(entry, inner["key"], keys, _present(key, found))
                self._set(entry, inner["value"], values, _present(each, found))
        elif schema.type is Type.ARRAY:
            inner = (schema.value_schema or data.STRING).but(optional=False)
            getattr(made, found.name).extend(self._out(found, inner, _present(each, found)) for each in value)
        elif found.message_type is not None:
            getattr(made, found.name).CopyFrom(self._out(found, schema, value))
        else:
            setattr(made, found.name, self._out(found, schema, value))

    def _out(self, found: Found, schema: Schema, value: Any) -> Any:
        if schema.name in LOGICAL_OUT:
            made = GetMessageClass(found.message_type)()
            LOGICAL_OUT[schema.name or ""](made, value)
            return made
        if schema.type is Type.STRUCT:
            return self._message(found.message_type, schema, value)
        if is_enum(schema):
            number = (schema.parameters or {}).get(f"{ENUM}.{value}")
            if number is None:
                raise DataError(f"The enum {found.enum_type.name} has no symbol {value}")
            return int(number)
        if found.message_type is not None:
            return GetMessageClass(found.message_type)(value=value)  # type: ignore[call-arg]
        return value

    # To Connect.

    def _struct(self, schema: Schema, message: Message) -> Struct:
        descriptor: Any = message.DESCRIPTOR
        values: dict[str, Any] = {}
        for oneof in real_oneofs(descriptor):
            name = message.WhichOneof(oneof.name)
            if name is not None:
                place = schema.by_name[self.style.union(oneof)]
                inner = self._in(descriptor.fields_by_name[name], place.schema.by_name[name].schema, message)
                values[place.name] = Struct.of(place.schema, {name: inner})
        for found in descriptor.fields:
            if real_oneof(found) is None and self._is_there(found, message):
                values[found.name] = self._in(found, schema.by_name[found.name].schema, message)
        return Struct.of(schema, values)

    def _is_there(self, found: Found, message: Message) -> bool:
        if found.is_repeated:
            return True
        told = found.message_type is not None or (self.style.optional and is_optional(found))
        return not told or message.HasField(found.name)

    def _in(self, found: Found, schema: Schema, message: Message) -> Any:
        value = getattr(message, found.name)
        if not found.is_repeated:
            return self._one(found, schema, value)
        if schema.type is Type.MAP:
            return self._map(found.message_type, schema, value)
        return [self._one(found, schema.value_schema or data.STRING, each) for each in value]

    def _map(self, entry: Descriptor, schema: Schema, found: Any) -> dict[Any, Any]:
        key, value = entry.fields
        assert is_map(entry) and schema.key_schema is not None and schema.value_schema is not None
        if entry.GetOptions().map_entry:
            pairs = [(each, found[each]) for each in found]
            return {self._one(key, schema.key_schema, k): self._one(value, schema.value_schema, v) for k, v in pairs}
        return {self._in(key, schema.key_schema, each): self._in(value, schema.value_schema, each) for each in found}

    def _one(self, found: Found, schema: Schema, value: Any) -> Any:
        if schema.name in LOGICAL_IN:
            return LOGICAL_IN[schema.name or ""](value)
        if found.enum_type is not None:
            symbol = found.enum_type.values_by_number.get(value)
            return symbol.name if symbol else f"UNKNOWN_ENUM_VALUE_{found.enum_type.name}_{value}"
        if schema.type is Type.STRUCT:
            return self._struct(schema, value)
        if found.message_type is not None and found.message_type.full_name in WRAPPED:
            value = value.value
        return wrap(value, data.BITS[schema.type]) if schema.type in data.BITS else value


def _present(value: Any, found: Found) -> Any:
    if value is None:
        raise DataError(f"The array or map {found.name} has null in it, which Protobuf does not have")
    return value


# Logical types: their messages, filled and read.


def _decimal_out(made: Any, value: Any) -> None:
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    made.value, made.precision, made.scale = unscaled.to_bytes(size, "big", signed=True), len(digits), -int(exponent)


def _date_out(made: Any, value: Instant) -> None:
    if value % MS_PER_DAY:
        raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
    day = value.date
    made.year, made.month, made.day = day.year, day.month, day.day


def _time_out(made: Any, value: Instant) -> None:
    if not 0 <= value <= MS_PER_DAY:
        raise DataError("Time values must use number of millis greater than 0 and less than 86400000")
    seconds, ms = divmod(int(value) % MS_PER_DAY, 1000)
    made.hours, made.minutes, made.seconds, made.nanos = (
        seconds // 3600,
        seconds // 60 % 60,
        seconds % 60,
        ms * 1_000_000,
    )


def _timestamp_out(made: Any, value: Instant) -> None:
    made.seconds, made.nanos = int(value) // 1000, int(value) % 1000 * 1_000_000


def _decimal_in(found: Any) -> Any:
    return data.scaled(int.from_bytes(found.value, "big", signed=True), found.scale)


def _date_in(found: Any) -> Instant:
    try:
        return Instant((date(found.year, found.month, found.day).toordinal() - EPOCH_DAY) * MS_PER_DAY)
    except ValueError as error:
        raise DataError(f"{found.year}-{found.month}-{found.day} is not a date: {error}") from None


def _time_in(found: Any) -> Instant:
    seconds = found.hours * 3600 + found.minutes * 60 + found.seconds
    return Instant(seconds * 1000 + found.nanos // 1_000_000)


def _timestamp_in(found: Any) -> Instant:
    return Instant(found.seconds * 1000 + found.nanos // 1_000_000)


LOGICAL_OUT = {
    data.DECIMAL: _decimal_out,
    data.DATE: _date_out,
    data.TIME: _time_out,
    data.TIMESTAMP: _timestamp_out,
}
LOGICAL_IN = {data.DECIMAL: _decimal_in, data.DATE: _date_in, data.TIME: _time_in, data.TIMESTAMP: _timestamp_in}


def make_protobuf(settings: Mapping[str, Any]) -> Converter:
    converter = ProtobufConverter(settings, connected(settings), settings["converter.type"])
    return Converter(converter.write, converter.read)
