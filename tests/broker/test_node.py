"""The node as a whole: requests in, responses out, over restarts."""

import pytest

from moldau.wire import frames
from moldau.wire import messages as m
from moldau.wire.records import Record, batches, build, records


def produce(world, topic_id, values, partition=0, acks=-1, key=None, **options):
    batch = bytes(build([Record(0, world.clock.wall_ms(), key, value) for value in values], **options))
    data = m.ProduceRequest_PartitionProduceData(partition, batch)
    topic = m.ProduceRequest_TopicProduceData(topic_id=topic_id, partition_data=[data])
    answer = world.call(m.ProduceRequest(None, acks, 1000, [topic]))
    return answer and answer.responses[0].partition_responses[0]


def fetch_request(topic_id, offset=0, partition=0, max_wait_ms=0, min_bytes=1, **options):
    wanted = m.FetchRequest_FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = m.FetchRequest_FetchTopic(topic_id=topic_id, partitions=[wanted])
    return m.FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=[topic], **options)


def values_of(answer):
    data = answer.responses[0].partitions[0].records
    return [bytes(record.value) for batch in batches(data) for record in records(batch)]


def read_all(world, topic_id):
    """A fetch ends with its segment; go on to the end."""
    found, offset = [], 0
    while True:
        part = world.call(fetch_request(topic_id, offset)).responses[0].partitions[0]
        for batch in batches(part.records):
            found += [bytes(record.value) for record in records(batch)]
            offset = batch.next_offset
        if offset >= part.high_watermark:
            return found


def test_what_is_produced_is_fetched(world):
    topic_id = world.create("t")
    assert produce(world, topic_id, [b"a", b"b"]).base_offset == 0
    assert produce(world, topic_id, [b"c"]).base_offset == 2
    answer = world.call(fetch_request(topic_id))
    assert values_of(answer) == [b"a", b"b", b"c"]
    assert answer.responses[0].partitions[0].high_watermark == 3


def test_data_topics_and_settings_survive_a_restart_clean_or_not(world):
    topic_id = world.create("t", retention_ms="123456")
    produce(world, topic_id, [b"a"])
    for clean in (True, False, True):
        world.restart(clean)
        assert world.node.cluster.config(2, "t") == {"retention.ms": "123456"}
        assert values_of(world.call(fetch_request(topic_id))) == [b"a"]
        assert world.node.replicas.by_name["t"][0].log.config.retention_ms == 123456


def test_bytes_behind_a_request_are_ignored(world):
    frame = frames.request_frame(m.MetadataRequest(None, False), 13, 1, "librdkafka")
    world.node.receive(world.client.connection, memoryview(bytearray(frame[4:] + b"\1\0\0")))
    assert world.client.connection.out


def test_a_fetch_waits_for_data_and_its_time(world):
    topic_id = world.create("t")
    world.client.send(fetch_request(topic_id, max_wait_ms=500), 18)
    assert world.client.take() is None
    reader = world.client
    from tests.broker.conftest import Client

    world.client = Client(world.node)
    produce(world, topic_id, [b"late"])
    assert values_of(reader.take()) == [b"late"]
    reader.send(fetch_request(topic_id, offset=1, max_wait_ms=500), 18)
    world.advance(499)
    assert reader.take() is None
    world.advance(1)
    assert not len(reader.take().responses[0].partitions[0].records)


def test_a_snapshot_shortens_the_metadata_log_and_loses_nothing(make_world):
    world = make_world(metadata_log_max_record_bytes_between_snapshots="2000")
    ids = [world.create(f"topic{i}", partitions=3) for i in range(20)]
    world.advance(1000)
    assert world.node.metadata.log.start_offset == world.node.metadata.snapshot_offset > 20
    world.create("later")
    world.restart(clean=False)
    assert world.node.cluster.topics.keys() == {*(f"topic{i}" for i in range(20)), "later"}
    assert world.node.cluster.topics["topic7"].id == ids[7]
    assert "later" in world.node.replicas.by_name


def test_a_snapshot_comes_after_a_time_if_anything_has_changed(make_world):
    world = make_world(metadata_log_max_snapshot_interval_ms="60000")
    world.create("t")
    world.advance(58_000)
    assert world.node.metadata.snapshots() == []
    world.advance(3_000)
    (name,) = world.node.metadata.snapshots()
    world.advance(120_000)
    assert world.node.metadata.snapshots() == [name]


def test_a_compacted_topic_keeps_the_last_value_of_each_key(make_world):
    world = make_world(log_cleaner_backoff_ms="1000")
    topic_id = world.create("t", cleanup_policy="compact", segment_ms="1000", min_cleanable_dirty_ratio="0.01")
    for i in range(30):
        items = [Record(0, world.clock.wall_ms(), b"key%d" % (i % 3), b"value%d" % i)]
        data = m.ProduceRequest_PartitionProduceData(0, bytes(build(items)))
        topic = m.ProduceRequest_TopicProduceData(topic_id=topic_id, partition_data=[data])
        world.call(m.ProduceRequest(None, -1, 1000, [topic]))
        world.advance(600)
    for _ in range(20):
        world.advance(1000)
    kept = read_all(world, topic_id)
    assert kept[-3:] == [b"value27", b"value28", b"value29"]
    assert len(kept) < 10


NOWHERE = bytes(15) + b"7"


@pytest.mark.parametrize(
    "record",
    [
        m.PartitionRecord(partition_id=0, topic_id=NOWHERE, replicas=[1], isr=[1], leader=1),
        m.PartitionChangeRecord(partition_id=0, topic_id=NOWHERE, leader=1),
        m.RemoveTopicRecord(NOWHERE),
        m.BrokerRegistrationChangeRecord(broker_id=77, broker_epoch=5, fenced=1),
    ],
    ids=lambda record: record.SCHEMA.name,
)
def test_metadata_that_makes_no_sense_is_refused_before_it_is_written(world, record):
    """In a cluster it would end every controller that reads it, and again at each start."""
    metadata = world.node.metadata
    end = metadata.log.end_offset
    with pytest.raises((KeyError, AttributeError)):
        metadata.propose().add([record])
    assert metadata.log.end_offset == end
    world.create("t")
    world.restart()
    assert "t" in world.node.cluster.topics
