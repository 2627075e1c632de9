"""A topic with values of many schemas: each is read by its own, into a column of Spark's type VARIANT."""

from __future__ import annotations

import datetime
import enum
import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client import Record
from moldau.serdes.context import Context
from moldau.serdes.formats import serde
from moldau.serdes.framing import SCHEMA_HEADER
from moldau.serdes.registry import Registry, RegistryError
from moldau.spark.source.variant import Variants, encode, text
from tests.spark.conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
MONEY = {
    "type": "record",
    "name": "Money",
    "fields": [{"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}],
}
NAMED = '{"type": "object", "title": "Named", "properties": {"name": {"type": "string"}}}'
PERSON = 'syntax = "proto3"; message Person { string first_name = 1; uint32 age = 2; }'


@pytest.fixture
def mixed(cluster: Cluster, url: str) -> tuple[str, list[bytes | None]]:
    """A topic, and what is written there."""
    registry, topic = Registry.connect({"url": url}), cluster.topic()
    rows: list[tuple[str, str, Any]] = [
        ("avro", json.dumps(POINT), {"x": 1}),
        ("avro", json.dumps(MONEY), {"sum": Decimal("12.50")}),
        ("json-schema", NAMED, {"name": "Jan"}),
    ]
    rows.append(("protobuf", PERSON, {"first_name": "Eva", "age": 7}))
    by_name = {"subject.name.strategy": "RECORD"}
    written = [serde(name, registry, schema, by_name).to_bytes(value, Context(topic)) for name, schema, value in rows]
    return topic, [*written, b"no schema", None]


WANTED = ['{"x":1}', '{"sum":12.50}', '{"name":"Jan"}', '{"age":7,"first_name":"Eva"}', None, None]


def test_each_value_is_read_by_its_own_schema(
    spark: SparkSession, cluster: Cluster, url: str, mixed: tuple[str, list[bytes | None]]
) -> None:
    topic, written = mixed
    cluster.put(topic, *(Record(timestamp=1, value=one) for one in written))
    options = {"schema.registry.url": url, "value.format": "variant", "mode": "permissive"}
    found = cluster.read(spark, topic, **options).orderBy("offset")
    assert found.schema["value"].dataType.typeName() == "variant"
    rows = found.selectExpr("to_json(value) AS json", "try_variant_get(value, '$.x', 'int') AS x").collect()
    assert [row.json for row in rows] == [one and one.replace("12.50", "12.5") for one in WANTED]
    assert [row.x for row in rows] == [1, None, None, None, None, None]


def test_the_schema_may_be_named_in_a_header(url: str, mixed: tuple[str, list[bytes | None]]) -> None:
    """As clients write with the option that puts it there: value without a prefix."""
    registry = Registry.connect({"url": url})
    here = Context("t")
    point = serde("avro", registry, json.dumps(POINT), {"schema.id.in": "header"})
    data = point.to_bytes({"x": 5}, here)
    header = pa.array([here.header(SCHEMA_HEADER["value"])], pa.binary())
    found = Variants(registry).to_arrow(pa.array([data], pa.binary()), Context("t"), header)
    assert not found.errors
    assert found.values.to_pylist() == [encode({"x": 5})]


def test_a_registry_that_is_away_is_no_fault_of_the_value() -> None:
    registry = Registry.connect({"url": "http://127.0.0.1:9", "max.retries": 0})
    with pytest.raises(RegistryError, match="cannot be reached"):
        Variants(registry).to_arrow(pa.array([b"\0\0\0\0\1x"]), Context("t"))


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Decimal("1E+2"), "100"),
        (Decimal("-0.10"), "-0.10"),
        (b"ab", '"YWI="'),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), '"2026-01-02T03:04:05+00:00"'),
        (datetime.date(2026, 1, 2), '"2026-01-02"'),
        (math.nan, '"nan"'),
        (Colour.RED, '"red"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        ({1: [None, True]}, '{"1":[null,true]}'),
    ],
)
def test_what_json_has_no_word_for(value: Any, wanted: str) -> None:
    assert text(value) == wanted


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
def test_plain_values_are_what_json_says(value: Any) -> None:
    assert json.loads(text(value)) == value
