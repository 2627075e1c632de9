"""JSON with a schema, both ways with confluent-kafka's serializer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaReference
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import SerializationContext
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from moldau.serdes import json_bounded
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.json_bounded import bounded, start
from moldau.serdes.json_schema import JsonSchema
from moldau.serdes.registry import Registry

PERSON = json.dumps(
    {
        "title": "Person",
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
    }
)
JAN = {"name": "Jan ☃", "age": 7}
THERE = SerializationContext("t", "value")
HERE = Context("t")


def test_confluents_deserializer_reads_what_moldau_wrote(registry: Registry, client: Any) -> None:
    data = JsonSchema.of(registry, PERSON).to_bytes(JAN, HERE)
    assert JSONDeserializer(None, schema_registry_client=client)(data, THERE) == JAN


def test_moldau_reads_what_confluents_serializer_wrote(registry: Registry, client: Any) -> None:
    data = JSONSerializer(PERSON, client)(JAN, THERE)
    assert JsonSchema.of(registry).from_bytes(data, HERE) == JAN


@pytest.mark.parametrize("value", [{"age": 1}, {"name": "x", "age": -1}, [], "x"])
def test_a_value_that_does_not_fit_is_refused_both_ways(registry: Registry, value: Any) -> None:
    serde = JsonSchema.of(registry, PERSON)
    with pytest.raises(SerdeError, match="does not fit its schema at"):
        serde.to_bytes(value, HERE)
    data = JsonSchema.of(registry, PERSON, {"validate": False}).to_bytes(value, HERE)
    with pytest.raises(SerdeError, match="does not fit its schema at"):
        serde.from_bytes(data, HERE)
    assert JsonSchema.of(registry, settings={"validate": False}).from_bytes(data, HERE) == value


def test_references_are_found_in_the_registry_and_nowhere_else(registry: Registry, client: Any) -> None:
    client.register_schema("person", TheirSchema(PERSON, "JSON"))
    pair = '{"type":"array","items":{"$ref":"person.json"}}'
    known = TheirSchema(pair, "JSON", [SchemaReference("person.json", "person", 1)])
    data = JSONSerializer(known, client)([JAN], THERE)
    assert JsonSchema.of(registry).from_bytes(data, HERE) == [JAN]
    lost = JsonSchema.of(registry, '{"type":"array","items":{"$ref":"http://127.0.0.1:1/x.json"}}')
    with pytest.raises(SerdeError, match="not among its references"):
        lost.to_bytes([JAN], HERE)


def test_a_schema_that_refers_to_itself_without_end_is_told(registry: Registry) -> None:
    with pytest.raises(SerdeError, match="nests too deeply"):
        JsonSchema.of(registry, '{"$ref":"#"}').to_bytes({}, HERE)


DOUBLING: dict[str, Any] = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(50)}
BOMBS = {
    "a schema that refers twice to itself": ({"$defs": {**DOUBLING, "d50": {}}, "$ref": "#/$defs/d0"}, 1, "steps"),
    "with a dialect": (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {
                name: {**part, "$schema": "https://json-schema.org/draft/2020-12/schema"}
                for name, part in {**DOUBLING, "d50": {}}.items()
            },
            "$ref": "#/$defs/d0",
        },
        1,
        "steps",
    ),
    "a pattern": ({"pattern": "^(a+)+$"}, "a" * 60 + "!", "does not fit"),
    "names by a pattern": ({"patternProperties": {"^(a+)+$": False}, "required": ["b"]}, {"a" * 60 + "!": 1}, "fit"),
    "other names": ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 60 + "!": 1}, "fit"),
    "items of many kinds": ({"uniqueItems": True}, [*range(20_000), *map(str, range(20_000)), [1], [1.0]], "fit"),
    "no pattern": ({"pattern": "("}, "x", "cannot be read"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_schema_that_would_take_for_ever_is_told(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, bomb: str
) -> None:
    monkeypatch.setattr(json_bounded, "MOST_STEPS", 10_000)  # a million takes seconds
    schema, value, words = BOMBS[bomb]
    with pytest.raises(SerdeError, match=words):
        JsonSchema.of(registry, json.dumps(schema)).to_bytes(value, HERE)


KEYWORDS = st.fixed_dictionaries(
    {},
    optional={
        "pattern": st.sampled_from(("^a", "b$", "[0-9]+", "^(?!a)", "x|y")),
        "patternProperties": st.dictionaries(
            st.sampled_from(("^a", "b$")), st.sampled_from(({"type": "integer"}, False))
        ),
        "additionalProperties": st.sampled_from((True, False, {"type": "string"})),
        "properties": st.just({"ab": {}, "c": {"type": "integer"}}),
        "uniqueItems": st.booleans(),
        "items": st.just({"type": ["integer", "boolean", "array", "object"]}),
    },
)
SCALARS = st.sampled_from((0, 1, 1.0, True, False, None, "a", "ab", "b", "1", "x"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(("a", "ab", "b", "c")), inner),
    max_leaves=8,
)


@given(schema=KEYWORDS, value=VALUES)
def test_what_is_bounded_judges_as_the_library_does(schema: dict[str, Any], value: Any) -> None:
    start()
    for dialect in (Draft7Validator, Draft202012Validator):
        assert bounded(dialect)(schema).is_valid(value) == dialect(schema).is_valid(value)


@pytest.mark.parametrize("payload", [b"", b"{", b"\xff", b'{"name": NaN}'])
def test_bytes_that_are_no_json_are_refused(registry: Registry, payload: bytes) -> None:
    JsonSchema.of(registry, PERSON).to_bytes(JAN, HERE)
    with pytest.raises(SerdeError):
        JsonSchema.of(registry).from_bytes(b"\0\0\0\0\x01" + payload, HERE)
