"""Converters without structure: String, ByteArray, the numbers, Boolean, and SimpleHeaderConverter."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key
from moldau.connect.converters.kinds import TYPE, Converter, ConverterClass
from moldau.connect.data import OPTIONAL, Schema, SchemaAndValue, Type
from moldau.connect.errors import ConfigError, DataError
from moldau.connect.values import parse, to_string, to_text

HEADERS_CACHED, MOST_REMEMBERED = 256, 200  # most records have the same few headers, and guessing takes a while


def _type(schema: Schema | None, value: Any) -> Type | None:
    """Return the type of Java's object for a value; a logical one has none."""
    if schema is None:
        return data.type_of(value)
    return None if schema.name in data.LOGICAL else schema.type


def make_string(settings: Mapping[str, Any]) -> Converter:
    encoding = settings["converter.encoding"]
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ConfigError(f"There is no encoding {encoding}") from None

    def write(_topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        text = value if type(value) is str else to_string(schema, value)
        return text.encode(encoding, "replace")

    schema_read = OPTIONAL[Type.STRING]
    null = SchemaAndValue(schema_read, None)

    def read(_topic: str, found: bytes | None) -> SchemaAndValue:
        return null if found is None else SchemaAndValue(schema_read, found.decode(encoding, "replace"))

    return Converter(write, read)


def make_bytes(_settings: Mapping[str, Any]) -> Converter:
    def write(_topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is not None and not isinstance(value, bytes):
            raise DataError(f"ByteArrayConverter is not compatible with objects of type {type(value).__qualname__}")
        return value

    return Converter(write, lambda _topic, found: SchemaAndValue(OPTIONAL[Type.BYTES], found))


def make_number(kind: Type, layout: str) -> Converter:
    size = struct.calcsize(layout)

    def write(_topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        if _type(schema, value) is not kind:
            raise DataError(f"Failed to serialize to {kind.value} (was {type(value).__qualname__})")
        return struct.pack(layout, value)

    def read(_topic: str, found: bytes | None) -> SchemaAndValue:
        if found is not None and len(found) != size:
            raise DataError(f"Failed to deserialize {kind.value}: there are {len(found)} bytes instead of {size}")
        return SchemaAndValue(OPTIONAL[kind], None if found is None else struct.unpack(layout, found)[0])

    return Converter(write, read)


def make_boolean(_settings: Mapping[str, Any]) -> Converter:
    def write(_topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        if value is not None and not isinstance(value, bool):
            raise DataError(f"BooleanConverter is not compatible with objects of type {type(value).__qualname__}")
        return None if value is None else bytes([value])

    def read(_topic: str, found: bytes | None) -> SchemaAndValue:
        if found is not None and found not in (b"\0", b"\1"):
            raise DataError("Failed to deserialize boolean: it is neither a byte 0 nor a byte 1")
        return SchemaAndValue(OPTIONAL[Type.BOOLEAN], None if found is None else found == b"\1")

    return Converter(write, read)


def make_simple_header(_settings: Mapping[str, Any]) -> Converter:
    def write(_topic: str, schema: Schema | None, value: Any) -> bytes | None:
        text = to_text(schema, value)
        return None if text is None else text.encode("utf-8", "replace")

    def read(_topic: str, found: bytes | None) -> SchemaAndValue:
        return guessed(found) if found is None or len(found) <= MOST_REMEMBERED else _guessed(found)

    guessed = lru_cache(HEADERS_CACHED)(_guessed)
    return Converter(write, read)


def _guessed(found: bytes | None) -> SchemaAndValue:
    return parse(None if found is None else found.decode("utf-8", "replace"))


CONVERTERS = "org.apache.kafka.connect.converters."
STORAGE = "org.apache.kafka.connect.storage."
NUMBERS = {
    "Double": (Type.FLOAT64, ">d"),
    "Float": (Type.FLOAT32, ">f"),
    "Integer": (Type.INT32, ">i"),
    "Long": (Type.INT64, ">q"),
    "Short": (Type.INT16, ">h"),
}
ENCODING = Key(
    "converter.encoding", default="UTF-8", importance=Importance.HIGH, doc="The character set of the strings."
)


def _number_row(name: str, kind: Type, layout: str) -> ConverterClass:
    return ConverterClass(
        f"{CONVERTERS}{name}Converter",
        f"Writes numbers of type {kind.value} as Kafka's {name}Serializer does.",
        ConfigDef([TYPE]),
        lambda _settings: make_number(kind, layout),
    )


SIMPLE = (
    ConverterClass(f"{CONVERTERS}BooleanConverter", "Writes a boolean as one byte.", ConfigDef([TYPE]), make_boolean),
    ConverterClass(f"{CONVERTERS}ByteArrayConverter", "Passes bytes on as they are.", ConfigDef([TYPE]), make_bytes),
    *(_number_row(name, *row) for name, row in NUMBERS.items()),
    ConverterClass(f"{STORAGE}StringConverter", "Writes values as text.", ConfigDef([TYPE, ENCODING]), make_string),
    ConverterClass(
        f"{STORAGE}SimpleHeaderConverter",
        "Writes headers as text and guesses their types when it reads them.",
        ConfigDef(),
        make_simple_header,
        only_headers=True,
    ),
)
