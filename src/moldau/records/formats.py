"""Codecs by the name of a format, which turn keys and values into text or JSON, and back.

Formats with a schema show values as plain JSON: unions without names, times in ISO form, decimals as text. They read
the same back (natural.py), and also Avro's own JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from moldau.admin.mistakes import Mistake, misused
from moldau.records.envelope import BASE64, Shown, text_or_base64
from moldau.records.template import AsItIs
from moldau.serdes.context import Context, Serde, SerdeError
from moldau.serdes.framing import SchemaRef, unframe
from moldau.serdes.primitive import PLAIN

if TYPE_CHECKING:  # it brings libraries for schemas along, which most commands do without
    from moldau.admin.connection import Connection
    from moldau.serdes.registry import Registry, Schema

TYPED = ("avro", "json-schema", "protobuf")
OWN = ("hex", "base64", "registry")
FORMATS = ("string", "json", *TYPED, *OWN, *(name for name in PLAIN if name not in ("string", "json")))
LARGEST_SCHEMA = 10 << 20
TYPES = {"AVRO": "avro", "JSON": "json-schema", "PROTOBUF": "protobuf"}


class Codec(Protocol):
    """A codec: bytes of a record to text or JSON, and what was typed to bytes. None is null both ways."""

    def text(self, data: bytes, context: Context) -> bytes: ...

    def show(self, data: bytes | None, context: Context) -> Shown: ...

    def parse(self, given: Any, context: Context) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are; text in an envelope."""

    def text(self, data: bytes, context: Context) -> bytes:
        return data

    def show(self, data: bytes | None, context: Context) -> Shown:
        return text_or_base64(data)

    def parse(self, given: Any, context: Context) -> bytes:
        match given:
            case bytes():
                return given
            case str():
                return given.encode()
        return _dumps(given)


@dataclass(frozen=True, slots=True)
class Armoured:
    """Bytes in hex or base64, both ways."""

    name: str
    write: Callable[[bytes], str]
    read: Callable[[bytes], bytes]

    def text(self, data: bytes, context: Context) -> bytes:
        return self.write(data).encode()

    def show(self, data: bytes | None, context: Context) -> Shown:
        return (None, None) if data is None else (self.write(data), self.name if self.name == BASE64 else None)

    def parse(self, given: Any, context: Context) -> bytes:
        if isinstance(given, bytes) and not given.isascii():
            return given  # an envelope has decoded it already
        try:
            return self.read(given if isinstance(given, bytes) else str(given).encode())
        except (binascii.Error, ValueError):
            raise SerdeError(f"{given!r:.40} is no {self.name}") from None


@dataclass(frozen=True, slots=True)
class Plain:
    """JSON, numbers and UUIDs, without a schema."""

    serde: Serde
    of_text: Callable[[bytes], Any]

    def text(self, data: bytes, context: Context) -> bytes:
        found = self.serde.from_bytes(data, context)
        return _dumps(found) if self.of_text is json.loads else str(found).encode()

    def show(self, data: bytes | None, context: Context) -> Shown:
        return self.serde.from_bytes(data, context), None

    def parse(self, given: Any, context: Context) -> bytes:
        try:
            value = self.of_text(given) if isinstance(given, bytes) else given
        except (ValueError, RecursionError) as error:
            raise SerdeError(f"{given!r:.40} cannot be read: {error}") from None
        return self.serde.to_bytes(value, context) or b""


@dataclass(frozen=True, slots=True)
class Typed:
    """Avro, JSON Schema and Protobuf, as JSON."""

    serde: Any
    to_document: Callable[[Any], Any]
    of_document: Callable[[Any, Any, Context], Any]  # the serde, the document

    def text(self, data: bytes, context: Context) -> bytes:
        return _dumps(self.to_document(self.serde.from_bytes(data, context)))

    def show(self, data: bytes | None, context: Context) -> Shown:
        return (None, None) if data is None else (self.to_document(self.serde.from_bytes(data, context)), None)

    def parse(self, given: Any, context: Context) -> bytes:
        if isinstance(given, bytes):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError) as error:
                raise SerdeError(f"{given!r:.40} is no JSON: {error}") from None
        return self.serde.to_bytes(self.of_document(self.serde, given, context), context) or b""


@dataclass(slots=True)
class ByRegistry:
    """Values by the schema that they name; those that name none are text."""

    registry: Registry
    known: dict[str, Typed]

    def text(self, data: bytes, context: Context) -> bytes:
        codec = self._codec(data, context)
        return codec.text(data, context) if codec else data

    def show(self, data: bytes | None, context: Context) -> Shown:
        codec = self._codec(data, context) if data is not None else None
        return codec.show(data, context) if codec else text_or_base64(data)

    def parse(self, given: Any, context: Context) -> bytes:
        raise misused("The format registry is for reading; write with avro, json-schema or protobuf.")

    def _codec(self, data: bytes, context: Context) -> Typed | None:
        try:
            ref, _ = unframe(data, context)
        except SerdeError:
            return None
        format = TYPES.get(self.registry.schema(SchemaRef(ref.id, ref.guid)).type, "avro")
        if format not in self.known:
            self.known[format] = _typed(format, self.registry, None, {}, None)
        return self.known[format]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says about keys or values. `schema` is a file, an id, or None for the latest."""

    format: str
    schema: str | None = None
    message: str | None = None
    strategy: str | None = None


def connect_registry(connection: Connection) -> Registry:
    """Connect to the registry as serdes use it; Mistake where its settings are wrong."""
    from moldau.serdes.registry import Registry

    try:
        return Registry.connect(connection.registry_settings)
    except ValueError as error:
        raise misused(f"The registry cannot be used: {error}.") from None


def codec(wanted: Wanted, connect: Callable[[], Registry], *, writing: bool) -> Codec:
    """Return the codec of a format; connect to the registry only if it is needed."""
    name = wanted.format
    if name not in FORMATS:
        raise misused(f"There is no format {name!r}: there are {', '.join(FORMATS)}.")
    if wanted.schema and name not in TYPED:
        raise misused(f"The format {name} has no schema: choose {', '.join(TYPED)}, or leave the schema out.")
    if name in TYPED:
        registry = connect()
        settings: dict[str, Any] = {"subject.name.strategy": wanted.strategy} if wanted.strategy else {}
        schema, more = _schema(wanted, registry, writing)
        return _typed(name, registry, schema, {**settings, **more}, wanted.message)
    if name == "registry":
        return ByRegistry(connect(), {})
    return _plain(name)


def _plain(name: str) -> Codec:
    match name:
        case "string" | "bytes":
            return Raw()
        case "hex":
            return Armoured("hex", bytes.hex, binascii.unhexlify)
        case "base64":
            return Armoured(BASE64, lambda data: base64.b64encode(data).decode(), _unbase64)
        case "uuid":
            return Plain(PLAIN[name], lambda text: text.decode())
    return Plain(PLAIN[name], json.loads)


def _unbase64(text: bytes) -> bytes:
    return base64.b64decode(text, validate=True)


def _schema(wanted: Wanted, registry: Registry, writing: bool) -> tuple[Schema | None, Mapping[str, Any]]:
    """Return the schema for the serde, and further settings."""
    if wanted.schema is None or wanted.schema == "latest":
        return None, {"use.latest.version": True} if writing or wanted.schema else {}
    if wanted.schema.isdecimal():
        if writing:
            return None, {"use.schema.id": int(wanted.schema)}
        return registry.schema(SchemaRef(int(wanted.schema))), {}
    file = Path(wanted.schema)
    try:
        if file.stat().st_size > LARGEST_SCHEMA:
            raise misused(f"{file} is larger than {LARGEST_SCHEMA} bytes: it is no schema.")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise Mistake(f"The schema {file} cannot be read: {why}. Name a file, an id, or latest.") from None
    from moldau.serdes.registry import Schema

    kind = next(kind for kind, format in TYPES.items() if format == wanted.format)
    return Schema(kind, text), {}


def _typed(
    format: str, registry: Registry, schema: Schema | None, settings: Mapping[str, Any], message: str | None
) -> Typed:
    from moldau.serdes.formats import serde

    made = serde(format, registry, schema, settings, message)
    match format:
        case "avro":
            from moldau.records.natural import of_document, to_document

            return Typed(made, to_document, of_document)
        case "protobuf":
            from google.protobuf.json_format import MessageToDict

            return Typed(made, lambda found: MessageToDict(found, preserving_proto_field_name=True), _as_it_is)
    return Typed(made, lambda found: found, _as_it_is)


def _as_it_is(serde: Any, document: Any, context: Context) -> Any:
    return document


def part(index: Literal[2, 3], codec: Codec, topic_of: Callable[[], str], null: bytes) -> Callable[[Any], bytes]:
    """Return a function that gives the bytes of a record's key (2) or value (3) for a template."""
    if isinstance(codec, Raw):
        return AsItIs(index, null)
    field: Literal["key", "value"] = "key" if index == 2 else "value"
    return lambda record: (
        null if record[index] is None else codec.text(record[index], Context(topic_of(), field, list(record[4])))
    )


_dumps_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def _dumps(value: Any) -> bytes:
    return _dumps_text(value).encode()
