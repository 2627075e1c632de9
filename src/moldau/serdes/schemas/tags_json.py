"""The paths of what can be tagged in a JSON Schema.

A path has a step for each schema on the way: object and a property's name, array, not, conditional with its branch,
or allof, anyof, oneof with a number. Numbers count the alternatives in an order of their own (by kind, title and what
they contain), so that a path stays when alternatives change places. A schema that is several things at once, say an
object and a oneOf, counts as an allof of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .json_text import dumps
from .parsed import Entity

TAGS = "confluent:tags"
CRITERIA = {"allOf": "allof", "anyOf": "anyof", "oneOf": "oneof"}
KEYWORDS = {
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "object": ("properties", "required", "minProperties", "maxProperties", "patternProperties", "additionalProperties"),
    "string": ("minLength", "maxLength", "pattern", "format"),
}
Found = Iterator[tuple[Entity, dict[str, Any]]]


def json_entities(schema: Any, scope: str = "", *, in_field: bool = False) -> Found:
    """Walk over records and fields below a schema, with the objects that hold their tags."""
    if not isinstance(schema, dict):
        return
    parts = sorted(kinds(schema), key=lambda part: part[0])
    for position, (kind, keyword) in enumerate(parts):
        inner = f"{scope}allof.{position}." if len(parts) > 1 else scope
        yield from part_entities(schema, kind, keyword, inner, in_field and len(parts) == 1)


def kinds(schema: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a schema is at once: (kind, the keyword that says so)."""
    found = [("combined", keyword) for keyword in CRITERIA if isinstance(schema.get(keyword), list)]
    found += [(kind, kind) for kind in ("enum", "const", "not") if kind in schema]
    found += [("conditional", "if")] if "if" in schema else []
    found += [("reference", "$ref")] if "$ref" in schema else []
    types = schema.get("type")
    named = [types] if isinstance(types, str) else types or []
    if isinstance(types, list):
        found.append(("combined", "type"))
    else:
        found += [("number" if kind == "integer" else kind, "type") for kind in named]
    said = {"number" if kind == "integer" else kind for kind in named}
    found += [(kind, "") for kind, keys in KEYWORDS.items() if kind not in said and any(key in schema for key in keys)]
    return found


def part_entities(schema: dict[str, Any], kind: str, keyword: str, scope: str, in_field: bool) -> Found:
    match kind:
        case "combined" if keyword == "type":
            names = sorted("number" if name == "integer" else str(name) for name in schema["type"])
            for position, name in enumerate(names):
                yield from part_entities(schema, name, "", f"{scope}anyof.{position}.", False)
        case "combined":
            for position, part in enumerate(sorted(schema[keyword], key=order)):
                yield from json_entities(part, f"{scope}{CRITERIA[keyword]}.{position}.")
        case "array":
            yield from json_entities(schema.get("items"), f"{scope}array.")
        case "not":
            yield from json_entities(schema["not"], f"{scope}not.")
        case "conditional":
            for branch in ("if", "then", "else"):
                yield from json_entities(schema.get(branch), f"{scope}conditional.{branch}.")
        case "object":
            yield from object_entities(schema, f"{scope}object", in_field)


def object_entities(schema: dict[str, Any], scope: str, in_field: bool) -> Found:
    if not in_field:
        yield Entity(scope, "sr_record"), schema
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            yield Entity(f"{scope}.{name}", "sr_field"), inner
            yield from json_entities(inner, f"{scope}.{name}.", in_field=True)
    for keyword in ("definitions", "$defs"):
        definitions = schema.get(keyword)
        for name, inner in definitions.items() if isinstance(definitions, dict) else ():
            yield from json_entities(inner, f"{scope}.{keyword}.{name}.")


def order(schema: Any) -> tuple[Any, ...]:
    if not isinstance(schema, dict):
        return ("true" if schema else "false", "", "", "", 0, [], 0, [])
    found = kinds(schema)
    kind = found[0][0] if len(found) == 1 else "combined" if found else "empty"
    said = (str(schema.get(key, "")) for key in ("title", "description"))
    default = dumps(schema["default"]) if "default" in schema else ""
    properties, required = sorted(schema.get("properties") or ()), sorted(map(str, schema.get("required") or ()))
    return (kind, *said, default, len(properties), properties, len(required), required)
