"""What a query reads of a real broker, batch by batch. Spark itself has its part in test_source.py."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql.streaming.datasource import ReadAllAvailable

from moldau.client import Client, ClientError, Record, TransactionalProducer, build, end, produce
from moldau.spark.options import OptionError
from moldau.spark.source import reading
from moldau.spark.source.loss import DataLoss
from moldau.testing import Broker, eventually
from tests.spark.conftest import Cluster
from tests.spark.queries import Query, read, values

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_every_codec_is_read(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": cluster.servers, "compression.type": codec, "linger.ms": 50})
        for number in range(200):
            producer.produce(topic, f"{codec} {number}".encode() * 5)
        assert producer.flush(20) == 0
    found = [row["value"].decode() for row in read(cluster.servers, topic)]
    assert found == [f"{codec} {number}" * 5 for codec in CODECS for number in range(200)]


def test_a_query_goes_on_where_it_was_and_finds_new_partitions(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, "a", "b")
    query = Query(cluster.servers, topic)
    assert values(query.now()) == ["a", "b"]
    cluster.put(topic, "c")
    cluster.more_partitions(topic, 2)
    cluster.put(topic, "d", partition=1)
    assert values(query.now()) == ["c", "d"]
    assert query.now() == []


def test_a_running_query_finds_new_topics(cluster: Cluster) -> None:
    first = cluster.topic(1)
    query = Query(cluster.servers, subscribePattern=f"{first}.*")
    cluster.put(first, "a")
    assert values(query.batch()) == ["a"]
    second = cluster.topic(1, name=f"{first}-new")
    cluster.put(second, "b")
    time.sleep(1.1)  # what is known of topics is believed for a second
    assert values(query.batch()) == ["b"]
    assert query.batch() is None


def test_partitions_can_be_assigned(cluster: Cluster) -> None:
    topic = cluster.topic(3)
    for partition in range(3):
        cluster.put(topic, str(partition), partition=partition)
    assert values(Query(cluster.servers, assign=json.dumps({topic: [0, 2]})).batch()) == ["0", "2"]


def test_limits_make_several_batches_and_once_knows_none(cluster: Cluster) -> None:
    topic = cluster.topic(2)
    for partition in range(2):
        cluster.put(topic, *map(str, range(10)), partition=partition)
    query = Query(cluster.servers, topic, maxOffsetsPerTrigger="8", minPartitions="4")
    assert [len(query.batch() or ()) for _ in range(4)] == [8, 8, 4, 0]
    assert query.tasks == [4, 4, 4]
    assert len(Query(cluster.servers, topic, maxOffsetsPerTrigger="8").batch(ReadAllAvailable()) or ()) == 20


def test_a_batch_waits_for_enough_records_but_not_for_ever(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, "a", "b")
    query = Query(cluster.servers, topic, minOffsetsPerTrigger="3")
    assert query.batch() is None
    cluster.put(topic, "c")
    assert values(query.batch()) == ["a", "b", "c"]
    cluster.put(topic, "d")
    assert query.batch() is None
    assert values(query.now()) == ["d"]
    patient = Query(cluster.servers, topic, minOffsetsPerTrigger="9", maxTriggerDelay="0ms")
    assert len(patient.batch() or ()) == 4


def test_a_replayed_batch_reads_the_same_in_the_same_tasks(cluster: Cluster) -> None:
    topic = cluster.topic(2)
    cluster.put(topic, *map(str, range(10)))
    query = Query(cluster.servers, topic, minPartitions="5")
    query.batch()
    start, first = query.source.initialOffset(), query.at
    cluster.put(topic, "late")
    query.fresh(minPartitions="2")
    assert values(query.rows(start, first)) == sorted(map(str, range(10)))
    assert query.tasks == [5, 5]


def test_partitions_can_be_read_together(cluster: Cluster) -> None:
    topic = cluster.topic(7)
    for partition in range(7):
        cluster.put(topic, str(partition), partition=partition)
    query = Query(cluster.servers, topic, maxPartitions="2")
    assert values(query.batch()) == list("0123456")
    assert query.tasks == [2]
    assert len(read(cluster.servers, topic, maxPartitions="1", maxRecordsPerPartition="1")) == 7


def transaction(cluster: Cluster, topic: str, value: str) -> Any:
    producer = TransactionalProducer(cluster.client, f"{topic}-{value}")
    producer.send(topic, 0, build([Record(timestamp=1, value=value.encode())]))
    flushed = producer.flush()
    producer.close()
    return flushed


def test_aborted_and_open_transactions_are_not_read(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    query = Query(cluster.servers, topic)
    end(cluster.client, transaction(cluster, topic, "good"), commit=True)
    end(cluster.client, transaction(cluster, topic, "bad"), commit=False)
    waiting = transaction(cluster, topic, "open")
    assert values(query.now()) == ["good"]
    end(cluster.client, waiting, commit=True)
    assert values(query.now()) == ["open"]
    end(cluster.client, transaction(cluster, topic, "nothing"), commit=False)
    assert query.now() == []
    dirty = {"kafka.isolation.level": "read_uncommitted"}
    assert values(read(cluster.servers, topic, **dirty)) == ["bad", "good", "nothing", "open"]


def test_bounds_are_offsets_or_times(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, *(Record(timestamp=time_ms, value=str(time_ms).encode()) for time_ms in range(100, 110)))

    def between(**options: Any) -> list[str]:
        return values(read(cluster.servers, topic, **options))

    offsets = {"startingOffsets": json.dumps({topic: {"0": 2}}), "endingOffsets": json.dumps({topic: {"0": 5}})}
    assert between(**offsets) == ["102", "103", "104"]
    times = {"startingTimestamp": "107", "endingOffsetsByTimestamp": json.dumps({topic: {"0": 109}})}
    assert between(**times) == ["107", "108"]
    assert between(startingTimestamp="1000", startingOffsetsByTimestampStrategy="latest") == []
    with pytest.raises(OptionError, match="is as young as 1000: set an earlier time"):
        between(startingTimestamp="1000")
    with pytest.raises(OptionError, match=f"none for {topic}-0: give one for every partition"):
        between(startingOffsets="{}")
    with pytest.raises(OptionError, match=f"given for {topic}-7, which is not among what is read"):
        between(startingOffsets=json.dumps({topic: {"0": 0, "7": 0}}))


def test_records_that_are_gone_fail_a_query_or_not_as_told(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, "a")
    query = Query(cluster.servers, topic)
    assert values(query.now()) == ["a"]
    for value in "bcde":
        cluster.put(topic, value)
    cluster.delete_before(topic, 3)
    before = query.at
    with pytest.raises(DataLoss, match=r"begins at offset 3 now: 1 to 2 are lost\. To go on without it"):
        query.now()
    query.at = before
    query.fresh(failOnDataLoss="false")
    assert values(query.now()) == ["d", "e"]
    with pytest.raises(DataLoss, match="begins at offset 3, after 1"):
        read(cluster.servers, topic, startingOffsets=json.dumps({topic: {"0": 1}}))


def test_a_topic_that_was_made_anew_is_told_from_the_old_one(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, "a")
    query = Query(cluster.servers, topic)
    assert values(query.now()) == ["a"]
    cluster.delete(topic)
    cluster.topic(1, name=topic)
    cluster.put(topic, "b", "c")
    with pytest.raises(DataLoss, match="was deleted and made anew"):
        query.now()
    query.fresh(failOnDataLoss="false")
    assert values(query.now()) == ["b", "c"]


def test_a_topic_that_vanishes_while_it_is_read_is_lost(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.put(topic, "a")
    query = Query(cluster.servers, topic, **{"kafka.topic.metadata.propagation.max.ms": "100"})
    start = query.source.initialOffset()
    after = query.source.latestOffset(start, ReadAllAvailable())
    cluster.delete(topic)
    with pytest.raises(DataLoss, match=f"The topic {topic} was deleted"):
        query.rows(start, after)
    cluster.topic(1, name=topic)
    with pytest.raises(DataLoss, match=f"The topic {topic} was deleted"):
        query.rows(start, after)
    query.fresh(failOnDataLoss="false")
    assert query.rows(start, after) == []


def test_progress_is_in_the_group_when_the_next_batch_is_asked_for(cluster: Cluster) -> None:
    topic = cluster.topic(2)
    cluster.put(topic, "a", "b")
    cluster.put(topic, "c", partition=1)
    query = Query(cluster.servers, topic, **{"kafka.group.id": f"g-{topic}"})
    assert len(query.now()) == 3
    assert cluster.committed(f"g-{topic}") == {(topic, 0): 2, (topic, 1): 1}
    latest = query.source.reportLatestOffset()
    assert latest is not None
    assert latest[topic] == query.at[topic]


def test_a_source_whose_java_has_gone_ends_without_a_word(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    source, codes = Query(cluster.servers, cluster.topic()).source, list[int]()
    monkeypatch.setattr("os._exit", codes.append)
    source.stop()
    for error in (EOFError(), ValueError()):
        try:
            raise error
        except type(error):
            source.stop()
    assert codes == [0]


def test_what_is_not_there_is_said_within_seconds(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    with pytest.raises(OptionError, match=rf"There is no topic {topic}s at .* Did you mean {topic}\?"):
        Query(cluster.servers, f"{topic}s").batch()
    with pytest.raises(ClientError, match=r"127\.0\.0\.1:1\b"):
        Query("127.0.0.1:1", topic, **{"kafka.default.api.timeout.ms": "2000"}).batch()
    with pytest.raises(OptionError, match=r"Among the options that begin with kafka\.: .*Did you mean client\.id"):
        Query(cluster.servers, topic, **{"kafka.clint.id": "x"}).batch()


def test_a_query_waits_for_a_broker_that_is_away(kafka: Broker) -> None:
    mine = Cluster(kafka.bootstrap_servers)
    topic = mine.topic(1)
    mine.put(topic, "a")
    query = Query(kafka.bootstrap_servers, topic)
    assert values(query.batch()) == ["a"]
    start = query.at
    mine.put(topic, "b")
    assert values(query.batch()) == ["b"]
    kafka.kill()
    assert query.batch() is None  # after a few seconds
    with pytest.raises(ClientError):
        query.fresh(**{"kafkaConsumer.pollTimeoutMs": "0", "kafka.default.api.timeout.ms": "100"})
        query.rows(start, query.at)
    kafka.start()
    mine.put(topic, "c")
    assert values(query.rows(start, query.at)) == ["b"]
    assert values(query.batch()) == ["c"]
    mine.client.close()


@pytest.mark.kafka(log_cleaner_backoff_ms=100)
def test_ranges_that_compaction_left_empty_come_to_their_end(kafka: Broker) -> None:
    mine = Cluster(kafka.bootstrap_servers)
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1"}
    topic = mine.topic(1, **config)
    for number in range(20):
        mine.put(topic, Record(timestamp=number * 10_000, key=b"k", value=str(number).encode()))
    query = Query(kafka.bootstrap_servers, topic)
    start, after = {topic: {"0": 0}}, {topic: {"0": 10}}
    eventually(lambda: query.rows(start, after) == [], what="compaction")
    assert values(query.now())[-1:] == ["19"]
    mine.client.close()


def test_a_partition_that_found_no_room_in_answers_is_read_nevertheless(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.topic(2)
    monkeypatch.setattr(reading, "MOST_BYTES", 10_000)
    with Client({"bootstrap.servers": cluster.servers}) as client:
        for partition, count in ((0, 60), (1, 3)):
            for number in range(count):
                produce(client, topic, partition, build([Record(0, 1000, None, b"%04d" % number * 1000, ())]))
        ranges = [reading.Range(topic, 0, 0, 60), reading.Range(topic, 1, 0, 3)]
        found = reading.read(client, ranges, isolation="read_committed", fail_on_data_loss=True, patience_ms=60_000)
        counts: dict[int, int] = {}
        for place, some in found:
            counts[place.partition] = counts.get(place.partition, 0) + some.rows
    assert counts == {0: 60, 1: 3}
