"""The source in a real Spark: that it is driven as planned, and what a user sees. What it reads: test_reading.py."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from moldau.client import Record
from moldau.spark.progress import lag
from moldau.testing import eventually
from tests.spark.conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Drain = Callable[..., list[Any]]


def values(rows: list[Any]) -> list[str]:
    return sorted(bytes(row.value).decode() for row in rows)


def test_the_columns_are_those_of_sparks_own_source(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic(2)
    cluster.put(topic, Record(0, 1_700_000_000_123, b"k", b"v", (("a", b"1"), ("b", None))), Record(1, 5), partition=1)
    rows = cluster.read(spark, topic, includeHeaders="true").orderBy("offset").collect()
    at = datetime.datetime.fromtimestamp(1_700_000_000.123)
    headers = [("a", b"1"), ("b", None)]
    assert tuple(rows[0]) == (b"k", b"v", topic, 1, 0, at, 0, headers)
    assert rows[1].asDict() | {"timestamp": 0} == {
        "key": None, "value": None, "topic": topic, "partition": 1, "offset": 1, "timestamp": 0, "timestampType": 0,
        "headers": None,
    }  # fmt: skip


def test_a_stream_goes_on_where_it_was_and_finds_new_partitions(
    spark: SparkSession, cluster: Cluster, drain: Drain
) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, "a", "b")
    stream = cluster.stream(spark, topic)
    assert values(drain(stream)) == ["a", "b"]
    cluster.put(topic, "c")
    cluster.more_partitions(topic, 2)
    cluster.put(topic, "d", partition=1)
    assert values(drain(stream)) == ["c", "d"]
    assert values(drain(stream)) == []


def test_a_running_query_finds_new_topics_and_tells_its_lag(
    spark: SparkSession, cluster: Cluster, checkpoint: str
) -> None:
    first = cluster.topic(1)
    prefix = first[:10]
    cluster.put(first, "a")
    rows: list[Any] = []
    stream = cluster.stream(spark, subscribePattern=f"{prefix}.*")
    writer = stream.writeStream.foreachBatch(lambda batch, number: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", checkpoint).start()
    try:
        eventually(lambda: values(rows) == ["a"], what="the first topic")
        second = cluster.topic(1, name=f"{prefix}-new")
        cluster.put(second, "b")
        eventually(lambda: values(rows) == ["a", "b"], what="the second topic")
        read = {(first, 0): 0, (second, 0): 0}
        eventually(lambda: lag(query.lastProgress["sources"][0]) == read, what="progress that knows of both")
    finally:
        query.stop()


@pytest.mark.needs("javac")
def test_progress_is_in_the_group_when_a_batch_is_done(spark: SparkSession, cluster: Cluster, checkpoint: str) -> None:
    """By the listener: the source itself would be asked for the next batch in an hour."""
    topic = cluster.topic(1)
    cluster.put(topic, "a", "b")
    stream = cluster.stream(spark, topic, **{"kafka.group.id": f"g-{topic}"})
    writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(processingTime="1 hour").start()
    try:
        eventually(lambda: cluster.committed(f"g-{topic}") == {(topic, 0): 2}, what="the offsets of the group")
    finally:
        query.stop()


def test_what_is_wrong_is_in_the_exception_of_the_query(spark: SparkSession, cluster: Cluster, drain: Drain) -> None:
    topic = cluster.topic(1)
    with pytest.raises(StreamingQueryException, match=rf"There is no topic {topic}s at .* Did you mean {topic}\?"):
        drain(cluster.stream(spark, topic + "s"))


def test_wrong_options_are_said_when_the_stream_is_made(spark: SparkSession, cluster: Cluster) -> None:
    with pytest.raises(Exception, match=r"There is no option includeheader. Did you mean includeHeaders\?"):
        cluster.stream(spark, "x", includeHeader="true")
    with pytest.raises(Exception, match="leave out schema"):
        reader = spark.read.format("moldau").schema("a int").option("kafka.bootstrap.servers", cluster.servers)
        reader.option("subscribe", "x").load().collect()
