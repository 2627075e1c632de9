"""JSON_SR: JSON in Confluent's frame, with the JSON Schema that Connect would make of the columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.serdes.framing import frame, unframe
from moldau.serdes.registry import Schema
from moldau.serdes.typed import Subjects

from ..catalogue import Format
from ..errors import SqlError
from ..tree import ArrayType, DecimalType, Field, MapType, Primitive, StructType, Type
from ..types import Columns, base
from .json import Json
from .registered import Place
from .rows import Row

CONNECT = "org.apache.kafka.connect.data."
PRIMITIVES: dict[str, dict[str, Any]] = {
    "BOOLEAN": {"type": "boolean", "connect.type": "boolean"},
    "INTEGER": {"type": "integer", "connect.type": "int32"},
    "BIGINT": {"type": "integer", "connect.type": "int64"},
    "DOUBLE": {"type": "number", "connect.type": "float64"},
    "STRING": {"type": "string"},
    "BYTES": {"type": "string", "connect.type": "bytes"},
    "DATE": {"type": "integer", "title": f"{CONNECT}Date", "connect.version": 1, "connect.type": "int32"},
    "TIME": {"type": "integer", "title": f"{CONNECT}Time", "connect.version": 1, "connect.type": "int32"},
    "TIMESTAMP": {"type": "integer", "title": f"{CONNECT}Timestamp", "connect.version": 1, "connect.type": "int64"},
}


def node(type: Type) -> dict[str, Any]:
    """Return the JSON Schema of a type that may be null."""
    return {"oneOf": [{"type": "null"}, _bare(type)]}


def _bare(type: Type) -> dict[str, Any]:
    match type:
        case DecimalType(precision, scale):
            return {
                "type": "number",
                "title": f"{CONNECT}Decimal",
                "connect.version": 1,
                "connect.type": "bytes",
                "connect.parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
            }
        case ArrayType(item):
            return {"type": "array", "items": node(item)}
        case MapType(_, value):
            return {"type": "object", "connect.type": "map", "additionalProperties": node(value)}
        case StructType(fields):
            return _object([(each.name, each.type) for each in fields])
        case _:
            return PRIMITIVES[base(type)]


def _object(columns: Columns) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"connect.index": at} | node(type) for at, (name, type) in enumerate(columns)},
    }


@dataclass(frozen=True, slots=True)
class JsonSr:
    place: Place
    subjects: Subjects
    inner: Json

    @classmethod
    def of(cls, format: Format, columns: Columns, alone: bool, place: Place) -> JsonSr:
        own = Schema("JSON", json.dumps(node(columns[0][1]) if alone else _object(columns), separators=(",", ":")))
        return cls(place, place.subjects(own, format.property("schemaId")), Json.of(columns, alone))

    def dumps(self, row: Row | None) -> bytes | None:
        payload = self.inner.dumps(row)
        if payload is None:
            return None
        return frame(self.subjects.to_write(self.place.context).ref, payload, self.place.context, in_header=False)

    def loads(self, data: bytes | None) -> Row | None:
        return None if data is None else self.inner.loads(bytes(unframe(data, self.place.context)[1]))


MAX_DEPTH = 100


def columns_of(schema: Any, upper: bool, root: Any = None, depth: int = 0) -> Type:
    """Return the SQL type of a JSON Schema that others registered; `root` is where references begin."""
    root = schema if root is None else root
    if depth > MAX_DEPTH:
        raise SqlError("A JSON Schema that contains itself has no SQL type")

    def inner(part: Any) -> Type:
        return columns_of(part, upper, root, depth + 1)

    if "$ref" in schema:
        return inner(_referenced(schema["$ref"], root))
    options = schema.get("oneOf") or schema.get("anyOf")
    if options:
        others = [each for each in options if each.get("type") != "null"]
        if len(others) == 1:
            return inner(others[0])
        names = (f"connect_union_field_{number}" for number in range(len(others)))
        pairs = zip(names, others, strict=True)
        return StructType(tuple(Field(name.upper() if upper else name, inner(each)) for name, each in pairs))
    title = schema.get("title", "")
    if title.startswith(CONNECT):
        return _logical(title.removeprefix(CONNECT), schema)
    return _plain(schema, upper, inner)


def _referenced(path: str, root: Any) -> Any:
    """Return the part of a schema that a reference within it names."""
    if not path.startswith("#"):
        raise SqlError(f"The JSON Schema refers to {path}, which is not a part of it")
    found = root
    for step in path.removeprefix("#").strip("/").split("/"):
        if step and (not isinstance(found, dict) or step not in found):
            raise SqlError(f"The JSON Schema refers to {path}, which it lacks")
        found = found[step] if step else found
    return found


def _plain(schema: Any, upper: bool, inner: Callable[[Any], Type]) -> Type:
    connect = schema.get("connect.type")
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), None)
    match kind:
        case "object":
            if connect == "map" or ("additionalProperties" in schema and "properties" not in schema):
                values = schema["additionalProperties"]
                return MapType(Primitive("STRING"), inner(values if isinstance(values, dict) else {}))
            found = sorted(schema.get("properties", {}).items(), key=lambda pair: pair[1].get("connect.index", 0))
            return StructType(tuple(Field(n.upper() if upper else n, inner(each)) for n, each in found))
        case "array":
            if connect == "map":
                entry = schema["items"]["properties"]
                return MapType(inner(entry["key"]), inner(entry["value"]))
            return ArrayType(inner(schema["items"]))
        case "boolean":
            return Primitive("BOOLEAN")
        case "integer":
            return Primitive("INTEGER" if connect in ("int8", "int16", "int32") else "BIGINT")
        case "number":
            return Primitive("DOUBLE")
        case "string":
            return Primitive("BYTES" if connect == "bytes" else "STRING")
        case _:
            if "enum" in schema:
                return Primitive("STRING")
            raise SqlError(f"The JSON Schema type {kind} is not supported")


def _logical(name: str, schema: Any) -> Type:
    if name != "Decimal":
        return Primitive(name.upper())
    given = schema.get("connect.parameters", {})
    return DecimalType(int(given.get("connect.decimal.precision", 64)), int(given.get("scale", 0)))
