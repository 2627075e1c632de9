"""Formats with a schema: which schema of the registry is meant, and JSON to bytes and back by it.

The code of a format, and that of the registry's client, is loaded with the first record that needs it. What a schema
is found to be is kept: for good where it cannot change, for a minute where the latest version is meant.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka import Message

from moldau.http import HttpError
from moldau.rest.errors import CANNOT_DESERIALIZE, CANNOT_SERIALIZE, WRONG_SCHEMA, refusal
from moldau.rest.formats import Encoded
from moldau.serdes.context import Context, Headers, SerdeError
from moldau.serdes.framing import SchemaRef, frame, unframe
from moldau.serdes.options import by_record, by_topic, by_topic_and_record
from moldau.serdes.primitive import JSON
from moldau.serdes.registry import Registry, RegistryError, Schema
from moldau.serdes.schemas import SchemaError, parse
from moldau.settings import ServiceSettings

LATEST_SECONDS = 60.0
MOST_KNOWN = 10_000
STRATEGIES = {"TOPIC_NAME": by_topic, "RECORD_NAME": by_record, "TOPIC_RECORD_NAME": by_topic_and_record}
INVALID_IN_REGISTRY = 42201


class Wish(NamedTuple):
    """How a request names a schema."""

    topic: str
    field: str
    format: str | None = None
    subject: str | None = None
    strategy: str | None = None
    id: int | None = None
    version: int | None = None
    text: str | None = None


class Chosen(NamedTuple):
    """The schema that is meant, and under which subject and version it is registered."""

    format: Typed
    subject: str
    ref: SchemaRef
    version: int | None
    schema: Schema


class Typed(NamedTuple):
    """A format. `kind` is the registry's word for it; `write` also says, for Protobuf, which message it is."""

    name: str
    kind: str
    record: Callable[[Schema], str | None]
    write: Callable[[Schema, Any], tuple[bytes, tuple[int, ...] | None]]
    read: Callable[[Schema, SchemaRef, bytes], Any]


def _avro_name(schema: Schema) -> str | None:
    from moldau.serdes.avro import codec

    return codec(schema).name


def _write_avro(schema: Schema, data: Any) -> tuple[bytes, None]:
    from moldau.rest import avro_json

    return avro_json.to_bytes(schema, data), None


def _read_avro(schema: Schema, _: SchemaRef, payload: bytes) -> Any:
    from moldau.rest import avro_json

    return avro_json.to_json(schema, payload)


def _json_title(schema: Schema) -> str | None:
    from moldau.serdes import json_schema

    return json_schema.title(schema)


def _write_json(schema: Schema, data: Any) -> tuple[bytes, None]:
    from moldau.serdes import json_schema

    json_schema.check(schema, data)
    return JSON.to_bytes(data, Context("")) or b"", None


def _read_json(_: Schema, __: SchemaRef, payload: bytes) -> Any:
    return JSON.from_bytes(payload, Context(""))


def _protobuf_name(schema: Schema) -> str | None:
    from moldau.serdes import protobuf

    return protobuf.named(protobuf.file_of(schema), None).full_name


def _write_protobuf(schema: Schema, data: Any) -> tuple[bytes, tuple[int, ...]]:
    from google.protobuf.message_factory import GetMessageClass

    from moldau.serdes import protobuf

    descriptor = protobuf.named(protobuf.file_of(schema), None)
    message = protobuf.of_dict(data, GetMessageClass(descriptor))
    return message.SerializeToString(), protobuf.path_to(descriptor)


def _read_protobuf(schema: Schema, ref: SchemaRef, payload: bytes) -> Any:
    from google.protobuf import json_format
    from google.protobuf.message_factory import GetMessageClass

    from moldau.serdes import protobuf

    descriptor = protobuf.message_at(protobuf.file_of(schema), ref.indexes or (0,))
    message = protobuf.of_bytes(payload, GetMessageClass(descriptor))
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


TYPED = {
    row.name: row
    for row in (
        Typed("AVRO", "AVRO", _avro_name, _write_avro, _read_avro),
        Typed("JSONSCHEMA", "JSON", _json_title, _write_json, _read_json),
        Typed("PROTOBUF", "PROTOBUF", _protobuf_name, _write_protobuf, _read_protobuf),
    )
}
BY_KIND = {row.kind: row for row in TYPED.values()}


class Schemas:
    """The registry's schemas, as requests name them. `find` blocks; `known` does not."""

    def __init__(self, settings: ServiceSettings) -> None:
        url, more = settings["schema.registry.url"], settings.under("schema.registry.")
        self._settings = {**more, "url": url} if url else None
        self._registry: Registry | None = None
        self._connecting = threading.Lock()
        if self._settings and more:
            _ = self.registry  # a wrong setting is refused at the start
        self._known: dict[Wish, tuple[float, Chosen]] = {}

    def close(self) -> None:
        if self._registry:
            self._registry.close()

    @property
    def registry(self) -> Registry:
        if self._settings is None:
            raise refusal(
                WRONG_SCHEMA, "this format needs a Schema Registry; start the proxy with --schema-registry-url."
            )
        with self._connecting:
            if self._registry is None:
                self._registry = Registry.connect(self._settings)
            return self._registry

    def known(self, wish: Wish) -> Chosen | None:
        until, found = self._known.get(wish, (0.0, None))
        return found if until > time.monotonic() else None

    def find(self, wish: Wish) -> Chosen:
        """Find the schema that is meant: ask the registry, and register a schema that comes with the request."""
        try:
            found = self._find(wish)
        except SchemaError as error:
            raise refusal(WRONG_SCHEMA, str(error)) from None
        except RegistryError as error:
            raise _refusal_of(error) from None
        except SerdeError as error:
            raise refusal(CANNOT_SERIALIZE, str(error)) from None
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        fixed = (wish.id, wish.version, wish.text) != (None, None, None)
        self._known[wish] = (time.monotonic() + (LATEST_SECONDS * 60 if fixed else LATEST_SECONDS), found)
        return found

    def _find(self, wish: Wish) -> Chosen:
        if sum(part is not None for part in (wish.id, wish.version, wish.text)) > 1:
            raise HttpError(400, "Bad Request: only one of schema_id, schema_version and schema may be given.")
        if wish.subject is not None and wish.strategy is not None:
            raise HttpError(400, "Bad Request: only one of subject and subject_name_strategy may be given.")
        if wish.text is not None:
            return self._register(wish, wish.text)
        if wish.id is not None:
            schema = self.registry.schema(SchemaRef(wish.id))
            return self._chosen(wish, SchemaRef(wish.id), schema, None)
        subject = self._subject(wish, None)
        asked = "latest" if wish.version is None else wish.version
        answer = self.registry.ask(self.registry.client.get_version, subject, asked)
        registered = self.registry.registered(answer, None)
        return self._chosen(wish, registered.ref, registered.schema, answer.version)

    def _register(self, wish: Wish, text: str) -> Chosen:
        if wish.format is None:
            raise HttpError(400, "Bad Request: a schema needs its type.")
        schema = Schema(TYPED[wish.format].kind, text)
        parse(schema.type, text, new=True)
        ref = self.registry.register(self._subject(wish, schema), schema, False)
        return self._chosen(wish, ref, schema, None)

    def _chosen(self, wish: Wish, ref: SchemaRef, schema: Schema, version: int | None) -> Chosen:
        format = BY_KIND[schema.type]
        if wish.format not in (None, format.name):
            raise refusal(WRONG_SCHEMA, f"the schema is {format.name}, not {wish.format}.")
        subject = self._subject(wish, schema)
        return Chosen(format, subject, ref, version or self.registry.version(subject, schema, False), schema)

    def _subject(self, wish: Wish, schema: Schema | None) -> str:
        if wish.subject is not None:
            return wish.subject
        strategy = STRATEGIES[wish.strategy or "TOPIC_NAME"]
        if schema is None and strategy is not by_topic:
            raise HttpError(400, "Bad Request: this subject_name_strategy needs a schema or a schema_id.")
        field: Any = wish.field
        return strategy(Context(wish.topic, field), BY_KIND[schema.type].record(schema) if schema else None)

    def decode(self, format: str, data: bytes | None, field: str, message: Message) -> Any:
        """Turn a key or value that was consumed into JSON; a schema that is new is fetched from the registry."""
        if data is None:
            return None
        try:
            place: Any = field
            context = Context(message.topic() or "", place, _headers(message))
            ref, payload = unframe(data, context, indexes=format == "PROTOBUF")
            schema = self.registry.schema(ref)
            if BY_KIND[schema.type].name != format:
                raise SerdeError(f"it is {BY_KIND[schema.type].name}")
            return TYPED[format].read(schema, ref, payload)
        except (SerdeError, SchemaError) as error:
            where = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
            detail = f"The {field} of the record in {where} is not {format}: {error}."
            raise HttpError(CANNOT_DESERIALIZE, detail) from None


def _headers(message: Message) -> Headers:
    return [(name, value if isinstance(value, bytes) else None) for name, value in message.headers() or ()]


def encode(chosen: Chosen, data: Any, topic: str, field: str) -> Encoded:
    """Encode JSON by its schema."""
    if data is None:
        return _encoded(chosen, None)
    place: Any = field
    try:
        payload, indexes = chosen.format.write(chosen.schema, data)
        ref = SchemaRef(chosen.ref.id, chosen.ref.guid, indexes)
        return _encoded(chosen, frame(ref, payload, Context(topic, place), in_header=False))
    except SerdeError as error:
        raise HttpError(400, f"Bad Request: {error}") from None
    except SchemaError as error:
        raise refusal(WRONG_SCHEMA, str(error)) from None


def _encoded(chosen: Chosen, data: bytes | None) -> Encoded:
    return Encoded(data, chosen.format.name, chosen.subject, chosen.ref.id, chosen.version)


def _refusal_of(error: RegistryError) -> HttpError:
    """Turn an error of the registry into a refusal: it is away, it does not take the schema, or something else."""
    if error.retriable:
        return HttpError(CANNOT_DESERIALIZE, f"Schema registration or lookup failed: {error}")
    return refusal(WRONG_SCHEMA if error.code == INVALID_IN_REGISTRY else CANNOT_SERIALIZE, str(error))
