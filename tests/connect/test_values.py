"""Values in texts; the judge compares random ones with Connect's."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect import data, values
from moldau.connect.data import Instant, Schema, Type


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("5", data.INT8, 5),
        ("40000", data.INT32, 40000),
        ("2.5", data.FLOAT32, 2.5),
        ("null", None, None),
        ("true", data.BOOLEAN, True),
        ("2020-01-02", data.DATE_SCHEMA, Instant(1_577_923_200_000)),
        ("[1, 300]", data.array(data.INT16), [1, 300]),
        ('[1, "a"]', Schema(Type.ARRAY), [1, "a"]),
        ('[1, "a", 2]', Schema(Type.ARRAY), [1, "a", 2]),
        ('{"a": 1, "b": 2}', data.map_of(data.STRING, data.INT8), {"a": 1, "b": 2}),
        ("[1", data.STRING, "[1"),
        ("{[1]: 2}", data.map_of(data.array(data.INT8), data.INT8), {(1,): 2}),
    ],
)
def test_types_are_guessed(text: str, schema: Schema | None, value: Any) -> None:
    found = values.parse(text)
    assert (found.schema, found.value) == (schema, value)


def test_a_huge_exponent_costs_nothing() -> None:
    assert values.parse("1e999999999").schema == data.decimal(-999999999)
    assert values.to_number("1e999999999", Type.INT64) == 0


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, {"a": [1, None, 'x"']}, '{"a":[1,null,"x\\""]}'),
        (data.FLOAT32, data.to_float32(0.1), "0.1"),
        (data.TIME_SCHEMA, Instant(1), "00:00:00.001Z"),
        (None, b"\1\2", "AQI="),
        (None, None, None),
    ],
)
def test_values_have_texts(schema: Schema | None, value: Any, text: str | None) -> None:
    assert values.to_text(schema, value) == text
