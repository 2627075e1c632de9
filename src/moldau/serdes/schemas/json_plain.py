"""Keywords of JSON Schema whose values are plainly right in every draft: what needs no look at a metaschema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))


def is_plain(schema: Any, draft: str) -> bool:
    """Say whether a schema, without the schemas inside of it, has only values that fulfil the draft's metaschema. False
    says nothing: the value may be right in a way that is not looked for here."""
    if not isinstance(schema, dict):
        return isinstance(schema, bool) and draft != "draft-04"
    return all(right(keyword, value, draft) for keyword, value in schema.items())


def right(keyword: str, value: Any, draft: str) -> bool:
    if keyword in LIMITS:
        return isinstance(value, bool) if draft == "draft-04" else is_number(value)
    rule = RULES.get(keyword)
    return rule(value) if rule else keyword not in OTHERS


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_schema(value: Any) -> bool:
    return value == {} and isinstance(value, dict)


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(map(is_text, value)) and len(set(value)) == len(value)


def are_values(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(map(fits, value.values()))


# the keywords of a rule -> whether a value is plainly right
TABLE: dict[str, Callable[[Any], bool]] = {
    "const default": lambda value: True,
    "$comment $ref $schema contentEncoding contentMediaType description format id pattern title": is_text,
    "$id": lambda value: is_text(value) and "#" not in value,
    "deprecated readOnly uniqueItems writeOnly": is_flag,
    "maximum minimum": is_number,
    "multipleOf": lambda value: is_number(value) and value > 0,
    "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties": is_count,
    "contains contentSchema else if items not propertyNames then unevaluatedItems unevaluatedProperties": is_schema,
    "allOf anyOf oneOf prefixItems": lambda value: (
        isinstance(value, list) and value != [] and all(map(is_schema, value))
    ),
    "$defs definitions dependentSchemas patternProperties properties": lambda value: are_values(value, is_schema),
    "enum required": is_texts,
    "type": lambda value: value in TYPES if is_text(value) else is_texts(value) and TYPES.issuperset(value),
    "dependencies": lambda value: are_values(value, lambda inner: is_schema(inner) or is_texts(inner)),
    "additionalItems additionalProperties": lambda value: is_flag(value) or is_schema(value),
}
RULES = {keyword: rule for keywords, rule in TABLE.items() for keyword in keywords.split()}
LIMITS = frozenset(("exclusiveMaximum", "exclusiveMinimum"))
# Keywords with rules that are not told here. What is in none of these tables has no rules.
ANCHORS = frozenset(("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$vocabulary"))
OTHERS = ANCHORS | {"dependentRequired", "examples"}
