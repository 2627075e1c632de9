"""AvroConverter: values in Confluent's wire format, with their schemas in the registry."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import IO, Any

from moldau.connect.converters.avro_schemas import AvroSchemas, ConnectSchemas
from moldau.connect.converters.avro_values import Convert, reader, writer
from moldau.connect.converters.kinds import Converter
from moldau.connect.converters.registry import Subject, connected
from moldau.connect.data import NULL, Schema, SchemaAndValue
from moldau.connect.errors import DataError
from moldau.serdes import avro as serde
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import frame, unframe
from moldau.serdes.registry import Registry
from moldau.serdes.registry import Schema as Registered
from moldau.serdes.schemas.avro import Schema as Node

WRITERS = 16  # for each schema of the registry: structs of schemas that differ may be written with it


@dataclass(slots=True)
class _Plan:
    """What is known of one schema: how it reads in Connect, its tree, and the codec without logical types."""

    schema: Schema
    node: Node
    codec: serde.Codec
    read: Convert
    write: Callable[[Schema], Convert]  # of structs with this schema


class AvroConverter:
    """The two directions for keys or for values."""

    def __init__(self, settings: Mapping[str, Any], registry: Registry, field: str) -> None:
        self.metadata: bool = settings["connect.meta.data"]
        self.enhanced: bool = settings["enhanced.avro.schema.support"]
        self.subject = Subject(settings, registry, "key" if field == "key" else "value")
        size: int = settings["schemas.cache.config"]
        self.written = lru_cache(size)(self._written)
        self.plan = lru_cache(size)(self._plan)

    def _written(self, schema: Schema) -> tuple[Registered, str | None]:
        text = json.dumps(AvroSchemas(self.metadata, self.enhanced).of(schema), separators=(",", ":"))
        registered = Registered("AVRO", text)
        return registered, serde.codec(registered).name

    def _plan(self, registered: Registered) -> _Plan:
        return _plan_of(registered, self.metadata, self.enhanced)

    def write(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None and (schema is None or schema.default is None):
            if schema is not None and not schema.optional:
                raise DataError("Found null value for non-optional schema")
            return None
        if schema is None:
            raise DataError("AvroConverter needs a schema: without one use JsonConverter with schemas.enable=false")
        own, name = self.written(schema)
        context = Context(topic, self.subject.field)
        written = self.subject.settle(context, own, name)
        plan = self.plan(written.schema)
        try:
            payload = serde.encode(plan.codec, plan.write(schema)(value))
            return frame(written.ref, payload, context, in_header=False)
        except SerdeError as error:
            raise DataError(f"Failed to serialize Avro data from topic {topic}: {error}") from None

    def read(self, topic: str, found: bytes | None) -> SchemaAndValue:
        if found is None:
            return NULL
        context = Context(topic, self.subject.field)
        try:
            ref, payload = unframe(found, context)
            plan = self.plan(self.subject.registered(ref, context))
            value = _decode(plan.codec, payload)
        except SerdeError as error:
            raise DataError(f"Failed to deserialize data for topic {topic} to Avro: {error}") from None
        return SchemaAndValue(plan.schema, plan.read(value))


def _plan_of(registered: Registered, metadata: bool, enhanced: bool) -> _Plan:
    node = serde.codec(registered).node
    schema = ConnectSchemas(metadata, enhanced).of(node)
    plain = tuple((name, _without_logical(text)) for name, text in registered.resolved)
    bare = Registered("AVRO", _without_logical(registered.text), registered.references, plain)
    return _Plan(schema, node, serde.codec(bare), reader(node, schema), lru_cache(WRITERS)(partial(writer, node)))


def file_values(file: IO[bytes]) -> Iterator[SchemaAndValue]:
    """Read an Avro file by the schema that it has; DataError if it is not one."""
    import fastavro

    try:
        blocks: Any = fastavro.block_reader(file)
        plan = _plan_of(Registered("AVRO", blocks.metadata["avro.schema"]), metadata=True, enhanced=False)
        if plan.codec.countless:
            raise DataError("It may have arrays without end: their items take no bytes.")
        for block in blocks:
            for _ in range(block.num_records):
                found = plan.codec.read(block.bytes_, plan.codec.parsed, None, return_named_type=True)
                yield SchemaAndValue(plan.schema, plan.read(found))
    except (SerdeError, *serde.WRONG_BYTES) as error:
        raise DataError(f"It is no Avro file: {serde.reason(error)}") from error


def _decode(codec: serde.Codec, payload: bytes) -> Any:
    """Read a value with the names of the branches that named types have in unions."""
    if codec.raw or codec.countless:
        return serde.decode(payload, codec, None)
    try:
        return codec.read(io.BytesIO(payload), codec.parsed, None, return_named_type=True)
    except serde.WRONG_BYTES as error:
        raise SerdeError(f"the bytes do not fit the schema {codec.name or ''}: {serde.reason(error)}") from None


def _without_logical(text: str) -> str:
    """Remove logical types, which fastavro would turn into types of Python that hold less than Connect's."""

    def bare(node: Any) -> Any:
        if isinstance(node, list):
            return [bare(each) for each in node]
        if not isinstance(node, dict):
            return node
        return {name: bare(each) if name in INNER else each for name, each in node.items() if name != "logicalType"}

    return json.dumps(bare(json.loads(text)))


INNER = ("type", "items", "values", "fields")


def make_avro(settings: Mapping[str, Any]) -> Converter:
    converter = AvroConverter(settings, connected(settings), settings["converter.type"])
    return Converter(converter.write, converter.read)
