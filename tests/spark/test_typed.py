"""Typed values: columns with the fields of a schema of the registry, and what becomes of records that do not decode."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from moldau.client import Record
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.formats import serde
from moldau.serdes.registry import Registry
from moldau.spark.source.spark_types import for_spark
from tests.spark.conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "sign", "type": {"type": "fixed", "name": "Sign", "size": 2}},
        {"name": "ways", "type": {"type": "map", "values": "int"}},
    ],
}
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.UTC)
VALUE = {
    "id": 7, "item": "book", "price": Decimal("12.50"), "at": AT, "tags": ["x"], "kind": "OLD", "sign": b"ab",
    "ways": {"a": 1},
}  # fmt: skip
POINT = '{"type": "object", "title": "Point", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}'
PERSON = 'syntax = "proto3"; message Person { string name = 1; uint32 age = 2; repeated string tags = 3; }'


@pytest.fixture
def registry(url: str) -> Registry:
    return Registry.connect({"url": url})


@pytest.fixture
def typed(spark: SparkSession, cluster: Cluster, url: str) -> Callable[..., Any]:
    def read(topic: str, **options: str) -> Any:
        return cluster.read(spark, topic, **{"schema.registry.url": url, **options})

    return read


def test_avro_has_real_columns(cluster: Cluster, registry: Registry, typed: Callable[..., Any]) -> None:
    topic = cluster.topic()
    written = serde("avro", registry, json.dumps(ORDER)).to_bytes(VALUE, Context(topic))
    cluster.put(topic, Record(timestamp=1, value=written), Record(timestamp=1))
    found = typed(topic, **{"value.format": "avro"})
    row, tombstone = found.orderBy("offset").collect()
    assert row.value.asDict() == VALUE | {"at": AT.astimezone().replace(tzinfo=None)}
    assert tombstone.value is None
    assert [one.id for one in found.where("value.price > 12").select("value.id").collect()] == [7]


def test_later_versions_are_read_through_the_schema_of_the_start(
    cluster: Cluster, registry: Registry, typed: Callable[..., Any]
) -> None:
    topic = cluster.topic()
    old = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}
    new = {**old, "fields": [*old["fields"], {"name": "y", "type": "int", "default": 0}]}  # type: ignore[misc]
    cluster.put(
        topic, Record(timestamp=1, value=serde("avro", registry, json.dumps(old)).to_bytes({"x": 1}, Context(topic)))
    )
    before = typed(topic, **{"value.format": "avro"})
    data = serde("avro", registry, json.dumps(new)).to_bytes({"x": 2, "y": 3}, Context(topic))
    cluster.put(topic, Record(timestamp=1, value=data))
    assert [row.value.asDict() for row in before.orderBy("offset").collect()] == [{"x": 1}, {"x": 2}]
    after = typed(topic, **{"value.format": "avro"})
    assert [row.value.asDict() for row in after.orderBy("offset").collect()] == [{"x": 1, "y": 0}, {"x": 2, "y": 3}]


@pytest.mark.parametrize(
    ("format", "schema", "value"),
    [
        ("json-schema", POINT, {"x": 5, "y": "five"}),
        ("protobuf", PERSON, {"name": "Jan", "age": 5, "tags": ["a", "b"]}),
    ],
)
def test_json_schema_and_protobuf_have_real_columns(
    cluster: Cluster, registry: Registry, typed: Callable[..., Any], format: str, schema: str, value: dict[str, Any]
) -> None:
    topic = cluster.topic()
    cluster.put(topic, Record(timestamp=1, value=serde(format, registry, schema).to_bytes(value, Context(topic))))
    [row] = typed(topic, **{"value.format": format}).collect()
    assert row.value.asDict() == value


def test_keys_and_plain_formats_are_typed_without_a_registry(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.put(topic, Record(0, 1, (5).to_bytes(8, "big"), b'{"x": 1, "y": "one"}'))
    [row] = cluster.read(
        spark, topic, **{"key.format": "long", "value.format": "json", "value.schema": POINT}
    ).collect()
    assert (row.key, row.value.asDict()) == (5, {"x": 1, "y": "one"})
    [row] = cluster.read(spark, topic, **{"value.format": "json"}).collect()
    assert row.value == '{"x": 1, "y": "one"}'


def test_records_that_do_not_decode_do_what_the_mode_says(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic()
    good = b'{"x": 1, "y": "one"}'
    cluster.put(topic, *(Record(timestamp=1, value=one) for one in (good, b"junk", good)))
    given = {"value.format": "json", "value.schema": POINT}
    with pytest.raises(Exception, match=rf"The value of the record at offset 1 of {topic}-0 does not decode"):
        cluster.read(spark, topic, **given).collect()
    kept = cluster.read(spark, topic, **given, mode="dropmalformed").orderBy("offset").collect()
    assert [row.offset for row in kept] == [0, 2]
    shown = cluster.read(spark, topic, **given, mode="permissive", columnNameOfCorruptRecord="_corrupt_record")
    rows = shown.orderBy("offset").collect()
    assert [(row.value and row.value.x, row._corrupt_record) for row in rows] == [(1, None), (None, b"junk"), (1, None)]


def test_dead_letters_say_where_they_come_from_and_why(spark: SparkSession, cluster: Cluster) -> None:
    topic, letters = cluster.topic(), f"dead-{cluster.topic()}"
    cluster.put(topic, Record(0, 77, b"k", b"junk", (("own", b"1"),)), Record(0, 78, b"k", b'{"x": 1}'))
    given = {"value.format": "json", "value.schema": POINT, "errors.deadletterqueue.topic.name": letters}
    assert cluster.read(spark, topic, **given).count() == 1
    [row] = cluster.read(spark, letters, includeHeaders="true").collect()
    headers = {one.key: bytes(one.value).decode() for one in row.headers}
    assert (row.key, row.value) == (b"k", b"junk")
    assert headers.pop("__connect.errors.exception.message")
    assert headers == {
        "own": "1",
        "__connect.errors.topic": topic,
        "__connect.errors.partition": "0",
        "__connect.errors.offset": "0",
        "__connect.errors.connector.name": "moldau.spark",
        "__connect.errors.task.id": "0",
        "__connect.errors.stage": "VALUE_CONVERTER",
        "__connect.errors.class.name": "moldau.spark",
        "__connect.errors.exception.class.name": "moldau.serdes.context.SerdeError",
        "__connect.errors.exception.stacktrace": "",
    }


def test_topics_with_different_columns_are_refused(
    cluster: Cluster, registry: Registry, typed: Callable[..., Any]
) -> None:
    one, other = cluster.topic(), cluster.topic()
    for topic, kind in ((one, "int"), (other, "string")):
        schema = json.dumps({"type": "record", "name": "P", "fields": [{"name": "x", "type": kind}]})
        serde("avro", registry, schema).to_bytes({"x": 1 if kind == "int" else "1"}, Context(topic))
    with pytest.raises(Exception, match="have different schemas for the value: read them one by one"):
        typed(f"{one},{other}", **{"value.format": "avro"})


def test_a_subject_that_is_not_there_is_said_when_the_stream_is_made(
    cluster: Cluster, typed: Callable[..., Any]
) -> None:
    topic = cluster.topic()
    with pytest.raises(Exception, match="The value cannot be read as avro: the schema registry refused"):
        typed(topic, **{"value.format": "avro"})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.time32("ms"), pa.time64("ns")),
        (pa.decimal128(9, 2), pa.decimal128(9, 2)),
        (pa.binary(4), pa.binary()),
        (pa.struct([pa.field("a", pa.list_(pa.binary(2)), False)]), pa.struct([("a", pa.list_(pa.binary()))])),
        (pa.map_(pa.string(), pa.time64("us")), pa.map_(pa.string(), pa.time64("ns"))),
    ],
)
def test_arrow_types_become_those_that_spark_has(given: Any, wanted: Any) -> None:
    assert for_spark(given) == wanted


@pytest.mark.parametrize("given", [pa.decimal256(50, 2), pa.month_day_nano_interval()])
def test_types_that_spark_does_not_have_are_refused_by_name(given: Any) -> None:
    with pytest.raises(SerdeError, match=r"the field value\.a\.b has"):
        for_spark(pa.struct([("a", pa.struct([("b", given)]))]), "value")
