"""An example of a value by its schema, to be filled in: Avro and JSON Schema."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 12
AVRO = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": "",
    "string": "",
}
JSON = {"null": None, "boolean": False, "integer": 0, "number": 0.0, "string": "", "array": []}
LOGICAL = {
    "date": "2026-11-15",
    "time-millis": "10:00:00",
    "time-micros": "10:00:00",
    "timestamp-millis": "2026-11-15T10:00:00+00:00",
    "timestamp-micros": "2026-11-15T10:00:00+00:00",
    "decimal": "0.00",
    "uuid": "00000000-0000-0000-0000-000000000000",
}


def example(kind: str, text: str) -> Any:
    """A value that the schema allows, as plain as can be; an empty object where that is not known."""
    try:
        schema = json.loads(text)
    except ValueError:
        return {}
    return _avro(schema, {}, 0) if kind == "AVRO" else _json(schema, 0) if kind == "JSON" else {}


def _avro(schema: Any, named: dict[str, Any], depth: int) -> Any:
    if depth > DEEPEST:
        return None
    if isinstance(schema, list):  # a union: what is optional is left out
        return None if "null" in schema else _avro(schema[0], named, depth + 1) if schema else None
    if isinstance(schema, str):
        return AVRO[schema] if schema in AVRO else _avro(named.get(schema), {}, depth + 1)
    if not isinstance(schema, dict):
        return None
    if schema.get("logicalType") in LOGICAL:
        return LOGICAL[schema["logicalType"]]
    kind = schema.get("type")
    if isinstance(schema.get("name"), str):
        named[schema["name"]] = schema
    match kind:
        case "record":
            return {
                field["name"]: field["default"] if "default" in field else _avro(field.get("type"), named, depth + 1)
                for field in schema.get("fields") or ()
            }
        case "enum":
            return next(iter(schema.get("symbols") or ()), "")
        case "array":
            return []
        case "map":
            return {}
        case "fixed":
            return "\0" * int(schema.get("size") or 0)
    return _avro(kind, named, depth + 1)


def _json(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None
    for name in ("default", "const"):
        if name in schema:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or "properties" in schema:
        return {name: _json(inner, depth + 1) for name, inner in (schema.get("properties") or {}).items()}
    return JSON.get(kind) if isinstance(kind, str) else None
