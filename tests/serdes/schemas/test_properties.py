"""What holds for every schema: the canonical text is final, the normal form too, and both mean the same schema."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings

from moldau.serdes.schemas import Parsed, formatted, normalize, parse

from .strategies import avro, json_documents, protobuf


def holds(parsed: Parsed) -> None:
    again = parse(parsed.type, parsed.text, new=True)
    assert again.text == parsed.text
    normal = normalize(parsed)
    assert normalize(normal).text == normal.text
    assert normalize(again).text == normal.text
    assert parse(parsed.type, normal.text, new=True).name == parsed.name


@given(avro())
@settings(deadline=None, max_examples=50)
def test_avro(schema: Any) -> None:
    holds(parse("AVRO", json.dumps(schema), new=True))


@given(json_documents())
@settings(deadline=None, max_examples=50)
def test_json_schema(text: str) -> None:
    holds(parse("JSON", text, new=True))


@given(protobuf())
@settings(deadline=None, max_examples=50)
def test_protobuf(text: str) -> None:
    parsed = parse("PROTOBUF", text, new=True)
    assert parsed.text == text
    holds(parsed)
    described = parse("PROTOBUF", formatted(parsed, "serialized"), new=True)
    assert formatted(described, "serialized") == formatted(parsed, "serialized")
