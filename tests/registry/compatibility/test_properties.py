"""What holds for every schema: it is compatible with itself; and for Avro, that compatible readers read."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from moldau.registry.compatibility import check
from moldau.serdes.schemas import parse
from tests.serdes.schemas.strategies import avro, json_documents, protobuf


@given(avro())
@settings(deadline=None, max_examples=50)
def test_an_avro_schema_is_compatible_with_itself(schema: Any) -> None:
    text = json.dumps(schema)
    assert check("FULL_TRANSITIVE", parse("AVRO", text), [parse("AVRO", text)]) == []


@given(json_documents())
@settings(deadline=None, max_examples=50)
def test_a_json_schema_is_compatible_with_itself(text: str) -> None:
    assert check("FULL_TRANSITIVE", parse("JSON", text), [parse("JSON", text)]) == []


@given(protobuf())
@settings(deadline=None, max_examples=50)
def test_a_protobuf_schema_is_compatible_with_itself(text: str) -> None:
    assert check("FULL_TRANSITIVE", parse("PROTOBUF", text), [parse("PROTOBUF", text)]) == []


VALUES = {
    "null": None,
    "boolean": True,
    "int": 5,
    "long": 1 << 40,
    "float": 0.5,
    "double": 0.25,
    "bytes": b"b",
    "string": "s",
}
WIDER = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"]}


@st.composite
def evolved(draw: st.DrawFn, schema: Any) -> Any:
    """A schema with some changes here and there; some of them break it."""
    if isinstance(schema, str):
        return draw(st.sampled_from([schema, schema, *WIDER.get(schema, [])]))
    if isinstance(schema, list):
        kept = [draw(evolved(branch)) for branch in schema]
        return kept[1:] if len(kept) > 1 and draw(st.integers(0, 9)) == 0 else kept
    made = dict(schema)
    for key in ("items", "values"):
        if key in made:
            made[key] = draw(evolved(made[key]))
    if made["type"] == "record":
        fields = [{**field, "type": draw(evolved(field["type"]))} for field in made["fields"]]
        fields = [{key: field[key] for key in ("name", "type")} for field in fields if draw(st.integers(0, 5))]
        if draw(st.booleans()):
            fields.append({"name": "new", "type": "string", "default": "x"})
        made["fields"] = fields
    if made["type"] == "enum" and draw(st.booleans()):
        made["symbols"] = [*made["symbols"][draw(st.integers(0, 1)) :], "NEW"]
    return made


def value_of(schema: Any, names: dict[str, Any], depth: int) -> Any:
    """A small value of a schema; RecursionError where it cannot be small."""
    if depth == 0:
        raise RecursionError
    if isinstance(schema, list):
        return min_value(schema, names, depth)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in names:
        return value_of(names[kind], names, depth - 1)
    match kind:
        case "record":
            return {field["name"]: value_of(field["type"], names, depth - 1) for field in schema["fields"]}
        case "array":
            return [value_of(schema["items"], names, depth - 1)] if depth > 3 else []
        case "map":
            return {"k": value_of(schema["values"], names, depth - 1)} if depth > 3 else {}
        case "enum":
            return schema["symbols"][-1]
        case "fixed":
            return b"x" * schema["size"]
    return VALUES[kind]


def named(schema: Any) -> dict[str, Any]:
    """The types that a schema defines, by name."""
    if not isinstance(schema, dict):
        inner = schema if isinstance(schema, list) else []
    else:
        inner = [schema.get("items"), schema.get("values"), *(field["type"] for field in schema.get("fields", ()))]
    found = {schema["name"]: schema} if isinstance(schema, dict) and "name" in schema else {}
    for one in inner:
        found |= named(one)
    return found


def min_value(branches: list[Any], names: dict[str, Any], depth: int) -> Any:
    for branch in reversed(branches):
        with contextlib.suppress(RecursionError):
            return value_of(branch, names, depth - 1)
    raise RecursionError


def without_logical(schema: Any) -> Any:
    """fastavro tries every string in a union as a date, and does not take no for an answer."""
    return json.loads(json.dumps(schema).replace('"logicalType"', '"x"'))


def is_small(schema: Any) -> bool:
    try:
        value_of(schema, named(schema), 12)
    except RecursionError:
        return False
    return True


@given(st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_what_is_called_readable_is_read(data: st.DataObject) -> None:
    writer = without_logical(data.draw(avro()))
    reader = data.draw(evolved(writer))
    try:
        parsed = [parse("AVRO", json.dumps(schema), new=True) for schema in (reader, writer)]
    except ValueError:
        assume(False)  # a union that has a type twice now, or a name whose definition is gone
        raise
    assume(is_small(writer) and not check("BACKWARD", parsed[0], [parsed[1]]))
    encoded = io.BytesIO()
    schema = parse_schema(writer)
    schemaless_writer(encoded, schema, value_of(writer, named(writer), 12))
    encoded.seek(0)
    schemaless_reader(encoded, schema, parse_schema(reader))


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ('{"type":"record","name":"R","fields":[{"name":"b","type":"long","aliases":["a"]}]}', '{"name":"R"}'),
        ('{"type":"enum","name":"E","symbols":["A","B"],"default":"B"}', '{"name":"E","type":"enum","symbols":["C"]}'),
    ],
)
def test_aliases_and_defaults_of_enums_make_readers(reader: str, writer: str) -> None:
    old = {"type": "record", "fields": [{"name": "a", "type": "int"}], **json.loads(writer)}
    assert check("BACKWARD", parse("AVRO", reader), [parse("AVRO", json.dumps(old))]) == []
    encoded = io.BytesIO()
    value = {"a": 5} if old["type"] == "record" else "C"
    schemaless_writer(encoded, parse_schema(old), value)
    encoded.seek(0)
    assert schemaless_reader(encoded, parse_schema(old), parse_schema(json.loads(reader))) in ({"b": 5}, "B")
