"""Compatibility of JSON Schemas: what is found for each kind of change, references and recursion, bombs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.registry.compatibility import check
from moldau.registry.compatibility.json_check import differences
from moldau.registry.compatibility.json_rules import STRICT
from moldau.registry.compatibility.matching import matching
from moldau.serdes.schemas import Parsed, parse

NEWEST = "https://json-schema.org/draft/2020-12/schema"


def schema(document: Any) -> Parsed:
    return parse("JSON", json.dumps(document), new=True)


def changes(old: Any, new: Any) -> list[str]:
    return sorted(str(difference) for difference in differences(schema(old), schema(new)))


def thing(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string"}}, **keywords}


# old, new -> what is found; the same in the older and in the newest draft
EVERYWHERE: list[tuple[Any, Any, list[str]]] = [
    ({"type": "string"}, {"type": "string"}, []),
    ({"type": "string"}, {}, []),
    ({}, {"type": "string"}, ["TYPE_CHANGED #/"]),
    ({"type": "string", "maxLength": 2}, {"type": "string", "maxLength": 1}, ["MAX_LENGTH_DECREASED #/maxLength"]),
    ({"type": "number"}, {"type": "number", "minimum": 1}, ["MINIMUM_ADDED #/minimum"]),
    (
        {"type": "number", "exclusiveMaximum": 3},
        {"type": "number", "exclusiveMaximum": 2},
        ["EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum"],
    ),
    (
        {"type": "number", "multipleOf": 0.1},
        {"type": "number", "multipleOf": 0.3},
        ["MULTIPLE_OF_EXPANDED #/multipleOf"],
    ),
    ({"type": "number", "multipleOf": 0.5}, {"type": "number", "multipleOf": 0.50}, []),
    ({"type": "integer"}, {"type": "number"}, ["TYPE_EXTENDED #/"]),
    ({"enum": [1, 2]}, {"enum": [2, 1]}, []),
    ({"enum": [1]}, {"enum": [True]}, ["ENUM_ARRAY_CHANGED #/enum"]),
    ({"enum": [1, 2]}, {"enum": [1]}, ["ENUM_ARRAY_NARROWED #/enum"]),
    ({"const": 1}, {"const": 2}, ["ENUM_ARRAY_CHANGED #/const"]),
    ({"not": {"type": "number"}}, {"not": {"type": "integer"}}, ["NOT_TYPE_NARROWED #/not"]),
    (thing(), thing(required=["a"]), ["REQUIRED_ATTRIBUTE_ADDED #/required/a"]),
    (
        thing(),
        {"type": "object", "properties": {"a": {"type": "string", "default": ""}}, "required": ["a"]},
        ["DEFAULT_CHANGED #/properties/a", "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/a"],
    ),
    (thing(), {"type": "object"}, ["PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a"]),
    ({"type": "object"}, thing(), ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"]),
    (
        {"type": "object"},
        thing(required=["a"]),
        ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}},
        ["PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        thing(additionalProperties=False),
        {"type": "object", "additionalProperties": False},
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"],
    ),
    (
        {"type": "object", "patternProperties": {"^a(?=b)": {"type": "string"}}},
        thing(patternProperties={"^a(?=b)": {"type": "string"}}),
        ["OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        {"type": "array", "items": {"type": "string"}},
        {"type": "array"},
        ["SCHEMA_REMOVED #/items"],
    ),
    ({"type": "array"}, {"type": "array", "maxItems": 2}, ["MAX_ITEMS_ADDED #/maxItems"]),
    ({"oneOf": [{"type": "string"}] * 2}, {"oneOf": [{"type": "string"}]}, []),
    (
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"oneOf": [{"type": "number"}, {"type": "string", "maxLength": 3}]},
        ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/", "TYPE_EXTENDED #/oneOf/1"],
    ),
    ({"type": "string"}, {"type": ["string", "null"]}, ["SUM_TYPE_EXTENDED #/"]),
    ({"type": ["string", "null"]}, {"type": "string"}, ["TYPE_CHANGED #/"]),
    (
        {"type": "string", "connect.type": "bytes"},
        {"type": "number", "connect.type": "bytes"},
        [],
    ),
    (
        thing(properties={"a": {"$ref": "#/definitions/n"}}, definitions={"n": thing(title="x")}),
        thing(properties={"a": {"$ref": "#/$defs/n"}}, definitions={"n": thing(title="y")}),
        ["TITLE_CHANGED #/properties/a"],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), EVERYWHERE)
def test_changes_are_named_and_placed(old: Any, new: Any, expected: list[str]) -> None:
    assert changes(old, new) == expected


@pytest.mark.parametrize(("old", "new", "expected"), EVERYWHERE)
def test_the_newest_draft_finds_the_same(old: Any, new: Any, expected: list[str]) -> None:
    assert changes({"$schema": NEWEST, **old}, {"$schema": NEWEST, **new}) == expected


# The newest draft alone.
NEW_KEYWORDS: list[tuple[Any, Any, list[str]]] = [
    (
        {"type": "array", "contains": {}},
        {"type": "array", "contains": {}, "minContains": 2},
        ["MIN_CONTAINS_INCREASED #/minContains"],
    ),
    (
        {"type": "object", "unevaluatedProperties": False},
        {"type": "object"},
        ["UNEVALUATED_PROPERTIES_ADDED #/unevaluatedProperties"],
    ),
    (
        {"type": "object"},
        {"type": "object", "unevaluatedProperties": {"type": "string"}},
        ["UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties"],
    ),
    (
        {"type": "array", "unevaluatedItems": True},
        {"type": "array", "unevaluatedItems": False},
        ["UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems"],
    ),
    (
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        {"type": "object", "dependentRequired": {"a": ["b", "c"]}},
        ["DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"],
    ),
    (
        {"$ref": "#/$defs/a", "type": "object", "$defs": {"a": {"type": "object", "minProperties": 1}}},
        {"$ref": "#/$defs/a", "type": "object", "$defs": {"a": {"type": "object", "minProperties": 2}}},
        ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), NEW_KEYWORDS)
def test_keywords_of_the_newest_draft(old: Any, new: Any, expected: list[str]) -> None:
    assert changes({"$schema": NEWEST, **old}, {"$schema": NEWEST, **new}) == expected


@pytest.mark.parametrize(("old", "new", "expected"), [*EVERYWHERE, *NEW_KEYWORDS])
def test_every_change_that_breaks_is_told(old: Any, new: Any, expected: list[str]) -> None:
    draft = {"$schema": NEWEST}
    told = check("BACKWARD", schema(draft | new), [schema(draft | old)])
    broken = [change for change in expected if change.split()[0] not in STRICT]
    assert sorted(message.split('"')[1] for message in told if message.startswith("{errorType")) == sorted(
        change.split()[0] for change in broken
    )
    assert all(change.split()[1] in "".join(told) for change in broken)


def tree(leaf: Any, **more: Any) -> dict[str, Any]:
    node = {"type": "object", "properties": {"value": leaf, "left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    return node | more


def test_recursive_schemas_are_compared_once() -> None:
    assert changes(tree({"type": "string"}), tree({"type": "string"})) == []
    assert changes(tree({"type": "string"}), tree({"type": "number"})) == [
        "TYPE_CHANGED #/properties/left/properties/value",
        "TYPE_CHANGED #/properties/right/properties/value",
        "TYPE_CHANGED #/properties/value",
    ]


def web(size: int, kind: str) -> dict[str, Any]:
    """Definitions that all refer to all others."""
    every = [{"$ref": f"#/definitions/d{number}"} for number in range(size)]
    definitions = {f"d{number}": {"oneOf": [*every, {"type": kind}]} for number in range(size)}
    return {"oneOf": every, "definitions": definitions}


def test_definitions_that_all_refer_to_each_other_do_not_explode() -> None:
    old, new = schema(web(12, "string")), schema(web(12, "string"))
    assert check("BACKWARD", new, [old]) == []


def test_more_pairs_than_is_sensible_are_not_compared() -> None:
    wide = schema({"oneOf": [{"type": "string", "maxLength": number} for number in range(1, 600)]})
    assert "too large" in check("BACKWARD", wide, [wide])[0]


def test_a_chain_of_references_that_is_too_long_is_told() -> None:
    links = {f"d{n}": {"type": "array", "items": {"$ref": f"#/definitions/d{n + 1}"}} for n in range(5000)}
    chain = schema({"$ref": "#/definitions/d0", "definitions": {**links, "d5000": {}}})
    other = schema({"$ref": "#/definitions/d0", "definitions": {**links, "d5000": {"type": "string"}}})
    assert "too deeply" in check("BACKWARD", chain, [other])[0]


def test_a_reference_to_itself_says_nothing() -> None:
    loop = {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}}
    assert changes(loop, loop) == []


def test_lenient_lets_properties_come_and_go() -> None:
    old, new = schema({"type": "object"}), schema(thing())
    assert check("FULL", new, [old], lenient=True) == []
    assert [message.split(",")[0] for message in check("BACKWARD", new, [old])][:1] == [
        '{errorType:"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"'
    ]


def test_references_to_other_documents_are_followed() -> None:
    text = json.dumps({"type": "object", "properties": {"a": {"$ref": "other.json#/definitions/x"}}})
    old, new = (
        parse("JSON", text, resolved={"other.json": json.dumps({"definitions": {"x": {"type": kind}}})}, new=True)
        for kind in ("integer", "string")
    )
    assert [str(one) for one in differences(old, new)] == ["TYPE_CHANGED #/properties/a"]


def test_a_matching_finds_partners_for_as_many_as_possible() -> None:
    assert matching([[0, 1], [0]]) == {0: 1, 1: 0}
    assert matching([[0], [0]]) == {0: 0}
    assert matching([[1, 2], [0, 1], [0]]) == {0: 2, 1: 1, 2: 0}
    assert matching([]) == {}


def test_what_differs_in_many_places_is_told_in_some() -> None:
    def layers(kind: str) -> Parsed:
        ways = {number: {"$ref": f"#/definitions/d{number + 1}"} for number in range(20)}
        definitions = {f"d{n}": {"type": "object", "properties": {"a": way, "b": way}} for n, way in ways.items()}
        return schema({"$ref": "#/definitions/d0", "definitions": {**definitions, "d20": {"type": kind}}})

    assert 0 < len(differences(layers("string"), layers("number"))) <= 1000
    assert check("BACKWARD", layers("number"), [layers("string")])
