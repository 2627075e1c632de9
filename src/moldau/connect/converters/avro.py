"""AvroConverter: values in Confluent's wire format, with their schemas in the registry."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moldau.connect import data
from moldau.connect.converters.avro_schemas import UNION, AvroSchemas, ConnectSchemas
from moldau.connect.converters.kinds import Converter
from moldau.connect.converters.registry import Subject, connected
from moldau.connect.data import NULL, Schema, SchemaAndValue, Struct, Type
from moldau.connect.errors import DataError
from moldau.serdes import avro as serde
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import frame, unframe
from moldau.serdes.registry import Registry
from moldau.serdes.registry import Schema as Registered
from moldau.serdes.schemas.avro import Array, Map, Named, Primitive, Union
from moldau.serdes.schemas.avro import Schema as Node


@dataclass(slots=True)
class _Plan:
    """What is known of one schema: how it reads in Connect, its tree, and the codec without logical types."""

    schema: Schema
    node: Node
    codec: serde.Codec


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
        node = serde.codec(registered).node
        schema = ConnectSchemas(self.metadata, self.enhanced).of(node)
        plain = tuple((name, _without_logical(text)) for name, text in registered.resolved)
        bare = Registered("AVRO", _without_logical(registered.text), registered.references, plain)
        return _Plan(schema, node, serde.codec(bare))

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
            payload = serde.encode(plan.codec, self._out(plan.node, schema, value))
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
        return SchemaAndValue(plan.schema, self._in(plan.node, plan.schema, value))

    def _out(self, node: Node, schema: Schema, value: Any) -> Any:
        """Turn a value into what fastavro writes; a branch of a union of several is named."""
        if value is None:
            value = schema.default
            if value is None:
                if not schema.optional:
                    raise DataError("Found null value for non-optional schema")
                return None
        if isinstance(node, Union):
            return self._out_union(node, schema, value)
        if schema.name in data.LOGICAL:
            return data.encode_logical(schema, value)
        match node:
            case Named() if node.is_record:
                if not isinstance(value, Struct) or schema.type is not Type.STRUCT:
                    raise DataError(f"The value for the record {node.full_name} is not a struct")
                return {each.name: self._out_field(each.type, value, each.name) for each in node.fields}
            case Array() if schema.type is Type.MAP:
                assert isinstance(node.items, Named) and schema.key_schema and schema.value_schema
                keys, values = (each.type for each in node.items.fields)
                return [
                    {"key": self._out(keys, schema.key_schema, k), "value": self._out(values, schema.value_schema, v)}
                    for k, v in value.items()
                ]
            case Array():
                return [self._out(node.items, schema.value_schema or data.STRING, each) for each in value]
            case Map():
                inner = schema.value_schema or data.STRING
                return {key: self._out(node.values, inner, each) for key, each in value.items()}
            case _:
                return value

    def _out_field(self, node: Node, struct: Struct, name: str) -> Any:
        place = struct.schema.by_name.get(name)
        if place is None:
            raise DataError(f"The schema of the registry has the field {name}, which the struct does not have")
        return self._out(node, place.schema, struct.get_without_default(name))

    def _out_union(self, node: Union, schema: Schema, value: Any) -> Any:
        branches = [each for each in node.branches if each.kind != "null"]
        if schema.name != UNION:
            return self._out(branches[0], schema, value)
        for branch, (place, each) in zip(branches, value, strict=True):
            if each is not None:
                name = branch.full_name if isinstance(branch, Named) else branch.kind
                return name, self._out(branch, place.schema, each)
        raise DataError("A struct that stands for a union has no value")

    def _in(self, node: Node, schema: Schema, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(node, Union):
            return self._in_union(node, schema, value)
        if isinstance(value, tuple):  # (name of the branch, value)
            value = value[1]
        if schema.name in data.LOGICAL:
            return data.decode_logical(schema, value)
        match node:
            case Named() if node.is_record:
                pairs = zip(node.fields, schema.fields, strict=True)
                return Struct(
                    schema, tuple(self._in(each.type, place.schema, value[each.name]) for each, place in pairs)
                )
            case Array() if schema.type is Type.MAP:
                assert isinstance(node.items, Named) and schema.key_schema and schema.value_schema
                keys, values = (each.type for each in node.items.fields)
                pairs = (
                    (self._in(keys, schema.key_schema, e["key"]), self._in(values, schema.value_schema, e["value"]))
                    for e in value
                )
                return {tuple(key) if isinstance(key, list) else key: each for key, each in pairs}
            case Array():
                return [self._in(node.items, schema.value_schema or data.STRING, each) for each in value]
            case Map():
                inner = schema.value_schema or data.STRING
                return {key: self._in(node.values, inner, each) for key, each in value.items()}
            case _:
                return value

    def _in_union(self, node: Union, schema: Schema, value: Any) -> Any:
        branches = [each for each in node.branches if each.kind != "null"]
        if schema.name != UNION:
            return self._in(branches[0], schema, value)
        chosen = next((each for each in branches if _fits(each, value)), None)
        if chosen is None:
            raise DataError("A value fits no branch of its union")
        return Struct(
            schema,
            tuple(
                self._in(branch, place.schema, value) if branch is chosen else None
                for branch, place in zip(branches, schema.fields, strict=True)
            ),
        )


PYTHON = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "bytes": bytes,
    "array": list,
    "map": dict,
}


def _fits(node: Node, value: Any) -> bool:
    """Tell whether a value was read from a branch: fastavro names records, and other types by tuples too."""
    if isinstance(value, tuple):
        return isinstance(node, Named) and value[0] in (node.full_name, node.name)
    return isinstance(node, Primitive | Array | Map) and type(value) is PYTHON.get(node.kind)


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
