"""JsonSchemaConverter: values as JSON in Confluent's wire format, with their schemas as JSON Schema in the registry.

What JSON Schema cannot say stands in properties `connect.*`: the type, the version, the parameters and the position of
a field. An optional schema is `oneOf` null and the rest; any other choice is a struct with one optional field for each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from moldau.connect import data
from moldau.connect.converters.json import JsonConverter, parse_json
from moldau.connect.converters.kinds import Converter
from moldau.connect.converters.registry import Subject, connected
from moldau.connect.data import NULL, Schema, SchemaAndValue, Struct, Type
from moldau.connect.errors import DataError
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import frame, unframe
from moldau.serdes.registry import Registry
from moldau.serdes.registry import Schema as Registered

ONE_OF = "io.confluent.connect.json.OneOf"
ENUM = "io.confluent.connect.json.Enum"
KINDS = {
    **dict.fromkeys(data.BITS, "integer"),
    Type.FLOAT32: "number",
    Type.FLOAT64: "number",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "string",
    Type.ARRAY: "array",
    Type.MAP: "object",
    Type.STRUCT: "object",
}
TYPES = {
    "integer": Type.INT64,
    "number": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
    "array": Type.ARRAY,
    "object": Type.STRUCT,
}
# The types that need the property connect.type, because JSON Schema has no equivalent.
MARKED = (*data.BITS, Type.FLOAT32, Type.FLOAT64, Type.BYTES, Type.MAP)
MAX_DEPTH = 100


class Payload(JsonConverter):
    """The JSON of values: that of JsonConverter, but for maps without string keys and for choices."""

    def map_text(self, schema: Schema | None, value: Any) -> str:
        keys = schema.key_schema if schema else None
        if schema is None or keys is None or keys.type is Type.STRING:
            return super().map_text(schema, value)
        inner = schema.value_schema
        entries = (f'{{"key":{self.text(keys, key)},"value":{self.text(inner, each)}}}' for key, each in value.items())
        return "[" + ",".join(entries) + "]"

    def map(self, schema: Schema, found: Any) -> dict[Any, Any]:
        if schema.key_schema is None or schema.key_schema.type is Type.STRING:
            return super().map(schema, found)
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise DataError("A map whose keys are not strings must be an array of entries")
        return super().map(schema, [[each.get("key"), each.get("value")] for each in found])

    def struct_text(self, schema: Schema | None, value: Struct) -> str:
        if schema is None or schema.name != ONE_OF:
            return super().struct_text(schema, value)
        chosen = next(((place, each) for place, each in value if each is not None), None)
        return self.text(chosen[0].schema, chosen[1]) if chosen else "null"

    def struct(self, schema: Schema, found: Any) -> Struct:
        if schema.name != ONE_OF:
            return super().struct(schema, found)
        for place in schema.fields:
            if _fits(place.schema, found):
                value = self.value(place.schema, found)
                return Struct(schema, tuple(value if each is place else None for each in schema.fields))
        raise DataError("A value fits none of the choices of its schema")


def _fits(schema: Schema, found: Any) -> bool:
    """Tell whether JSON has the kind of a schema; the fields of an object must be among those of the struct."""
    kinds = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    kind = kinds.get(type(found), "number")
    if kind == "object" and schema.type is Type.STRUCT:
        return found.keys() <= schema.by_name.keys()
    return KINDS[schema.type] == kind or (kind == "integer" and KINDS[schema.type] == "number")


def document(payload: Payload, schema: Schema, index: int | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a schema; `index` is the position of a field."""
    made = _document(payload, schema)
    if schema.optional:
        made = {"oneOf": [{"type": "null"}, *(made["oneOf"] if made.keys() == {"oneOf"} else [made])]}
    return made if index is None else {**made, "connect.index": index}


def _document(payload: Payload, schema: Schema) -> dict[str, Any]:
    if schema.name == ONE_OF:
        return {"oneOf": [document(payload, each.schema.but(optional=False)) for each in schema.fields]}
    made: dict[str, Any] = {"type": "number" if schema.name == data.DECIMAL else KINDS[schema.type]}
    if schema.type is Type.STRUCT:
        made["properties"] = {each.name: document(payload, each.schema, each.index) for each in schema.fields}
    elif schema.type is Type.ARRAY:
        made["items"] = document(payload, _known(schema.value_schema))
    elif schema.type is Type.MAP:
        made |= _map(payload, _known(schema.key_schema), _known(schema.value_schema))
    symbols = [key[len(ENUM) + 1 :] for key in schema.parameters or {} if key.startswith(ENUM + ".")]
    if symbols:
        made["enum"] = symbols
    if schema.type in MARKED:
        made["connect.type"] = schema.type.value
    if schema.name is not None:
        made["title"] = schema.name
    if schema.doc is not None:
        made["description"] = schema.doc
    if schema.version is not None:
        made["connect.version"] = schema.version
    if schema.parameters is not None:
        made["connect.parameters"] = dict(schema.parameters)
    if schema.default is not None:
        made["default"] = json.loads(payload.text(schema, schema.default))
    return made


def _map(payload: Payload, keys: Schema, values: Schema) -> dict[str, Any]:
    if keys.type is Type.STRING:
        return {"additionalProperties": document(payload, values)}
    entry = {"key": document(payload, keys, 0), "value": document(payload, values, 1)}
    return {"type": "array", "items": {"type": "object", "properties": entry}}


def _known(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("JSON Schema needs the schema of an array's or a map's values")
    return schema


class _Reading:
    """Reads one document, whose `$ref`s point into itself."""

    def __init__(self, payload: Payload, root: Any) -> None:
        self.payload = payload
        self.root = root

    def schema(self, found: Any, depth: int = 0) -> Schema:
        if depth > MAX_DEPTH:
            raise DataError("The JSON Schema contains itself, or nests too deeply, which a schema of Connect cannot")
        if not isinstance(found, dict):
            raise DataError("A JSON Schema that allows everything has no schema in Connect")
        if "$ref" in found:
            return self.schema(self._at(found["$ref"]), depth + 1)
        for word in ("oneOf", "anyOf"):
            if word in found:
                return self._choice(found[word], depth)
        if "allOf" in found:
            raise DataError("JsonSchemaConverter does not support allOf")
        kind = found.get("type")
        if isinstance(kind, list):
            return self._choice([{**found, "type": each} for each in kind], depth)
        schema = self._basic(found, kind, depth)
        schema = schema.but(
            name=found.get("title", schema.name),
            doc=found.get("description"),
            version=found.get("connect.version", schema.version),
            parameters=self._parameters(found),
        )
        return schema.but(default=self.payload.value(schema, found["default"])) if "default" in found else schema

    def _parameters(self, found: Mapping[str, Any]) -> Mapping[str, str] | None:
        given = found.get("connect.parameters")
        symbols = found.get("enum")
        if given is not None or not isinstance(symbols, list):
            return given
        return {ENUM: found.get("title", ""), **{f"{ENUM}.{each}": str(each) for each in symbols}}

    def _at(self, ref: Any) -> Any:
        found = self.root
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise DataError(f"JsonSchemaConverter follows references within a schema only, not {ref}")
        for step in ref[1:].split("/")[1:]:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found

    def _choice(self, branches: list[Any], depth: int) -> Schema:
        others = [each for each in branches if not (isinstance(each, dict) and each.get("type") == "null")]
        optional = len(others) < len(branches)
        if len(others) == 1:
            return self.schema(others[0], depth + 1).but(optional=optional)
        fields = [(f"{ONE_OF}.field.{at}", self.schema(each, depth + 1)) for at, each in enumerate(others)]
        made = [(name, each.but(optional=True)) for name, each in fields]
        return data.struct(made, name=ONE_OF, optional=optional)

    def _basic(self, found: Mapping[str, Any], kind: Any, depth: int) -> Schema:
        marked = found.get("connect.type")
        if marked == "map" and kind == "array":
            entry = found["items"]["properties"]
            return data.map_of(self.schema(entry["key"], depth + 1), self.schema(entry["value"], depth + 1))
        inner = found.get("additionalProperties")
        if marked == "map" or (kind == "object" and "properties" not in found and isinstance(inner, dict)):
            return data.map_of(data.STRING, self.schema(inner, depth + 1))
        if kind not in TYPES:
            raise DataError(f"JsonSchemaConverter does not support the type {kind} of JSON Schema")
        if kind == "array":
            return data.array(self.schema(found.get("items"), depth + 1))
        if kind == "object":
            pairs = list(found.get("properties", {}).items())
            pairs.sort(key=lambda pair: pair[1].get("connect.index", len(pairs)) if isinstance(pair[1], dict) else 0)
            return data.struct([(name, self.schema(each, depth + 1)) for name, each in pairs])
        return Schema(Type(marked) if marked in {each.value for each in Type} else TYPES[kind])


class JsonSchemaConverter:
    """The two directions for keys or for values."""

    def __init__(self, settings: Mapping[str, Any], registry: Registry, field: str) -> None:
        inner = {
            "schemas.enable": False,
            "decimal.format": settings["decimal.format"],
            "replace.null.with.default": True,
            "schemas.cache.size": 1,
            "schema.content": None,
        }
        self.payload = Payload(inner)
        self.defaults = Payload(inner | {"decimal.format": "BASE64"})  # which loses no digits
        self.subject = Subject(settings, registry, "key" if field == "key" else "value")
        size: int = settings["schemas.cache.config"]
        self.written = lru_cache(size)(self._written)
        self.schema = lru_cache(size)(self._schema)

    def _written(self, schema: Schema) -> Registered:
        return Registered("JSON", json.dumps(document(self.defaults, schema), separators=(",", ":")))

    def _schema(self, registered: Registered) -> Schema:
        if registered.type != "JSON":
            raise SerdeError(f"the schema is {registered.type}, not JSON")
        root = parse_json(registered.text.encode())
        return _Reading(self.payload, root).schema(root)

    def write(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None:
            if value is None:
                return None
            raise DataError("JsonSchemaConverter needs a schema: without one use JsonConverter")
        if value is None and schema.default is None and schema.optional:
            return None
        payload = self.payload.write(topic, schema, value)
        context = Context(topic, self.subject.field)
        written = self.subject.settle(context, self.written(schema), schema.name)
        return frame(written.ref, payload or b"", context, in_header=False)

    def read(self, topic: str, found: bytes | None) -> SchemaAndValue:
        if found is None:
            return NULL
        context = Context(topic, self.subject.field)
        try:
            ref, payload = unframe(found, context)
            schema = self.schema(self.subject.registered(ref, context))
        except SerdeError as error:
            raise DataError(f"Failed to deserialize data for topic {topic} to JSON: {error}") from None
        return SchemaAndValue(schema, self.payload.value(schema, parse_json(payload)))


def make_json_schema(settings: Mapping[str, Any]) -> Converter:
    converter = JsonSchemaConverter(settings, connected(settings), settings["converter.type"])
    return Converter(converter.write, converter.read)
