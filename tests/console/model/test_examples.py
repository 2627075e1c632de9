"""Examples by schema."""

from __future__ import annotations

import json

from moldau.console.model.examples import example


def test_a_record_of_avro_has_all_its_fields() -> None:
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "other", "type": "Kind"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "price", "type": "double", "default": 1.5},
        ],
    }
    found = example("AVRO", json.dumps(schema))
    assert found == {
        "id": 0, "note": None, "kind": "A", "other": "A", "tags": [], "at": "2026-11-15T10:00:00+00:00", "price": 1.5,
    }  # fmt: skip


def test_json_schema_and_nonsense() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}, "c": {"const": 3}}}
    assert example("JSON", json.dumps(schema)) == {"a": 0, "b": "x", "c": 3}
    assert example("PROTOBUF", 'syntax = "proto3";') == {} and example("AVRO", '"string"') == ""
    assert example("AVRO", json.dumps({"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}))
