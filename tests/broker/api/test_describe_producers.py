"""DescribeProducers: who has written idempotently, and where nobody can have."""

from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build


def ask(world, name, *indexes):
    (topic,) = world.call(
        m.DescribeProducersRequest([m.DescribeProducersRequest_TopicRequest(name, list(indexes))])
    ).topics
    return topic.partitions


def produce(world, name, producer_id, sequence, timestamps):
    items = [Record(0, timestamp, None, b"x") for timestamp in timestamps]
    batch = build(items, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    rows = [m.ProduceRequest_PartitionProduceData(0, bytes(batch))]
    data = m.ProduceRequest_TopicProduceData(name, partition_data=rows)
    (answer,) = world.call(m.ProduceRequest(None, -1, 1000, [data]), 9).responses[0].partition_responses
    assert answer.error_code == 0, answer


def test_a_producer_is_described_by_its_last_batch(world):
    world.create("t")
    now = world.clock.wall_ms()
    produce(world, "t", 7, 0, [now, now + 1])
    produce(world, "t", 7, 2, [now - 5])
    (partition,) = ask(world, "t", 0)
    assert (partition.error_code, partition.error_message) == (0, None)
    assert partition.active_producers == [m.DescribeProducersResponse_ProducerState(7, 0, 2, now - 5, -1, -1)]


def test_nobody_has_written_to_a_new_partition(world):
    world.create("t")
    (partition,) = ask(world, "t", 0)
    assert (partition.error_code, partition.active_producers) == (0, [])


def test_what_is_not_there_is_refused(world):
    world.create("t")
    assert [p.error_code for p in ask(world, "t", 1, -1)] == [Error.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert [p.error_code for p in ask(world, "unknown", 0)] == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert [p.error_code for p in ask(world, "a/b", 0)] == [Error.INVALID_TOPIC_EXCEPTION]
    assert [p.error_code for p in ask(world, "", 0)] == [Error.INVALID_TOPIC_EXCEPTION]
    assert ask(world, "t") == []
