"""Keywords of JSON Schema whose values are plainly right in every draft: what needs no look at a metaschema."""

from __future__ import annotations

from typing import Any

TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))


def is_plain(schema: Any, draft: str) -> bool:
    """Whether a schema, without the schemas inside of it, has only values that fulfil the draft's metaschema. False
    says nothing: the value may be right in a way that is not looked for here.
    """
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


def is_schemas(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(map(is_schema, value))


def is_named(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_schema, value.values()))


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(map(is_text, value)) and len(set(value)) == len(value)


def is_type(value: Any) -> bool:
    return value in TYPES if isinstance(value, str) else is_texts(value) and TYPES.issuperset(value)


def is_dependencies(value: Any) -> bool:
    return isinstance(value, dict) and all(is_schema(inner) or is_texts(inner) for inner in value.values())


def is_open_or_schema(value: Any) -> bool:
    return is_flag(value) or is_schema(value)


def is_plain_id(value: Any) -> bool:
    return isinstance(value, str) and "#" not in value


def is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


def is_any(value: Any) -> bool:
    return True


# rule -> the keywords whose values it decides on
TABLE = {
    is_any: "const default",
    is_text: "$comment $ref $schema contentEncoding contentMediaType description format id pattern title",
    is_plain_id: "$id",
    is_flag: "deprecated readOnly uniqueItems writeOnly",
    is_number: "maximum minimum",
    is_positive: "multipleOf",
    is_count: "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties",
    is_schema: "contains contentSchema else if items not propertyNames then unevaluatedItems unevaluatedProperties",
    is_schemas: "allOf anyOf oneOf prefixItems",
    is_named: "$defs definitions dependentSchemas patternProperties properties",
    is_texts: "enum required",
    is_type: "type",
    is_dependencies: "dependencies",
    is_open_or_schema: "additionalItems additionalProperties",
}
RULES = {keyword: rule for rule, keywords in TABLE.items() for keyword in keywords.split()}
LIMITS = frozenset(("exclusiveMaximum", "exclusiveMinimum"))
# Keywords with rules that are not told here. What is in none of these tables has no rules.
ANCHORS = frozenset(("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$vocabulary"))
OTHERS = ANCHORS | {"dependentRequired", "examples"}
