"""The sink in Spark: streams and jobs into topics, exactly once, also after failures and under another checkpoint."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from moldau.spark.sink.marker_topic import Ledger
from moldau.spark.sink.markers import TOPIC
from tests.spark.conftest import Cluster
from tests.spark.sinks import committed, stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write(frame: DataFrame, cluster: Cluster, topic: str | None, **options: Any) -> None:
    writer = frame.write.format("moldau").mode("append").option("kafka.bootstrap.servers", cluster.servers)
    writer.options(**({"topic": topic} if topic else {}), **options).save()


def start(frame: DataFrame, cluster: Cluster, topic: str, checkpoint: str, **options: Any) -> Any:
    writer = frame.writeStream.format("moldau").option("kafka.bootstrap.servers", cluster.servers)
    writer = writer.option("topic", topic).option("checkpointLocation", checkpoint).options(**options)
    return writer.trigger(availableNow=True).start()


def finish(query: Any) -> None:
    try:
        assert query.awaitTermination(200), "the query does not come to its end"
    finally:
        query.stop()


def fill(cluster: Cluster, topic: str, first: int, last: int) -> None:
    for partition in range(2):
        cluster.put(
            topic, *(str(number) for number in range(first, last) if number % 2 == partition), partition=partition
        )


def test_a_job_writes_all_columns_of_a_record(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic(partitions=3)
    text = """SELECT 'k' AS key, CAST('v' AS BINARY) AS value, 2 AS partition,
              TIMESTAMP '2026-05-01 00:00:00' AS timestamp,
              array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) AS headers"""
    write(spark.sql(text), cluster, topic)
    [(partition, record)] = stored(cluster.client, topic)
    assert (partition, record.key, record.value, record.headers) == (2, b"k", b"v", (("h", b"x"),))
    assert record.timestamp == 1_777_593_600_000


def test_the_column_topic_says_where_rows_go_and_the_option_goes_before_it(
    spark: SparkSession, cluster: Cluster
) -> None:
    one, other = cluster.topic(), cluster.topic()
    frame = spark.createDataFrame([(one, "a"), (other, "b"), (one, "c")], "topic string, value string")
    write(frame, cluster, None)
    assert committed(cluster.client, one) == Counter("ac")
    assert committed(cluster.client, other) == Counter("b")
    write(frame, cluster, other)
    assert committed(cluster.client, other) == Counter("babc")


WRONG = [
    ("SELECT 1 AS value", {}, "column value is int; it must be string or binary"),
    ("SELECT 'v' AS value", {"topc": "x"}, "no option topc. Did you mean topic"),
    ("SELECT CAST(NULL AS STRING) AS topic, 'v' AS value", {"topic": None}, "whose topic is null"),
]


@pytest.mark.parametrize(("text", "options", "words"), WRONG)
def test_what_is_wrong_is_told_in_a_sentence(
    spark: SparkSession, cluster: Cluster, text: str, options: dict[str, Any], words: str
) -> None:
    topic = cluster.topic()
    with pytest.raises(Exception, match=words):
        write(spark.sql(text), cluster, options.pop("topic", topic), **options)


def test_a_job_with_a_name_writes_once_however_often_it_runs(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic()
    frame = spark.range(0, 20, 1, 3).selectExpr("CAST(id AS STRING) AS value")
    for _ in range(2):
        write(frame, cluster, topic, **{"application.id": f"job {topic}"})
    assert committed(cluster.client, topic) == Counter(str(number) for number in range(20))


def test_a_stream_goes_on_at_its_checkpoint_and_each_record_is_there_once(
    spark: SparkSession, cluster: Cluster, checkpoint: str
) -> None:
    source, target = cluster.topic(partitions=2), cluster.topic(partitions=2)
    for first in (0, 50):
        fill(cluster, source, first, first + 50)
        frame = cluster.stream(spark, source, maxOffsetsPerTrigger=30).selectExpr("key", "value")
        finish(start(frame, cluster, target, checkpoint))
    assert committed(cluster.client, target) == Counter(str(number) for number in range(100))


def test_the_decision_of_a_batch_has_the_offsets_and_the_query_of_its_checkpoint(
    spark: SparkSession, cluster: Cluster, checkpoint: str
) -> None:
    source, target = cluster.topic(partitions=2), cluster.topic()
    fill(cluster, source, 0, 10)
    query = start(cluster.stream(spark, source, minPartitions=2).selectExpr("value"), cluster, target, checkpoint)
    finish(query)
    ledger = Ledger(cluster.client, TOPIC, str(query.id))
    ledger.catch_up()
    decision = ledger.decision
    assert decision is not None
    assert (decision.query, decision.batch, decision.tasks) == (str(query.id), 0, 2)
    assert decision.checkpoint == checkpoint
    assert source in (decision.offsets[0] or "")
    marker = ledger.marker(0)
    assert marker is not None
    assert marker.content.rows == 5


def once(flag: Path) -> Any:
    """Kills the worker that it runs in, once."""

    def die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if not flag.exists():
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    return die


def test_a_batch_whose_worker_died_is_written_once_by_its_replay(
    spark: SparkSession, cluster: Cluster, checkpoint: str, tmp_path: Path
) -> None:
    source, target = cluster.topic(partitions=2), cluster.topic(partitions=2)
    fill(cluster, source, 0, 40)
    frame = (
        cluster.stream(spark, source, minPartitions=2)
        .selectExpr("value")
        .mapInArrow(once(tmp_path / "died"), "value binary")
    )
    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        finish(start(frame, cluster, target, checkpoint))
    finish(start(frame, cluster, target, checkpoint))
    assert committed(cluster.client, target) == Counter(str(number) for number in range(40))


def test_a_lost_checkpoint_doubles_nothing(spark: SparkSession, cluster: Cluster, checkpoint: str) -> None:
    source, target = cluster.topic(partitions=2), cluster.topic(partitions=2)
    name = f"app {target}"
    fill(cluster, source, 0, 20)
    finish(
        start(
            cluster.stream(spark, source, minPartitions=2).selectExpr("value"),
            cluster,
            target,
            checkpoint,
            **{"application.id": name},
        )
    )
    shutil.rmtree(checkpoint)
    fill(cluster, source, 20, 40)
    with pytest.raises(Exception, match=f"moldau spark resume {name}"):
        frame = cluster.stream(spark, source, minPartitions=2).selectExpr("value")
        finish(start(frame, cluster, target, checkpoint, **{"application.id": name}))
    assert committed(cluster.client, target) == Counter(str(number) for number in range(20))
    shutil.rmtree(checkpoint)
    frame = cluster.stream(spark, source, minPartitions=2, **{"application.id": name}).selectExpr("value")
    finish(start(frame, cluster, target, checkpoint, **{"application.id": name}))
    assert committed(cluster.client, target) == Counter(str(number) for number in range(40))


def test_tasks_are_told_the_batch_and_the_query(spark: SparkSession, cluster: Cluster, checkpoint: str) -> None:
    """Properties that Spark does not document; the sink stands on them."""
    source, target = cluster.topic(), cluster.topic()
    cluster.put(source, "a")

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from moldau.spark.sink.writers import BATCH_ID, QUERY_ID

        context = TaskContext.get()
        assert context is not None
        for _ in batches:
            text = f"{context.getLocalProperty(BATCH_ID)} {context.getLocalProperty(QUERY_ID)}"
            yield pa.RecordBatch.from_pydict({"value": [text]})

    query = start(
        cluster.stream(spark, source, minPartitions=2).mapInArrow(told, "value string"), cluster, target, checkpoint
    )
    finish(query)
    assert list(committed(cluster.client, target)) == [f"0 {query.id}"]
