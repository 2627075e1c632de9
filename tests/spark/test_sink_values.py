"""Columns as values with a schema that is made of them: whoever reads them by the registry has the columns back."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from moldau.serdes.arrow.converters import columns
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.registry import Registry
from moldau.spark.sink.options import SinkOptions
from moldau.spark.sink.schema import schema_of
from moldau.spark.sink.values import Values

INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])
TYPE = pa.struct(
    [
        ("id", pa.int64()),
        ("small", pa.int16()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("paid", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("place", INNER),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
ROWS: list[Any] = [
    {"id": 1, "small": 2, "name": "a", "price": 1.5, "paid": True, "tags": ["x", "y"], "place": {"x": 1, "y": "b"},
     "counts": [("n", 3)]},
    {"id": 2, "small": None, "name": None, "price": None, "paid": None, "tags": [], "place": None, "counts": []},
]  # fmt: skip


def values(format: str, **more: str) -> tuple[Values, Registry]:
    given = {"kafka.bootstrap.servers": "x:1", "schema.registry.url": "mock://sink", "value.format": format, **more}
    registry = Registry.connect({"schema.registry.url": "mock://sink"})
    return Values(SinkOptions.of(given), "value", lambda: registry), registry


@pytest.mark.parametrize("format", ["avro", "json-schema", "protobuf"])
def test_columns_come_back_by_the_schema_that_was_registered_for_them(format: str) -> None:
    made, registry = values(format)
    written = made.to_bytes(pa.array(ROWS, TYPE), f"orders-{format}")
    assert [value[0] for value in written.to_pylist()] == [0, 0]
    read = columns(format, registry).to_arrow(written, Context(f"orders-{format}"))
    assert not read.errors
    first, second = read.values.to_pylist()
    expected = {**ROWS[0], "counts": [("n", 3)]}
    assert {name: first[name] for name in expected} == expected
    assert second["id"] == 2


def test_the_types_that_avro_has_a_logical_type_for_come_back() -> None:
    type = pa.struct(
        [
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("amount", pa.decimal128(10, 2)),
            ("raw", pa.binary()),
        ]
    )
    row = {"at": datetime(2026, 5, 1, tzinfo=UTC), "day": date(2026, 5, 1), "amount": Decimal("1.50"), "raw": b"\xff"}
    made, registry = values("avro")
    written = made.to_bytes(pa.array([row], type), "logical")
    assert columns("avro", registry).to_arrow(written, Context("logical")).values.to_pylist() == [row]


def test_json_is_written_as_spark_writes_it() -> None:
    made, _ = values("json")
    type = pa.struct(
        [("id", pa.int64()), ("none", pa.string()), ("at", pa.timestamp("us", "UTC")), ("raw", pa.binary())]
    )
    row = {"id": 1, "none": None, "at": datetime(2026, 5, 1, tzinfo=UTC), "raw": b"ab"}
    [found] = made.to_bytes(pa.array([row], type), "t").to_pylist()
    assert json.loads(found) == {"id": 1, "at": "2026-05-01T00:00:00+00:00", "raw": "YWI="}


def test_text_is_the_text_of_any_simple_column() -> None:
    made, _ = values("string")
    assert made.to_bytes(pa.array([1, None, 3]), "t").to_pylist() == [b"1", None, b"3"]
    with pytest.raises(SerdeError, match="is not written as string"):
        made.to_bytes(pa.array(ROWS, TYPE), "t")


def test_a_schema_that_is_given_is_the_one_that_is_registered() -> None:
    text = (
        '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"n","type":"int","default":7}]}'
    )
    made, registry = values("avro", **{"value.schema": text})
    written = made.to_bytes(pa.array([{"id": 5}], pa.struct([("id", pa.int64())])), "given")
    assert columns("avro", registry).to_arrow(written, Context("given")).values.to_pylist() == [{"id": 5, "n": 7}]


def test_a_row_that_does_not_fit_is_told_with_its_topic() -> None:
    text = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
    made, _ = values("avro", **{"value.schema": text})
    with pytest.raises(SerdeError, match="value for topic strict cannot be written as avro"):
        made.to_bytes(pa.array([{"id": None}], pa.struct([("id", pa.int64())])), "strict")


def test_names_and_types_without_a_schema_are_refused() -> None:
    with pytest.raises(SerdeError, match="'a b' has a name that schemas do not allow"):
        schema_of(pa.struct([("a b", pa.int64())]), "avro", "t", "value")
    with pytest.raises(SerdeError, match="no Avro schema for a column of duration"):
        schema_of(pa.struct([("d", pa.duration("us"))]), "avro", "t", "value")
    with pytest.raises(SerdeError, match="Protobuf has messages alone"):
        schema_of(pa.int64(), "protobuf", "t", "key")
