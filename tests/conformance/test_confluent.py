"""confluent-kafka (librdkafka): the producer, the simple consumer and the admin client."""
# pyright: reportPrivateImportUsage=false, reportArgumentType=false

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
)
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

WAIT = 120
MakeTopic = Callable[..., str]


@contextmanager
def consumer(bootstrap: str, **config: Any) -> Iterator[Consumer]:
    plain = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    reader = Consumer(plain | {key.replace("_", "."): value for key, value in config.items()})
    try:
        yield reader
    finally:
        reader.close()


def read(reader: Consumer, count: int, seconds: float = WAIT) -> list[Message]:
    found: list[Message] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        for message in reader.consume(count - len(found), 0.2):
            assert message.error() is None, message.error()
            found.append(message)
    return found


def read_all(bootstrap: str, topic: str, count: int, **config: Any) -> list[Message]:
    with consumer(bootstrap, **config) as reader:
        reader.assign([Partition(topic, 0, OFFSET_BEGINNING)])
        return read(reader, count)


def produce(bootstrap: str, topic: str, values: list[bytes], **config: Any) -> list[Message]:
    """Send the values to partition 0 and give back what was acknowledged, in order."""
    acknowledged: list[Message] = []

    def done(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        acknowledged.append(message)

    settings = {key.replace("_", "."): value for key, value in config.items()}
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5} | settings)
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=done)
    assert producer.flush(WAIT) == 0
    return acknowledged


VALUES = [b"value %d of many that compress well" % n for n in range(1000)]


class TestProducer:
    @pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_every_codec_comes_back_as_it_was_sent(self, bootstrap: str, topic: str, codec: str) -> None:
        acknowledged = produce(bootstrap, topic, VALUES, compression_type=codec)
        assert [m.offset() for m in acknowledged] == list(range(1000))
        assert [m.value() for m in read_all(bootstrap, topic, 1000)] == VALUES

    @pytest.mark.parametrize("acks", ["0", "1", "all"])
    def test_every_kind_of_acknowledgement_stores_the_records(self, bootstrap: str, topic: str, acks: str) -> None:
        acknowledged = produce(bootstrap, topic, VALUES, acks=acks)
        assert len(acknowledged) == 1000
        assert [m.value() for m in read_all(bootstrap, topic, 1000)] == VALUES

    def test_an_idempotent_producer_keeps_order_with_five_in_flight(self, bootstrap: str, topic: str) -> None:
        config = {"enable_idempotence": True, "batch_num_messages": 10, "max_in_flight": 5}
        acknowledged = produce(bootstrap, topic, VALUES, **config)
        assert [m.offset() for m in acknowledged] == list(range(1000))
        assert [m.value() for m in read_all(bootstrap, topic, 1000)] == VALUES

    def test_headers_keys_times_and_nulls_come_back(self, bootstrap: str, topic: str) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        headers = [("a", b"1"), ("a", b"2"), ("null", None), ("empty", b"")]
        producer.produce(topic, None, b"key", partition=0, timestamp=1_500_000_000_123, headers=headers)
        producer.produce(topic, b"", None, partition=0, timestamp=1_500_000_000_456)
        assert producer.flush(WAIT) == 0
        first, second = read_all(bootstrap, topic, 2)
        assert (first.key(), first.value(), first.headers()) == (b"key", None, headers)
        assert first.timestamp() == (1, 1_500_000_000_123)
        assert (second.key(), second.value(), second.headers()) == (None, b"", None)

    def test_the_broker_stamps_records_of_a_log_append_time_topic(self, bootstrap: str, new_topic: MakeTopic) -> None:
        topic = new_topic(message_timestamp_type="LogAppendTime")
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, b"x", partition=0, timestamp=1_500_000_000_000)
        assert producer.flush(WAIT) == 0
        (message,) = read_all(bootstrap, topic, 1)
        kind, stamp = message.timestamp()
        assert kind == 2 and abs(stamp / 1000 - time.time()) < 600

    def test_a_record_larger_than_the_topic_allows_is_refused(self, bootstrap: str, new_topic: MakeTopic) -> None:
        topic = new_topic(max_message_bytes="1000")
        errors: list[KafkaError | None] = []
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, b"x" * 5000, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(WAIT) == 0
        assert [error.code() for error in errors if error] == [KafkaError.MSG_SIZE_TOO_LARGE]

    def test_a_partition_that_is_not_there_is_refused(self, bootstrap: str, topic: str) -> None:
        errors: list[KafkaError | None] = []
        producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 5000})
        producer.produce(topic, b"x", partition=7, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(WAIT) == 0
        assert [error.code() for error in errors if error] == [KafkaError._UNKNOWN_PARTITION]


class TestConsumer:
    def test_reading_goes_on_as_records_arrive(self, bootstrap: str, topic: str) -> None:
        with consumer(bootstrap) as reader:
            reader.assign([Partition(topic, 0, OFFSET_BEGINNING)])
            for round_ in range(5):
                produce(bootstrap, topic, [b"%d" % round_])
                assert [m.value() for m in read(reader, 1)] == [b"%d" % round_]

    def test_several_partitions_are_read_at_once(self, bootstrap: str, new_topic: MakeTopic) -> None:
        topic = new_topic(6)
        producer = Producer({"bootstrap.servers": bootstrap})
        for n in range(600):
            producer.produce(topic, b"%d" % n, partition=n % 6)
        assert producer.flush(WAIT) == 0
        with consumer(bootstrap) as reader:
            reader.assign([Partition(topic, p, OFFSET_BEGINNING) for p in range(6)])
            found = read(reader, 600)
        assert sorted(int(m.value() or b"") for m in found) == list(range(600))
        for p in range(6):
            assert [m.offset() for m in found if m.partition() == p] == list(range(100))

    def test_offsets_are_found_by_time(self, bootstrap: str, topic: str) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        for n in range(10):
            producer.produce(topic, b"%d" % n, partition=0, timestamp=1_600_000_000_000 + 1000 * n)
            assert producer.flush(WAIT) == 0
        with consumer(bootstrap) as reader:
            asked = [(1_600_000_000_000, 0), (1_600_000_003_001, 4), (1_500_000_000_000, 0), (1_700_000_000_000, -1)]
            for stamp, offset in asked:
                (found,) = reader.offsets_for_times([Partition(topic, 0, stamp)], WAIT)
                assert found.offset == offset
            assert reader.get_watermark_offsets(Partition(topic, 0), WAIT) == (0, 10)

    def test_seek_and_partition_end_work(self, bootstrap: str, topic: str) -> None:
        produce(bootstrap, topic, VALUES)
        with consumer(bootstrap, enable_partition_eof=True) as reader:
            reader.assign([Partition(topic, 0, 990)])
            assert [m.offset() for m in read(reader, 10)] == list(range(990, 1000))
            end = reader.poll(WAIT)
            assert end and (error := end.error()) and error.code() == KafkaError._PARTITION_EOF
            reader.seek(Partition(topic, 0, 5))
            assert [m.offset() for m in read(reader, 3)] == [5, 6, 7]

    @pytest.mark.parametrize("policy", ["earliest", "error"])
    def test_an_offset_out_of_range_follows_the_reset_policy(self, bootstrap: str, topic: str, policy: str) -> None:
        produce(bootstrap, topic, VALUES[:10])
        with consumer(bootstrap, auto_offset_reset=policy) as reader:
            reader.assign([Partition(topic, 0, 5000)])
            message = reader.poll(WAIT)
            assert message
            if policy == "earliest":
                assert message.error() is None and message.offset() == 0
            else:
                assert (error := message.error()) and error.code() == KafkaError._AUTO_OFFSET_RESET

    def test_read_committed_sees_plain_records(self, bootstrap: str, topic: str) -> None:
        produce(bootstrap, topic, VALUES)
        found = read_all(bootstrap, topic, 1000, isolation_level="read_committed")
        assert [m.value() for m in found] == VALUES

    def test_large_records_come_through_small_fetch_limits(self, bootstrap: str, topic: str) -> None:
        values = [bytes([n]) * 300_000 for n in range(10)]
        produce(bootstrap, topic, values)
        limits = {"fetch_message_max_bytes": 1000, "fetch_max_bytes": 1_000_000, "message_max_bytes": 1_000_000}
        assert [m.value() for m in read_all(bootstrap, topic, 10, **limits)] == values


class TestTopics:
    def test_topics_are_created_described_and_deleted(self, admin: AdminClient, new_topic: MakeTopic) -> None:
        name = new_topic(3)
        described = admin.describe_topics(TopicCollection([name]))[name].result(WAIT)
        assert [(p.id, p.leader.id, len(p.isr)) for p in described.partitions] == [
            (n, described.partitions[0].leader.id, 1) for n in range(3)
        ]
        assert not described.is_internal and str(described.topic_id) != "AAAAAAAAAAAAAAAAAAAAAA"
        assert name in admin.list_topics(timeout=WAIT).topics
        admin.delete_topics([name])[name].result(WAIT)
        assert gone(admin, name)

    @pytest.mark.parametrize(
        ("new", "code"),
        [
            (("bad/name", 1, 1, {}), KafkaError.TOPIC_EXCEPTION),
            (("x" * 250, 1, 1, {}), KafkaError.TOPIC_EXCEPTION),
            (("..", 1, 1, {}), KafkaError.TOPIC_EXCEPTION),
            (("fine", 0, 1, {}), KafkaError.INVALID_PARTITIONS),
            (("fine", 1, 3, {}), KafkaError.INVALID_REPLICATION_FACTOR),
            (("fine", 1, 1, {"no.such.setting": "1"}), KafkaError.INVALID_CONFIG),
            (("fine", 1, 1, {"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
            (("fine", 1, 1, {"cleanup.policy": "burn"}), KafkaError.INVALID_CONFIG),
        ],
    )
    def test_a_wrong_topic_is_refused(self, admin: AdminClient, new: tuple[str, int, int, Any], code: int) -> None:
        name, partitions, replicas, config = new
        topic = NewTopic(name, partitions, replicas, config=config)
        assert refusal(admin.create_topics([topic])[name]).code() == code

    def test_a_name_is_taken_once(self, admin: AdminClient, topic: str) -> None:
        assert refusal(admin.create_topics([NewTopic(topic, 1, 1)])[topic]).code() == KafkaError.TOPIC_ALREADY_EXISTS

    def test_a_dry_run_creates_nothing(self, admin: AdminClient, fresh_name: MakeTopic) -> None:
        name = fresh_name("dry")
        admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(WAIT)
        assert name not in admin.list_topics(timeout=WAIT).topics

    def test_replicas_may_be_assigned_by_hand(self, admin: AdminClient, fresh_name: MakeTopic) -> None:
        (node,) = admin.list_topics(timeout=WAIT).brokers
        good, bad = fresh_name("by-hand"), fresh_name("by-hand")
        admin.create_topics([NewTopic(good, 2, replica_assignment=[[node], [node]])])[good].result(WAIT)
        assert len(admin.list_topics(good, timeout=WAIT).topics[good].partitions) == 2
        answer = admin.create_topics([NewTopic(bad, 1, replica_assignment=[[node + 900]])])[bad]
        assert refusal(answer).code() == KafkaError.INVALID_REPLICA_ASSIGNMENT

    def test_deleting_what_is_not_there_is_refused(self, admin: AdminClient, fresh_name: MakeTopic) -> None:
        name = fresh_name("absent")
        assert refusal(admin.delete_topics([name])[name]).code() == KafkaError.UNKNOWN_TOPIC_OR_PART

    def test_partitions_grow_and_never_shrink(self, bootstrap: str, admin: AdminClient, topic: str) -> None:
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result(WAIT)
        assert len(admin.describe_topics(TopicCollection([topic]))[topic].result(WAIT).partitions) == 4
        fewer = admin.create_partitions([NewPartitions(topic, 2)])[topic]
        assert refusal(fewer).code() == KafkaError.INVALID_PARTITIONS
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, b"x", partition=3)
        assert producer.flush(WAIT) == 0


class TestConfigs:
    def test_a_topic_setting_is_changed_and_taken_back(self, admin: AdminClient, topic: str) -> None:
        def alter(operation: AlterConfigOpType, value: str | None) -> None:
            entry = ConfigEntry("retention.ms", value, incremental_operation=operation)
            resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
            admin.incremental_alter_configs([resource])[resource].result(WAIT)

        alter(AlterConfigOpType.SET, "123456")
        entry = describe(admin, topic)["retention.ms"]
        assert (entry.value, entry.is_default, entry.source) == (
            "123456",
            False,
            ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
        )
        alter(AlterConfigOpType.DELETE, None)
        entry = describe(admin, topic)["retention.ms"]
        assert (entry.value, entry.is_default) == ("604800000", True)

    def test_list_settings_are_appended_and_subtracted(self, admin: AdminClient, topic: str) -> None:
        def alter(operation: AlterConfigOpType, value: str) -> str | None:
            entry = ConfigEntry("cleanup.policy", value, incremental_operation=operation)
            resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
            admin.incremental_alter_configs([resource])[resource].result(WAIT)
            return describe(admin, topic)["cleanup.policy"].value

        assert alter(AlterConfigOpType.APPEND, "compact") == "delete,compact"
        assert alter(AlterConfigOpType.SUBTRACT, "delete") == "compact"

    def test_every_topic_setting_of_kafka_is_described(self, admin: AdminClient, topic: str) -> None:
        assert TOPIC_SETTINGS - set(describe(admin, topic)) == set()

    def test_a_broker_describes_itself(self, admin: AdminClient) -> None:
        (node,) = admin.list_topics(timeout=WAIT).brokers
        resource = ConfigResource(ResourceType.BROKER, str(node))
        entries = admin.describe_configs([resource])[resource].result(WAIT)
        assert entries["node.id"].value == str(node) and entries["node.id"].is_read_only
        assert entries["log.retention.ms"].name == "log.retention.ms"
        assert entries["num.partitions"].synonyms

    @pytest.mark.parametrize(("name", "value"), [("no.such.setting", "1"), ("segment.bytes", "-1")])
    def test_a_wrong_setting_is_refused(self, admin: AdminClient, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        answer = admin.incremental_alter_configs([resource])[resource]
        assert refusal(answer).code() == KafkaError.INVALID_CONFIG


class TestOffsetsAndRecords:
    def test_offsets_are_listed_by_place_and_time(self, bootstrap: str, admin: AdminClient, topic: str) -> None:
        produce(bootstrap, topic, VALUES[:10])
        asked = [(OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 10), (OffsetSpec.for_timestamp(0), 0)]
        for spec, offset in asked:
            assert listed(admin, topic, spec).offset == offset
        assert listed(admin, topic, OffsetSpec.max_timestamp()).timestamp > 0
        committed = listed(admin, topic, OffsetSpec.latest(), isolation_level=IsolationLevel.READ_COMMITTED)
        assert committed.offset == 10

    def test_deleted_records_are_gone_for_readers(self, bootstrap: str, admin: AdminClient, topic: str) -> None:
        produce(bootstrap, topic, VALUES[:10])
        place = Partition(topic, 0, 4)
        assert admin.delete_records([place])[place].result(WAIT).low_watermark == 4
        assert listed(admin, topic, OffsetSpec.earliest()).offset == 4
        assert [m.offset() for m in read_all(bootstrap, topic, 6)] == list(range(4, 10))
        beyond = Partition(topic, 0, 500)
        assert refusal(admin.delete_records([beyond])[beyond]).code() == KafkaError.OFFSET_OUT_OF_RANGE

    def test_the_cluster_describes_itself(self, admin: AdminClient, bootstrap: str) -> None:
        cluster = admin.describe_cluster().result(WAIT)
        assert len(cluster.cluster_id) == 22
        assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [bootstrap]
        assert cluster.controller.id == cluster.nodes[0].id


def refusal(answer: Any) -> KafkaError:
    with pytest.raises(KafkaException) as caught:
        answer.result(WAIT)
    return caught.value.args[0]


def gone(admin: AdminClient, name: str) -> bool:
    """Whether the topic goes away: a broker may learn of it a moment after the controller answered."""
    deadline = time.monotonic() + 5
    while name in admin.list_topics(timeout=WAIT).topics:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def describe(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return admin.describe_configs([resource])[resource].result(WAIT)


def listed(admin: AdminClient, topic: str, spec: OffsetSpec, **options: Any) -> Any:
    place = Partition(topic, 0)
    return admin.list_offsets({place: spec}, **options)[place].result(WAIT)


TOPIC_SETTINGS = {
    *("cleanup.policy", "compression.type", "delete.retention.ms", "file.delete.delay.ms", "flush.messages"),
    *("flush.ms", "index.interval.bytes", "max.compaction.lag.ms", "max.message.bytes", "message.timestamp.type"),
    *("message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "min.cleanable.dirty.ratio"),
    *("min.compaction.lag.ms", "min.insync.replicas", "preallocate", "retention.bytes", "retention.ms"),
    *("segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms", "unclean.leader.election.enable"),
    *("compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "local.retention.ms"),
    *("local.retention.bytes", "remote.storage.enable", "leader.replication.throttled.replicas"),
    *("follower.replication.throttled.replicas", "remote.log.copy.disable", "remote.log.delete.on.disable"),
}
