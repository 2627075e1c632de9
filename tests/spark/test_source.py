"""The source on a real Spark and a real broker: what it reads, how far, and what it says when it cannot."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException

from moldau.client import Record, TransactionalProducer, build, end
from moldau.spark.progress import lag
from moldau.testing import Broker, eventually
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


def test_every_codec_is_read(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic(1)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": cluster.servers, "compression.type": codec, "linger.ms": 50})
        for number in range(200):
            producer.produce(topic, f"{codec} {number}".encode() * 5)
        assert producer.flush(20) == 0
    found = [bytes(row.value) for row in cluster.read(spark, topic).orderBy("offset").collect()]
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    assert found == [f"{codec} {number}".encode() * 5 for codec in codecs for number in range(200)]


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
        eventually(lambda: values(rows) == ["a"], 30, "the first topic")
        second = cluster.topic(1, name=f"{prefix}-new")
        cluster.put(second, "b")
        eventually(lambda: values(rows) == ["a", "b"], 30, "the second topic")
        progress = eventually(
            lambda: query.lastProgress and query.lastProgress["numInputRows"] and query.lastProgress, 10
        )
        assert lag(progress["sources"][0]) == {(first, 0): 0, (second, 0): 0}
    finally:
        query.stop()


def test_limits_make_several_batches(spark: SparkSession, cluster: Cluster, checkpoint: str) -> None:
    topic = cluster.topic(2)
    for partition in range(2):
        cluster.put(topic, *map(str, range(10)), partition=partition)
    sizes: list[int] = []
    stream = cluster.stream(spark, topic, maxOffsetsPerTrigger="8", minPartitions="4")
    writer = stream.writeStream.foreachBatch(lambda batch, number: sizes.append(batch.count()))
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert sizes == [8, 8, 4]


def test_ranges_are_split_into_as_many_tasks_as_asked_for(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, *map(str, range(100)))
    assert cluster.read(spark, topic, minPartitions="4").rdd.getNumPartitions() == 4
    read = cluster.read(spark, topic, maxRecordsPerPartition="30")
    assert read.rdd.getNumPartitions() == 4
    assert read.count() == 100


def test_aborted_and_open_transactions_are_not_read(spark: SparkSession, cluster: Cluster, drain: Drain) -> None:
    topic = cluster.topic(1)
    stream = cluster.stream(spark, topic)

    def transaction(value: bytes) -> Any:
        producer = TransactionalProducer(cluster.client, f"{topic}-{value.decode()}")
        producer.send(topic, 0, build([Record(timestamp=1, value=value)]))
        flushed = producer.flush()
        producer.close()
        return flushed

    end(cluster.client, transaction(b"good"), commit=True)
    end(cluster.client, transaction(b"bad"), commit=False)
    waiting = transaction(b"open")
    assert values(drain(stream)) == ["good"]
    end(cluster.client, waiting, commit=True)
    assert values(drain(stream)) == ["open"]
    everything = cluster.read(spark, topic, **{"kafka.isolation.level": "read_uncommitted"})
    assert values(everything.collect()) == ["bad", "good", "open"]


def test_bounds_are_offsets_or_times(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, *(Record(timestamp=time_ms, value=str(time_ms).encode()) for time_ms in range(100, 110)))
    offsets = {"startingOffsets": json.dumps({topic: {"0": 2}}), "endingOffsets": json.dumps({topic: {"0": 5}})}
    assert values(cluster.read(spark, topic, **offsets).collect()) == ["102", "103", "104"]
    times = {"startingTimestamp": "107", "endingOffsetsByTimestamp": json.dumps({topic: {"0": 109}})}
    assert values(cluster.read(spark, topic, **times).collect()) == ["107", "108"]
    late = {"startingTimestamp": "1000", "startingOffsetsByTimestampStrategy": "latest"}
    assert cluster.read(spark, topic, **late).count() == 0
    with pytest.raises(Exception, match="is as young as 1000: set an earlier time"):
        cluster.read(spark, topic, startingTimestamp="1000").collect()
    with pytest.raises(Exception, match=f"none for {topic}-0: give one for every partition"):
        cluster.read(spark, topic, startingOffsets="{}").collect()


def test_records_that_are_gone_fail_a_query_or_not_as_told(spark: SparkSession, cluster: Cluster, drain: Drain) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, "a")
    assert values(drain(cluster.stream(spark, topic))) == ["a"]
    for value in "bcde":
        cluster.put(topic, value)
    cluster.delete_before(topic, 3)
    with pytest.raises(StreamingQueryException, match="begins at offset 3 now: 1 to 2 are lost"):
        drain(cluster.stream(spark, topic))
    assert values(drain(cluster.stream(spark, topic, failOnDataLoss="false"))) == ["d", "e"]


def test_a_topic_that_was_made_anew_is_told_from_the_old_one(
    spark: SparkSession, cluster: Cluster, drain: Drain
) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, "a")
    assert values(drain(cluster.stream(spark, topic))) == ["a"]
    cluster.delete(topic)
    cluster.topic(1, name=topic)
    cluster.put(topic, "b", "c")
    with pytest.raises(StreamingQueryException, match="was deleted and made anew"):
        drain(cluster.stream(spark, topic))
    assert values(drain(cluster.stream(spark, topic, failOnDataLoss="false"))) == ["b", "c"]


def test_progress_is_in_the_group_to_the_last_record(spark: SparkSession, cluster: Cluster, drain: Drain) -> None:
    topic = cluster.topic(2)
    cluster.put(topic, "a", "b")
    cluster.put(topic, "c", partition=1)
    name = f"g-{topic}"
    drain(cluster.stream(spark, topic, **{"kafka.group.id": name}))
    eventually(lambda: cluster.committed(name) == {(topic, 0): 2, (topic, 1): 1}, 10, "the offsets of the group")


@pytest.mark.parametrize("missing", ["broker", "topic"])
def test_what_is_not_there_is_said_within_seconds(
    spark: SparkSession, cluster: Cluster, drain: Drain, missing: str
) -> None:
    topic = cluster.topic(1)
    if missing == "topic":
        said, stream = f"There is no topic {topic}s .* Did you mean {topic}?", cluster.stream(spark, topic + "s")
    else:
        said = "127.0.0.1:1"
        stream = cluster.stream(spark, topic, **{"kafka.bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(StreamingQueryException, match=said):
        drain(stream)


def test_wrong_options_are_said_when_the_stream_is_made(spark: SparkSession, cluster: Cluster) -> None:
    with pytest.raises(Exception, match=r"There is no option includeheader. Did you mean includeHeaders\?"):
        cluster.stream(spark, "x", includeHeader="true")
    with pytest.raises(Exception, match="leave out schema"):
        reader = spark.read.format("moldau").schema("a int").option("kafka.bootstrap.servers", cluster.servers)
        reader.option("subscribe", "x").load().collect()


def test_a_query_waits_for_a_broker_that_is_away(spark: SparkSession, kafka: Broker, checkpoint: str) -> None:
    mine = Cluster(kafka.bootstrap_servers)
    topic = mine.topic(1)
    mine.put(topic, "a")
    rows: list[Any] = []
    writer = mine.stream(spark, topic).writeStream.foreachBatch(lambda batch, number: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", checkpoint).start()
    try:
        eventually(lambda: values(rows) == ["a"], 30, "the first record")
        kafka.kill()
        time.sleep(6)
        assert query.isActive
        kafka.start()
        mine.put(topic, "b")
        eventually(lambda: values(rows) == ["a", "b"], 40, "the second record")
        assert query.isActive
    finally:
        query.stop()
        mine.client.close()
