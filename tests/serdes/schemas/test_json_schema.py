"""JSON Schema documents: drafts, canonical text, references, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.serdes.schemas import Limits, Parsed, SchemaError, formatted, normalize, parse
from moldau.serdes.schemas.json_plain import RULES, is_plain
from moldau.serdes.schemas.json_schema import DRAFTS, draft_of, hollow

from .strategies import json_schemas

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x#",
    "string",
    [],
    ["a", "a"],
    [{}],
    [1],
    {},
    {"a": {}},
    {"a": ["b"]},
    {"a": []},
]


def schema(text: str, **resolved: str) -> Parsed:
    return parse("JSON", text, resolved={name.replace("_", "."): given for name, given in resolved.items()}, new=True)


# What is given -> its canonical text.
CANONICAL = {
    "true": "true",
    ' { "b" : 1.50, "a" : [ 1e3, 10 ] } ': '{"b":1.50,"a":[1E+3,10]}',
    '{"title":"\\u00e9\\u0007\\/"}': '{"title":"é\\u0007/"}',
    '{"x":1,"x":2}': '{"x":2}',
}


@pytest.mark.parametrize("given", CANONICAL)
def test_canonical_text_keeps_order_and_digits(given: str) -> None:
    parsed = schema(given)
    assert parsed.text == CANONICAL[given]
    assert formatted(parsed, "anything") == parsed.text


def test_the_name_is_the_title() -> None:
    assert schema('{"title":"Order"}').name == "Order"
    assert schema("true").name is None


def test_the_normal_form_has_keys_in_order() -> None:
    assert normalize(schema('{"b":{"d":1,"c":2},"a":[{"z":1,"y":0.10}]}')).text == (
        '{"a":[{"y":0.10,"z":1}],"b":{"c":2,"d":1}}'
    )


NAMED = {
    "http://json-schema.org/draft-04/schema#": "draft-04",
    "https://json-schema.org/draft-06/schema": "draft-06",
    "http://json-schema.org/draft-07/schema#": "draft-07",
    "https://json-schema.org/draft/2019-09/schema": "draft/2019-09",
    "https://json-schema.org/draft/2020-12/schema": "draft/2020-12",
    "http://example.com/mine": "draft-07",
}


@pytest.mark.parametrize("uri", NAMED)
def test_a_document_names_its_draft(uri: str) -> None:
    document = {
        "$schema": uri,
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/a"}},
        "definitions": {"a": {}},
    }
    assert draft_of(document) == NAMED[uri]
    schema(json.dumps(document))


REFUSED = {
    "5": "an object or a boolean",
    "[]": "an object or a boolean",
    "{": "not valid JSON",
    '{"a":NaN}': "not valid JSON",
    '{"a":"\\ud800"}': "not valid",
    '{"type":"nothing"}': "at #/type",
    '{"properties":{"a":{"minLength":"x"}}}': "at #/properties/a/minLength",
    '{"$ref":"#/definitions/x"}': "leads nowhere",
    '{"$ref":"http://example.com/other.json"}': "leads nowhere",
    '{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":3}': "at #/exclusiveMinimum",
    '{"$schema":"https://json-schema.org/draft/2020-12/schema","items":[{}]}': "at #/items",
}


@pytest.mark.parametrize("given", REFUSED)
def test_what_is_wrong_is_said(given: str) -> None:
    with pytest.raises(SchemaError) as raised:
        schema(given)
    assert REFUSED[given] in str(raised.value)


def test_references_are_found_by_name_and_relative_to_the_id() -> None:
    schema('{"$ref":"other.json#/$defs/x"}', other_json='{"definitions":{"x":{}}}')
    schema('{"$id":"http://h/a/b.json","$ref":"other.json"}', other_json="{}")
    schema(
        '{"$id":"http://h/a/b.json","$ref":"http://h/a/other.json"}',
        other_json='{"$ref":"third.json"}',
        third_json="{}",
    )
    schema('{"$id":"http://h/b.json","items":{"$ref":"#here"},"definitions":{"x":{"$id":"#here"}}}')
    with pytest.raises(SchemaError, match="leads nowhere"):
        schema('{"$ref":"other.json#/$defs/y"}', other_json='{"definitions":{"x":{}}}')


def test_definitions_that_nothing_leads_to_are_not_looked_into() -> None:
    schema('{"definitions":{"x":{"$ref":"#/nowhere"}}}')


def test_a_stored_schema_is_taken_as_it_is() -> None:
    assert parse("JSON", '{"type":"nothing"}').text == '{"type":"nothing"}'


BOMBS = {
    "deep": '{"not":' * 5000 + "{}" + "}" * 5000,
    "open": "[" * 300_000,
    "big": '{"a":"' + "x" * 1_000_000 + '"}',
    "long number": '{"a":' + "1" * 100_000 + "}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    with pytest.raises(SchemaError):
        schema(BOMBS[name])


@pytest.mark.parametrize("draft", ["draft-04/schema#", "draft-07/schema#", "draft/2020-12/schema"])
@given(document=json_schemas(), keyword=st.sampled_from(sorted(RULES)), value=st.sampled_from(ODD))
@settings(deadline=None, max_examples=50)
def test_what_is_plain_fulfils_the_metaschema(draft: str, document: Any, keyword: str, value: Any) -> None:
    document = {**document, keyword: value} if isinstance(document, dict) else document
    name = draft.split("/schema")[0]
    alone = hollow(document, "#", [])
    if is_plain(alone, name):
        kind = DRAFTS[name][1]
        kind(kind.META_SCHEMA).validate(alone)


def test_a_great_number_of_schemas_is_checked_quickly() -> None:
    schema(json.dumps({"properties": {f"p{number}": {"title": str(number)} for number in range(20_000)}}))


def test_the_allowed_depth_can_be_used() -> None:
    depth = 199
    parsed = schema('{"items":' * depth + "{}" + "}" * depth)
    assert normalize(parsed).text == parsed.text
    with pytest.raises(SchemaError, match="nests deeper than 20 levels"):
        parse("JSON", parsed.text, limits=Limits(depth=20))
