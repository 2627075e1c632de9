"""Singer's messages: lines of JSON that a tap writes and a target reads, and its schemas as Connect's and back.

A tap's texts stay texts, dates too: nothing is lost, and TimestampConverter makes times of them. What has no one type
in its schema becomes a text of JSON. All fields are optional.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import msgspec

from moldau.connect.converters.json_structs import UNREAD
from moldau.connect.data import (
    BITS,
    DATE,
    DECIMAL,
    OPTIONAL,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
    array,
    fits,
    struct,
)
from moldau.connect.errors import DataError
from moldau.connect.shapes import infer, merged

SIMPLE = {
    "string": Type.STRING,
    "integer": Type.INT64,
    "number": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
}
TEXT = OPTIONAL[Type.STRING]
FORMATS = {TIMESTAMP: "date-time", DATE: "date", TIME: "time"}
MOST_DEPTH = 50
DECODE = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Described:
    """A SCHEMA message. One that says nothing has no schema: then the rows tell."""

    stream: str
    schema: Schema | None
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A RECORD message."""

    stream: str
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    """A STATE message: what the tap wants to be given when it is started again."""

    value: Any


Message = Described | Row | State | None


def read(line: bytes) -> Message:
    """Read a line; DataError if it is not a message. ACTIVATE_VERSION, which asks a target to drop rows, is None."""
    try:
        found = DECODE(line)
    except UNREAD:  # numbers that JSON does not have, and the like
        try:
            found = json.loads(line)
        except ValueError:
            raise DataError(f"A line is not JSON: {_excerpt(line)}") from None
    if not isinstance(found, dict):
        raise DataError(f"A line is not a message of Singer: {_excerpt(line)}")
    kind = found.get("type")
    match kind:
        case "RECORD" if isinstance(found.get("stream"), str) and isinstance(found.get("record"), dict):
            return Row(found["stream"], found["record"])
        case "SCHEMA" if isinstance(found.get("stream"), str) and isinstance(found.get("schema"), dict):
            is_silent = not found["schema"] or found["schema"] == {"type": "object"}
            schema = None if is_silent else connect_schema(found["schema"])
            if schema is not None and schema.type is not Type.STRUCT:
                raise DataError(f"The schema of {found['stream']} is not one of an object with properties.")
            return Described(found["stream"], schema, tuple(found.get("key_properties") or ()))
        case "STATE" if "value" in found:
            return State(found["value"])
        case "ACTIVATE_VERSION":
            return None
        case "BATCH":
            raise DataError("BATCH messages, which name files, are not supported; turn batches off in the tap.")
    raise DataError(f"A line is not a message of Singer: {_excerpt(line)}")


def _excerpt(line: bytes) -> str:
    return line[:100].decode("utf-8", "replace")


def connect_schema(found: Any, depth: int = 0) -> Schema:
    """Return Connect's schema of a JSON Schema."""
    if not isinstance(found, dict) or depth > MOST_DEPTH:
        return TEXT
    for choice in ("anyOf", "oneOf"):
        if isinstance(found.get(choice), list):
            made = {connect_schema(one, depth + 1) for one in found[choice] if one != {"type": "null"}}
            return made.pop() if len(made) == 1 else TEXT
    kinds = found.get("type")
    named = [one for one in (kinds if isinstance(kinds, list) else [kinds]) if one != "null"]
    kind = "number" if set(named) == {"integer", "number"} else named[0] if len(named) == 1 else None
    if kind == "object" and found.get("properties"):
        fields = {name: connect_schema(one, depth + 1) for name, one in found["properties"].items()}
        return struct(fields, optional=True)
    if kind == "array" and isinstance(found.get("items"), dict) and found["items"]:
        return array(connect_schema(found["items"], depth + 1), optional=True)
    return OPTIONAL[SIMPLE[kind]] if kind in SIMPLE else TEXT


def widened(schema: Schema, value: Mapping[str, Any]) -> Schema:
    """Return the schema with the fields that a row has and its schema did not announce."""
    more = {name: one for name, one in value.items() if name not in schema.by_name and one is not None}
    found = merged(schema, infer(more)) if more else schema
    assert found is not None
    return found


def fitted(schema: Schema, value: Any, place: str) -> Any:
    """Turn a value of JSON into one of a schema; DataError if it does not fit."""
    if value is None:
        return None
    match schema.type:
        case Type.STRING:
            return value if isinstance(value, str) else json.dumps(value)
        case Type.BOOLEAN if isinstance(value, bool):
            return value
        case Type.INT64 if isinstance(value, int) and not isinstance(value, bool) and fits(value, BITS[Type.INT64]):
            return value
        case Type.INT64 if isinstance(value, float) and value.is_integer() and fits(int(value), BITS[Type.INT64]):
            return int(value)
        case Type.FLOAT64 if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        case Type.ARRAY if isinstance(value, list):
            assert schema.value_schema is not None
            return [fitted(schema.value_schema, one, f"element of {place}") for one in value]
        case Type.STRUCT if isinstance(value, dict):
            return Struct(schema, tuple(fitted(one.schema, value.get(one.name), one.name) for one in schema.fields))
    raise DataError(f"{place} is {_excerpt(json.dumps(value).encode())}, and its schema says {schema.type.value}.")


# What a target reads.


def describe(stream: str, schema: Schema, keys: Sequence[str]) -> bytes:
    """Return a SCHEMA line."""
    return _line({"type": "SCHEMA", "stream": stream, "schema": json_schema(schema), "key_properties": list(keys)})


def row(stream: str, value: Any) -> bytes:
    """Return a RECORD line of a plain value."""
    return _line({"type": "RECORD", "stream": stream, "record": value})


def _line(message: Any) -> bytes:
    return json.dumps(message, default=_shown, separators=(",", ":")).encode() + b"\n"


def _shown(value: Any) -> Any:
    """Show what JSON has no type for."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    raise DataError(f"A value of type {type(value).__qualname__} cannot be written as JSON.")


def json_schema(schema: Schema) -> dict[str, Any]:
    """Return the JSON Schema of a schema of Connect."""
    made = _json_schema(schema)
    return {**made, "type": ["null", made["type"]]} if schema.optional else made


def _json_schema(schema: Schema) -> dict[str, Any]:
    if schema.name in FORMATS:
        return {"type": "string", "format": FORMATS[schema.name]}
    if schema.name == DECIMAL:
        return {"type": "number"}
    match schema.type:
        case Type.STRUCT:
            return {"type": "object", "properties": {one.name: json_schema(one.schema) for one in schema.fields}}
        case Type.ARRAY:
            return {"type": "array", "items": json_schema(schema.value_schema) if schema.value_schema else {}}
        case Type.MAP:
            return {"type": "object"}
        case Type.FLOAT32 | Type.FLOAT64:
            return {"type": "number"}
        case Type.BOOLEAN:
            return {"type": "boolean"}
        case kind:
            return {"type": "integer" if kind in BITS else "string"}
