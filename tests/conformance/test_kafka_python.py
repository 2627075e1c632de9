"""kafka-python: a client written in Python alone, with an admin client that knows most of Kafka's requests."""
# pyright: basic, reportAttributeAccessIssue=false, reportOptionalOperand=false, reportOptionalMemberAccess=false
# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import kafka.errors
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewTopic,
    OffsetSpec,
)

VALUES = [b"value %d" % n for n in range(300)]


@pytest.fixture(scope="module")
def client(bootstrap: str) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield admin
    admin.close()


def produce(bootstrap: str, topic: str, values: list[bytes], **options: Any) -> list[int]:
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, **options)
    answers = [producer.send(topic, value, partition=0) for value in values]
    producer.flush(20)
    producer.close()
    return [answer.get(20).offset for answer in answers]


def consume(bootstrap: str, topic: str, offset: int = 0, **options: Any) -> list[Any]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=10_000, **options)
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek(place, offset)
    end = consumer.end_offsets([place])[place]
    found = []
    while consumer.position(place) < end:
        found += consumer.poll(timeout_ms=500).get(place, [])
    consumer.close()
    return found


@pytest.mark.parametrize("codec", [None, "gzip", "lz4", "snappy", "zstd"])
def test_every_codec_comes_back_as_it_was_sent(bootstrap: str, topic: str, codec: str | None) -> None:
    assert produce(bootstrap, topic, VALUES, compression_type=codec) == list(range(300))
    assert [record.value for record in consume(bootstrap, topic)] == VALUES


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement_stores_the_records(bootstrap: str, topic: str, acks: int | str) -> None:
    produce(bootstrap, topic, VALUES, acks=acks, enable_idempotence=False)
    assert [record.value for record in consume(bootstrap, topic)] == VALUES


def test_keys_headers_and_times_come_back(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    sent = producer.send(topic, b"v", key=b"k", headers=[("h", b"1")], timestamp_ms=1_500_000_000_123).get(20)
    assert (sent.partition, sent.offset, sent.timestamp) == (0, 0, 1_500_000_000_123)
    producer.close()
    (record,) = consume(bootstrap, topic, isolation_level="read_committed")
    assert (record.key, record.value, record.timestamp) == (b"k", b"v", 1_500_000_000_123)
    assert list(record.headers) == [("h", b"1")]


def test_reading_starts_in_the_middle_and_by_time(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, VALUES)
    assert [record.offset for record in consume(bootstrap, topic, 290)] == list(range(290, 300))
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    place = TopicPartition(topic, 0)
    assert consumer.partitions_for_topic(topic) == {0}
    assert consumer.beginning_offsets([place]) == {place: 0}
    assert consumer.offsets_for_times({place: 0})[place].offset == 0
    assert consumer.offsets_for_times({place: 4_000_000_000_000})[place] is None
    consumer.close()


def test_topics_are_created_grown_and_deleted(client: KafkaAdminClient, fresh_name: Callable[[str], str]) -> None:
    name = fresh_name("made")
    client.create_topics([NewTopic(name, 2, 1)], wait_for_metadata=True)
    with pytest.raises(kafka.errors.TopicAlreadyExistsError):
        client.create_topics([NewTopic(name, 2, 1)])
    client.create_partitions({name: 3})
    with pytest.raises(kafka.errors.InvalidPartitionsError):
        client.create_partitions({name: 2})
    with pytest.raises(kafka.errors.InvalidReplicationFactorError):
        client.create_topics([NewTopic(fresh_name("made"), 2, 5)])
    assert name in client.list_topics()
    client.delete_topics([name])
    with pytest.raises(kafka.errors.UnknownTopicOrPartitionError):
        client.delete_topics([name])


def test_topics_are_described_in_both_ways(client: KafkaAdminClient, new_topic: Callable[..., str]) -> None:
    name = new_topic(3)
    (topic,) = client.describe_topics([name])
    assert [p["partition_index"] for p in topic["partitions"]] == [0, 1, 2]
    assert set(topic["authorized_operations"]) >= {"READ", "WRITE", "DESCRIBE", "ALTER_CONFIGS"}
    page = client.describe_topic_partitions([name], response_partition_limit=2)
    assert [p["partition_index"] for p in page["topics"][0]["partitions"]] == [0, 1]
    assert page["next_cursor"]["partition_index"] == 2


def test_settings_are_altered_and_reset(client: KafkaAdminClient, topic: str) -> None:
    def changed() -> dict[str, Any]:
        return client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])["topic"][topic]

    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"segment.bytes": "2000000"})])
    assert changed()["segment.bytes"]["value"] == "2000000"
    client.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, ["segment.bytes"])])
    assert "segment.bytes" not in changed()


def test_offsets_records_and_producers_are_listed(client: KafkaAdminClient, bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, VALUES[:10], enable_idempotence=True)
    place = TopicPartition(topic, 0)
    specs = [(OffsetSpec.EARLIEST, 0), (OffsetSpec.LATEST, 10)]
    assert [client.list_partition_offsets({place: spec})[place].offset for spec, _ in specs] == [n for _, n in specs]
    (writer,) = client.describe_producers([place])[place].active_producers
    assert (writer.producer_epoch, writer.last_sequence) == (0, 9)
    assert client.delete_records({place: 4})[place]["low_watermark"] == 4
    assert client.list_partition_offsets({place: OffsetSpec.EARLIEST})[place].offset == 4


def test_the_cluster_describes_itself(client: KafkaAdminClient, bootstrap: str, topic: str) -> None:
    cluster = client.describe_cluster()
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["controller_id"] == broker["broker_id"] and not broker["is_fenced"]
    (quorum,) = client.describe_metadata_quorum()["topics"]
    assert quorum["topic_name"] == "__cluster_metadata"
    (partition,) = quorum["partitions"]
    assert partition["leader_id"] == broker["broker_id"] and partition["high_watermark"] > 0
    features = client.describe_features()
    assert features["metadata.version"]["finalized"] == (30, 30)
    resources = client.list_config_resources()
    assert topic in resources["topic"] and str(broker["broker_id"]) in resources["broker"]


def test_places_on_disk_and_moves_are_listed(client: KafkaAdminClient, bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, VALUES)
    (broker,) = client.describe_log_dirs()
    sizes = {
        (entry["name"], p["partition_index"]): p["partition_size"]
        for folder in broker["log_dirs"]
        for entry in folder["topics"]
        for p in entry["partitions"]
    }
    assert sizes[topic, 0] > sum(map(len, VALUES))
    assert client.list_partition_reassignments() == {}
