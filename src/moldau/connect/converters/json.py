"""JsonConverter: values as JSON, with or without Connect's envelope `{"schema": .., "payload": ..}`."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

import msgspec

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, Width, one_of_any_case
from moldau.connect.converters.json_structs import UNREAD, struct_decoder, struct_reader, struct_writer
from moldau.connect.converters.kinds import TYPE, Converter, ConverterClass
from moldau.connect.data import NULL, Field, Instant, Schema, SchemaAndValue, Struct, Type
from moldau.connect.errors import ConfigError, DataError
from moldau.java import numbers

# The names of types in schemas, which are Connect's but for the floats.
NAMES = {kind: {Type.FLOAT32: "float", Type.FLOAT64: "double"}.get(kind, kind.value) for kind in Type}
KINDS = {name: kind for kind, name in NAMES.items()}
STRUCTS_CACHED = 64
MISSING = object()  # the value of no JSON at all: neither null nor anything else
_CONTROL = re.compile(r"\\u00[0-9a-f]{2}")
_BLANK = re.compile(r"[\x00-\x20]+")


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_constant)
_DECODE = msgspec.json.Decoder().decode
LEAST, MOST = -(1 << 63), (1 << 63) - 1
_SCAN: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]


def parse_json(found: bytes) -> Any:
    """Read the first JSON value, with decimals in full; DataError if there is none. No bytes are null."""
    try:
        text = found.decode(json.detect_encoding(found), "surrogatepass").lstrip(" \t\r\n\ufeff")
        if not text:
            return None
        value, end = _DECODER.raw_decode(text)
        if text[end : end + 1].isalnum() or text[end : end + 1] in (".", "+", "-"):
            raise ValueError(f"{text[: end + 1]} is not JSON")
        return value
    except (ValueError, RecursionError) as error:
        raise DataError(f"Converting byte[] to Kafka Connect data failed: {error}") from None


def quoted(text: str) -> str:
    made = encode_basestring(text)
    return _CONTROL.sub(lambda found: found[0][:4] + found[0][4:].upper(), made) if "\\u00" in made else made


class JsonConverter:
    """The two directions, with the settings of one converter."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.with_schemas: bool = settings["schemas.enable"]
        self.numeric: bool = settings["decimal.format"].upper() == "NUMERIC"
        self.with_default: bool = settings["replace.null.with.default"]
        self.schema_text = lru_cache(settings["schemas.cache.size"])(self._schema_text)
        self._writer = lru_cache(STRUCTS_CACHED)(
            lambda schema: struct_writer(schema, self.text, self.struct_text, quoted)
        )
        self._reader = lru_cache(STRUCTS_CACHED)(lambda schema: struct_reader(schema, self.value))
        self._payload_reader = lru_cache(STRUCTS_CACHED)(self._make_payload_reader)
        self._known: dict[str, Schema | None] = {}
        # How the last envelope began, its schema, and what reads the payload that begins there; the schema of the last
        # struct that was written, what comes before and after its payload, and what writes its values.
        self._last: tuple[bytes, Schema | None, Callable[[bytes, int], Any]] = b"", None, payload_of
        self._same: tuple[Schema | None, str, str, Callable[[Any], str]] = None, "", "", str
        self._most_known: int = settings["schemas.cache.size"]
        content = settings["schema.content"]
        self.fixed = self.schema_of(_content(content)) if content else None

    def write(self, _topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None and value is None:
            return None
        same, before, after, values_text = self._same
        if value.__class__ is Struct and value.schema is schema is same:
            made = f"{before}{values_text(value.values)}{after}"
        else:
            made = self._document(schema, value)
        try:
            return made.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"Converting Kafka Connect data to byte[] failed: {error}") from None

    def _document(self, schema: Schema | None, value: Any) -> str:
        payload = self.text(schema, value)
        before, after = "", ""
        if self.with_schemas:
            before, after = f'{{"schema":{self.schema_text(schema)},"payload":', "}"
        if schema is not None and schema.type is Type.STRUCT and schema.name not in data.LOGICAL:
            self._same = schema, before, after, self._writer(schema)
        return f"{before}{payload}{after}"

    def read(self, _topic: str, found: bytes | None) -> SchemaAndValue:
        if found is None:
            return NULL
        if not self.with_schemas:
            return SchemaAndValue(None, _plain_of(found))
        if self.fixed is not None:
            return SchemaAndValue(self.fixed, self.value(self.fixed, parse_json(found) if found.strip() else MISSING))
        start, schema, read = self._last
        if start and found.startswith(start):
            try:
                return SchemaAndValue(schema, read(found, len(start)))
            except ValueError:
                pass  # it is more than an envelope, or none
        return self._read_envelope(found)

    def _read_envelope(self, found: bytes) -> SchemaAndValue:
        document = parse_json(found)
        if not isinstance(document, dict) or document.keys() != {"schema", "payload"}:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain '
                "additional fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in "
                "your converter configuration."
            )
        schema = self._cached_schema(document["schema"])
        self._last = start_of(found), schema, self._payload_reader(schema)
        return SchemaAndValue(schema, self.value(schema, document["payload"]))

    def _make_payload_reader(self, schema: Schema | None) -> Callable[[bytes, int], Any]:
        """Return what reads the payload that begins somewhere; ValueError if it is not the end of an envelope."""
        if schema is None or schema.type is not Type.STRUCT or schema.name in data.LOGICAL:
            return lambda found, start: self.value(schema, payload_of(found, start))
        read, decode = self._reader(schema), struct_decoder(schema, self.value)

        def by_rules(found: bytes, start: int) -> Any:
            payload = payload_of(found, start)
            return read(payload) if payload.__class__ is dict else self.value(schema, payload)

        if decode is None:
            return by_rules

        def by_types(found: bytes, start: int) -> Any:
            try:
                return decode(found[start:-1] if found.endswith(b"}") else b"")
            except UNREAD:
                return by_rules(found, start)

        return by_types

    def text(self, schema: Schema | None, value: Any) -> str:
        """Write a value."""
        if value is None:
            if schema is None:
                return "null"
            if schema.default is not None and self.with_default:
                return self.text(schema, schema.default)
            if schema.optional:
                return "null"
            raise DataError("Conversion error: null value for field that is required and has no default value")
        if schema is not None and schema.name in data.LOGICAL:
            return self._logical_text(schema, value)
        kind = schema.type if schema else data.type_of(value)
        if kind is None:
            raise DataError(f"The class {type(value).__qualname__} does not have a corresponding schema type.")
        if schema is not None and type(value) not in data.CLASSES.get(kind, (Struct,)):
            raise DataError(f"Invalid type for {kind.name}: {type(value).__qualname__}")
        return TEXTS[kind](self, schema, value)

    def _logical_text(self, schema: Schema, value: Any) -> str:
        if type(value) not in data.LOGICAL[schema.name or ""]:
            raise DataError(f"Invalid type for {schema.name}: {type(value).__qualname__}")
        if schema.name == data.DECIMAL and self.numeric:
            return numbers.decimal_text(value)
        plain = data.encode_logical(schema, value)
        return _bytes_text(plain) if isinstance(plain, bytes) else str(plain)

    def array_text(self, schema: Schema | None, value: Any) -> str:
        inner = schema.value_schema if schema else None
        return "[" + ",".join(self.text(inner, each) for each in value) + "]"

    def map_text(self, schema: Schema | None, value: Any) -> str:
        keys, values = (schema.key_schema, schema.value_schema) if schema else (None, None)
        named = keys.type is Type.STRING if keys else all(isinstance(key, str) for key in value)
        if not named:
            pairs = (f"[{self.text(keys, key)},{self.text(values, each)}]" for key, each in value.items())
            return "[" + ",".join(pairs) + "]"
        pairs = (f"{quoted('null' if key is None else key)}:{self.text(values, each)}" for key, each in value.items())
        return "{" + ",".join(pairs) + "}"

    def struct_text(self, schema: Schema | None, value: Struct) -> str:
        if schema is None:
            raise DataError("A struct needs a schema")
        if value.schema is not schema and value.schema != schema:
            raise DataError("Mismatching schema.")
        return self._writer(schema)(value.values)

    def _schema_text(self, schema: Schema | None, field: str | None = None) -> str:
        """Write a schema; that of a field ends with its name."""
        if schema is None:
            return "null"
        parts = [f'"type":"{NAMES[schema.type]}"']
        if schema.type is Type.ARRAY:
            parts.append(f'"items":{self._schema_text(schema.value_schema)}')
        elif schema.type is Type.MAP:
            keys, values = self._schema_text(schema.key_schema), self._schema_text(schema.value_schema)
            parts.append(f'"keys":{keys},"values":{values}')
        elif schema.type is Type.STRUCT:
            parts.append(f'"fields":[{",".join(self._schema_text(each.schema, each.name) for each in schema.fields)}]')
        parts.append(f'"optional":{"true" if schema.optional else "false"}')
        parts += [f'"name":{quoted(schema.name)}'] if schema.name is not None else []
        parts += [f'"version":{schema.version}'] if schema.version is not None else []
        parts += [f'"doc":{quoted(schema.doc)}'] if schema.doc is not None else []
        if schema.parameters is not None:
            pairs = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in schema.parameters.items())
            parts.append(f'"parameters":{{{pairs}}}')
        parts += [f'"default":{self.text(schema, schema.default)}'] if schema.default is not None else []
        parts += [f'"field":{quoted(field)}'] if field is not None else []
        return "{" + ",".join(parts) + "}"

    def _cached_schema(self, document: Any) -> Schema | None:
        text = json.dumps(document, default=str)
        if text not in self._known:
            if len(self._known) >= self._most_known:
                self._known.pop(next(iter(self._known)), None)
            self._known[text] = self.schema_of(document)
        return self._known[text]

    def schema_of(self, document: Any) -> Schema | None:
        """Read a schema."""
        if document is None:
            return None
        kind = KINDS.get(document["type"]) if isinstance(_get(document, "type"), str) else None
        if kind is None:
            raise DataError(f"Unknown schema type: {_get(document, 'type')}; a schema must contain a 'type' field")
        parts = {"fields": (), "key_schema": None, "value_schema": None}
        if kind is Type.ARRAY:
            parts["value_schema"] = self._inner(document, "items")
        elif kind is Type.MAP:
            parts |= {"key_schema": self._inner(document, "keys"), "value_schema": self._inner(document, "values")}
        elif kind is Type.STRUCT:
            parts["fields"] = self._fields(document)
        schema = Schema(
            kind,
            document.get("optional") is True,
            name=_if(str, document.get("name")),
            version=_if(int, document.get("version")),
            doc=_if(str, document.get("doc")),
            parameters=_parameters(document.get("parameters")),
            **parts,
        )
        return schema.but(default=self.value(schema, document["default"])) if "default" in document else schema

    def _inner(self, document: Any, name: str) -> Schema:
        found = self.schema_of(document.get(name))
        if found is None:
            raise DataError(f"The schema does not specify its {name}")
        return found

    def _fields(self, document: Any) -> tuple[Field, ...]:
        fields = document.get("fields")
        if not isinstance(fields, list):
            raise DataError('Struct schema\'s "fields" argument is not an array.')
        found: list[Field] = []
        for at, each in enumerate(fields):
            name, schema = _get(each, "field"), self.schema_of(each)
            if not isinstance(name, str) or schema is None:
                raise DataError("Struct schema's field name not specified properly")
            found.append(Field(name, at, schema))
        return tuple(found)

    def value(self, schema: Schema | None, found: Any) -> Any:
        """Read a value; without a schema, integers are Longs and other numbers Doubles."""
        if schema is None:
            return _plain(found)
        if found is None:
            if schema.default is not None and self.with_default:
                return schema.default
            if schema.optional:
                return None
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        if schema.name in data.LOGICAL:
            return _logical(schema, found)
        return VALUES[schema.type](self, schema, found)

    def array(self, schema: Schema, found: Any) -> list[Any]:
        """Read an array; an object is read as an array of its values, and anything else as an empty one."""
        items = found if isinstance(found, list) else list(found.values()) if isinstance(found, dict) else []
        return [self.value(schema.value_schema, each) for each in items]

    def map(self, schema: Schema, found: Any) -> dict[Any, Any]:
        if schema.key_schema is None or schema.key_schema.type is Type.STRING:
            if not isinstance(found, dict):
                raise DataError("Maps with string fields should be encoded as JSON objects")
            return {key: self.value(schema.value_schema, each) for key, each in found.items()}
        if not isinstance(found, list):
            raise DataError("Maps with non-string fields should be encoded as JSON array of tuples")
        made: dict[Any, Any] = {}
        for entry in found:
            if not isinstance(entry, list) or len(entry) != 2:
                raise DataError("Found invalid map entry instead of a tuple of two")
            key = self.value(schema.key_schema, entry[0])
            if isinstance(key, dict):
                raise DataError("A map cannot be the key of a map")
            made[tuple(key) if isinstance(key, list) else key] = self.value(schema.value_schema, entry[1])
        return made

    def struct(self, schema: Schema, found: Any) -> Struct:
        if not isinstance(found, dict):
            raise DataError("Structs should be encoded as JSON objects")
        return self._reader(schema)(found)


SCHEMA, PAYLOAD = b'{"schema":', b',"payload":'


def start_of(found: bytes) -> bytes:
    """Return an envelope as far as its payload; nothing if it has its parts in another order, or more of them."""
    if not found.startswith(SCHEMA):
        return b""
    text = found.decode("utf-8", "surrogatepass")
    try:
        _, end = _DECODER.raw_decode(text, len(SCHEMA))
        start = text[:end].encode("utf-8", "surrogatepass") + PAYLOAD
        if not found.startswith(start):
            return b""
        payload_of(found, len(start))
    except ValueError:
        return b""
    return start


def payload_of(found: bytes, start: int) -> Any:
    """Read the payload that begins there; ValueError if anything but the end of the envelope comes after it."""
    text = found[start:].decode("utf-8", "surrogatepass")
    try:
        value, end = _SCAN(text, 0)
    except (StopIteration, RecursionError) as error:
        raise ValueError("no value, or too deep") from error
    if text[end:] != "}":
        raise ValueError("more than an envelope")
    return value


def _content(text: str) -> Any:
    try:
        return parse_json(text.encode())
    except DataError as error:
        raise ConfigError(f"schema.content is not a schema in JSON: {error}") from None


def _get(document: Any, name: str) -> Any:
    return document.get(name) if isinstance(document, dict) else None


def _if(kind: type, value: Any) -> Any:
    return value if type(value) is kind else None


def _parameters(found: Any) -> dict[str, str] | None:
    if not isinstance(found, dict) or not found:
        return None
    if not all(isinstance(value, str) for value in found.values()):
        raise DataError("Schema parameters must have string values.")
    return found


def _plain_of(found: bytes) -> Any:
    """Read a value without a schema."""
    try:
        made = _DECODE(found)
    except UNREAD:
        return _plain(parse_json(found))
    return _settled(made)


def _settled(found: Any) -> Any:
    """Return what was decoded as `_plain` has it; objects and arrays are changed in place."""
    kind = found.__class__
    if kind is float:
        return found or 0.0
    if kind is int:
        return data.wrap(found, 64)
    pairs = found.items() if kind is dict else enumerate(found) if kind is list else ()
    for at, one in pairs:
        kind = one.__class__
        if kind is float:
            if one == 0:
                found[at] = 0.0
        elif kind is int:
            if not LEAST <= one <= MOST:
                found[at] = data.wrap(one, 64)
        elif kind is dict or kind is list:
            _settled(one)
    return found


def _plain(found: Any) -> Any:
    match found:
        case bool() | str() | None:
            return found
        case int():
            return data.wrap(found, 64)
        case Decimal():
            return _finite(found)
        case list():
            return [_plain(each) for each in found]
        case _:
            return {key: _plain(each) for key, each in found.items()}


def _whole(found: Any, bits: int) -> int:
    """Return the low bits of a number; what is not a number is 0, as in Jackson."""
    if isinstance(found, bool) or not isinstance(found, int | Decimal):
        return 0
    if isinstance(found, Decimal) and found.adjusted() > 1000:
        return 0
    return data.wrap(int(found), bits)


def _double(found: Any) -> float:
    return 0.0 if isinstance(found, bool) or not isinstance(found, int | Decimal) else _finite(found)


def _finite(found: int | Decimal) -> float:
    try:
        return float(found) or 0.0  # decimals have no negative zero
    except OverflowError:
        return float("inf") if found > 0 else float("-inf")


def _bytes(found: Any) -> bytes | None:
    if not isinstance(found, str):
        return None
    try:
        return base64.b64decode(_BLANK.sub("", found), validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"Invalid bytes field: {error}") from None


def _bytes_text(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _number_text(text: str) -> str:
    return text if text[-1].isdigit() else f'"{text}"'


def _logical(schema: Schema, found: Any) -> Any:
    if schema.name == data.DECIMAL:
        if isinstance(found, str):
            return data.decimal_of_bytes(schema, _bytes(found) or b"")
        if isinstance(found, bool) or not isinstance(found, int | Decimal):
            raise DataError("Invalid type for Decimal, underlying representation should be numeric or bytes")
        return Decimal(found) if found else Decimal(found).copy_abs()
    if isinstance(found, bool) or not isinstance(found, int):
        raise DataError(f"Invalid type for {schema.name}, underlying representation should be integer")
    if schema.name == data.TIMESTAMP:
        return Instant(data.wrap(found, 64))
    if not data.fits(found, 32):
        raise DataError(f"Invalid type for {schema.name}, underlying representation should be an int")
    return data.decode_logical(schema, found)


Writer = Callable[[JsonConverter, Schema | None, Any], str]
Reader = Callable[[JsonConverter, Schema, Any], Any]


def _float_text(_converter: JsonConverter, schema: Schema | None, value: float) -> str:
    return _number_text(numbers.float_text(value))


TEXTS: dict[Type, Writer] = {
    **dict.fromkeys(data.BITS, lambda _converter, _schema, value: str(int(value))),
    Type.FLOAT32: _float_text,
    Type.FLOAT64: lambda _converter, _schema, value: _number_text(numbers.double_text(value)),
    Type.BOOLEAN: lambda _converter, _schema, value: "true" if value else "false",
    Type.STRING: lambda _converter, _schema, value: quoted(value),
    Type.BYTES: lambda _converter, _schema, value: _bytes_text(value),
    Type.ARRAY: JsonConverter.array_text,
    Type.MAP: lambda converter, schema, value: converter.map_text(schema, value),
    Type.STRUCT: lambda converter, schema, value: converter.struct_text(schema, value),
}
VALUES: dict[Type, Reader] = {
    Type.INT8: lambda _converter, _schema, found: _whole(found, 8),
    Type.INT16: lambda _converter, _schema, found: _whole(found, 16),
    Type.INT32: lambda _converter, _schema, found: _whole(found, 32),
    Type.INT64: lambda _converter, _schema, found: _whole(found, 64),
    Type.FLOAT32: lambda _converter, _schema, found: data.to_float32(_double(found)),
    Type.FLOAT64: lambda _converter, _schema, found: _double(found),
    Type.BOOLEAN: lambda _converter, _schema, found: found is True,
    Type.STRING: lambda _converter, _schema, found: found if isinstance(found, str) else None,
    Type.BYTES: lambda _converter, _schema, found: _bytes(found),
    Type.ARRAY: JsonConverter.array,
    Type.MAP: lambda converter, schema, found: converter.map(schema, found),
    Type.STRUCT: lambda converter, schema, found: converter.struct(schema, found),
}


def make_json(settings: Mapping[str, Any]) -> Converter:
    converter = JsonConverter(settings)
    return Converter(converter.write, converter.read)


def _key(name: str, kind: Kind, default: Any, doc: str, group: str, order: int, **more: Any) -> Key:
    return Key(name, kind, default, doc=doc, group=group, order=order, width=Width.MEDIUM, **more)


JSON = ConverterClass(
    "org.apache.kafka.connect.json.JsonConverter",
    "Writes values as JSON, by default together with their schemas.",
    ConfigDef(
        [
            TYPE,
            _key(
                "schemas.enable",
                Kind.BOOLEAN,
                True,
                "Whether each key and value carries its schema.",
                "Schemas",
                0,
                importance=Importance.HIGH,
                display="Enable Schemas",
            ),
            _key(
                "schemas.cache.size",
                Kind.INT,
                1000,
                "How many schemas are remembered.",
                "Schemas",
                1,
                importance=Importance.HIGH,
                display="Schema Cache Size",
            ),
            _key(
                "schema.content",
                Kind.STRING,
                None,
                "The schema of all values that are read, which then come without their schemas.",
                "Schemas",
                2,
                importance=Importance.HIGH,
                display="Schema Content",
            ),
            _key(
                "decimal.format",
                Kind.STRING,
                "BASE64",
                "How decimals are written: BASE64 or NUMERIC. Both are read.",
                "Serialization",
                0,
                importance=Importance.LOW,
                validator=one_of_any_case("BASE64", "NUMERIC"),
                display="Decimal Format",
            ),
            _key(
                "replace.null.with.default",
                Kind.BOOLEAN,
                True,
                "Whether a field that is null and has a default gets the default. If false, it stays null.",
                "Serialization",
                1,
                importance=Importance.LOW,
                display="Replace null with default",
            ),
        ]
    ),
    make_json,
)
