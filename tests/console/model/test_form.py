"""Forms by schema: entries of Avro, JSON Schema and Protobuf, and documents that come of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.console.model.form import MOST, Entry, Kind, document, entries, firsts
from moldau.console.model.problems import Refused
from moldau.serdes.registry import Schema

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "other", "type": "Kind"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": "double", "default": 1.5},
        {"name": "paid", "type": "boolean", "default": True},
        {"name": "to", "type": {"type": "record", "name": "To", "fields": [{"name": "city", "type": "string"}]}},
        {"name": "via", "type": ["null", "To"]},
    ],
}
PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1; bool paid = 2; double price = 3; Kind kind = 4; repeated string tags = 5; map<string, int32> sizes = 6;
  To to = 7; google.protobuf.Timestamp at = 8;
  oneof means { string card = 9; bytes token = 10; }
  enum Kind { A = 0; B = 1; }
  message To { string city = 1; }
}
"""


def form_of(type: str, text: Any) -> list[Entry]:
    return entries(Schema(type, text if isinstance(text, str) else json.dumps(text)))


def begun(type: str, text: Any) -> Any:
    form = form_of(type, text)
    return document(form, firsts(form))


def test_a_record_of_avro_has_an_entry_for_each_field() -> None:
    form = {entry.label: entry for entry in form_of("AVRO", ORDER)}
    assert form["kind"].choices == ("A", "B") and form["note"].optional and form["via"].kind is Kind.JSON
    assert begun("AVRO", ORDER) == {
        "id": 0, "note": None, "kind": "A", "other": "A", "tags": [], "at": "2026-11-15T10:00:00+00:00", "price": 1.5,
        "paid": True, "to": {"city": ""}, "via": None,
    }  # fmt: skip


def test_json_schema_leaves_out_what_is_optional_and_empty() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"enum": ["x", "y"]},
            "c": {"const": "z", "type": "string"},
            "d": {"$ref": "#/$defs/place"},
            "e": {"type": ["null", "string"]},
        },
        "required": ["a", "b", "d", "e"],
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
    }
    assert begun("JSON", schema) == {"a": 0, "b": "x", "c": "z", "d": {"city": ""}, "e": None}
    form = form_of("JSON", schema)
    assert document(form, {("a",): "7", ("b",): "y"}) == {"a": 7, "b": "y", "d": {"city": ""}, "e": None}


def test_a_message_of_protobuf_has_at_most_one_of_a_oneof() -> None:
    assert begun("PROTOBUF", PROTO) == {
        "id": 0, "paid": False, "price": 0.0, "kind": "A", "tags": [], "sizes": {},
        "at": "2026-11-15T10:00:00Z",
    }  # fmt: skip
    form = form_of("PROTOBUF", PROTO)
    assert document(form, {**firsts(form), ("card",): "4711"})["card"] == "4711"


def test_what_is_no_record_is_one_entry() -> None:
    assert begun("AVRO", '"string"') == "" and begun("AVRO", '"long"') == 0
    assert begun("JSON", {"type": "boolean"}) is False and begun("JSON", "true") is None


def test_a_long_keeps_all_its_digits_and_a_word_is_no_number() -> None:
    form = form_of("AVRO", ORDER)
    assert document(form, {**firsts(form), ("id",): str(2**63 - 1)})["id"] == 2**63 - 1
    with pytest.raises(Refused, match="id: 'seven' is not a whole number"):
        document(form, {**firsts(form), ("id",): "seven"})
    with pytest.raises(Refused, match=r"tags: '\[' is not JSON"):
        document(form, {**firsts(form), ("tags",): "["})


def test_schemas_without_an_end_have_a_form() -> None:
    tree = {"type": "record", "name": "T", "fields": [{"name": "t", "type": ["null", "T"]}]}
    assert [entry.kind for entry in form_of("AVRO", tree)] == [Kind.JSON]
    circle = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert [entry.kind for entry in form_of("JSON", circle)] == [Kind.JSON]
    wide = {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(2 * MOST)}}
    assert len(form_of("JSON", wide)) == MOST
