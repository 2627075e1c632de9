"""Options and columns of the sink: what is wrong is told before a row is written."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from moldau.spark.options import OptionError
from moldau.spark.sink.columns import check_schema
from moldau.spark.sink.options import SinkOptions
from moldau.wire.compression import Compression

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def options(**given: str) -> SinkOptions:
    return SinkOptions.of({**SERVERS, **{name.replace("_", "."): text for name, text in given.items()}})


def test_names_of_javas_producer_are_obeyed_behind_kafka() -> None:
    made = options(kafka_compression_type="zstd", kafka_batch_size="1000", kafka_linger_ms="5", kafka_acks="all")
    assert made.compression == Compression.ZSTD
    assert made.batch_size == 1000
    assert "linger.ms" not in made.client
    assert "compression.type" not in made.client


WRONG = [
    ({"topc": "a"}, r"no option topc. Did you mean topic"),
    ({"processing.guarantee": "twice"}, "exactly_once, at_least_once"),
    ({"kafka.transactional.id": "a"}, "it is made of application.id"),
    ({"kafka.acks": "1"}, "waits for all replicas"),
    ({"compression.type": "rar"}, "none, gzip, snappy, lz4, zstd"),
    ({"value.format": "avro"}, r"needs schema.registry.url"),
    ({"application.id": "x" * 300}, "200"),
    ({"path": "orders"}, "has no path"),
    ({"batch.size": "0"}, "from 1 on"),
]


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_an_option_that_is_wrong_is_told(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        SinkOptions.of({**SERVERS, "topic": "t", **given})


def test_brokers_must_be_named() -> None:
    with pytest.raises(OptionError, match=r"kafka.bootstrap.servers must be set"):
        SinkOptions.of({"topic": "t"})


TYPES = {
    "string": StringType(),
    "binary": BinaryType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "timestamp": TimestampType(),
    "map": MapType(StringType(), BinaryType()),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}


def schema(text: str) -> StructType:
    """Spark parses such text only where Java runs."""
    return StructType([StructField(name, TYPES[kind]) for name, kind in map(str.split, text.split(", "))])


GOOD = ["value string", "value binary, key string, topic string, partition int, timestamp timestamp",
        "value string, headers headers"]  # fmt: skip


@pytest.mark.parametrize("columns", GOOD)
def test_the_columns_of_sparks_kafka_sink_are_taken(columns: str) -> None:
    check_schema(schema(columns), options(topic="t"))


BAD = [
    ("key string", "no column value"),
    ("value int", "column value is int; it must be string or binary"),
    ("value string, key double", "column key is double"),
    ("value string, partition bigint", "column partition is bigint; it must be integer"),
    ("value string, topic binary", "column topic is binary; it must be string"),
    ("value string, headers map", "column headers is map"),
    ("value string, other string", "no use for the column other"),
]


@pytest.mark.parametrize(("columns", "words"), BAD)
def test_columns_that_cannot_be_written_are_told(columns: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        check_schema(schema(columns), options(topic="t"))


def test_a_topic_must_come_from_somewhere() -> None:
    with pytest.raises(OptionError, match="option topic must be set where there is no column topic"):
        check_schema(schema("value string"), options())
    check_schema(schema("value string, topic string"), options())


def test_with_a_format_any_columns_make_the_value() -> None:
    check_schema(schema("id bigint, name string, key string"), options(topic="t", value_format="json"))
    with pytest.raises(OptionError, match="no column to make a value of"):
        check_schema(schema("key string"), options(topic="t", value_format="json"))
