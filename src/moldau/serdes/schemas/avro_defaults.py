"""Whether the default of an Avro field is a value of its type, as Java's parser checks it for new schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import json_text
from .parsed import SchemaError

if TYPE_CHECKING:
    from .avro import Field, Schema

RANGES = {"int": 1 << 31, "long": 1 << 63}
TEXTS = ("string", "bytes", "enum", "fixed")


def check_defaults(nodes: Iterable[Any]) -> None:
    known: dict[tuple[int, int], bool] = {}
    for node in nodes:
        for entry in getattr(node, "fields", ()):
            if entry.has_default and not fits(entry.type, entry.default, known):
                given = json_text.dumps(entry.default)[:200]
                raise SchemaError(f"field {entry.name} of {node.full_name} has the default {given}, not {say(entry)}")


def say(entry: Field) -> str:
    named = getattr(entry.type, "full_name", None)
    return f"a value of {entry.type.kind}{' ' + named if named else ''}"


def fits(schema: Schema, value: Any, known: dict[tuple[int, int], bool]) -> bool:
    """Look at each pair once: defaults of records in defaults of records grow exponentially otherwise.

    A pair that is met again while it is being looked at, a record that contains itself by default, does not fit: no
    value of it is finite.
    """
    key = (id(schema), id(value))
    if key not in known:
        known[key] = False
        known[key] = matches(schema, value, known)
    return known[key]


def matches(schema: Any, value: Any, known: dict[tuple[int, int], bool]) -> bool:
    match schema.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            limit = RANGES[schema.kind]
            return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list) and all(fits(schema.items, item, known) for item in value)
        case "map":
            return isinstance(value, dict) and all(fits(schema.values, item, known) for item in value.values())
        case "union":
            return any(fits(branch, value, known) for branch in schema.branches)
        case "record" | "error":
            return isinstance(value, dict) and all(field_fits(entry, value, known) for entry in schema.fields)
    return schema.kind in TEXTS and isinstance(value, str)


def field_fits(entry: Field, value: dict[str, Any], known: dict[tuple[int, int], bool]) -> bool:
    if entry.name in value:
        return fits(entry.type, value[entry.name], known)
    return entry.has_default and fits(entry.type, entry.default, known)
