"""Requests that name things twice, by half or not at all: answered as Apache Kafka was seen to answer them.

tests/conformance/differential compares them with Kafka itself, where its jars are at hand.
"""

from __future__ import annotations

from typing import Any

from moldau.wire import frames
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build

NOW = 1_700_000_000_000
BATCH = bytes(build([Record(0, NOW, None, b"v")]))


def produce(*topics: tuple[str, list[tuple[int, bytes]]]) -> Any:
    rows = [
        m.ProduceRequest_TopicProduceData(
            name=name, partition_data=[m.ProduceRequest_PartitionProduceData(*part) for part in parts]
        )
        for name, parts in topics
    ]
    return m.ProduceRequest(None, -1, 1000, rows)


def told(response: Any) -> list[tuple[str, list[tuple[int, int, int]]]]:
    return [
        (topic.name, [(part.index, part.error_code, part.base_offset) for part in topic.partition_responses])
        for topic in response.responses
    ]


def test_of_a_partition_named_twice_the_last_batch_is_written(world):
    world.create("t", 2)
    two = bytes(build([Record(0, NOW, None, b"a"), Record(0, NOW, None, b"b")]))
    answer = world.client.call(produce(("t", [(0, BATCH), (0, two)]), ("t", [(1, BATCH)])), 12)
    assert told(answer) == [("t", [(0, 0, 0), (1, 0, 0)])]
    assert [p.log.end_offset for p in world.node.replicas if p.topic == "t"] == [2, 1]


def test_a_topic_without_partitions_is_not_in_the_answer(world):
    world.create("t")
    assert told(world.client.call(produce(("t", [])), 12)) == []
    assert told(world.client.call(produce(("t", []), ("t", [(0, BATCH)])), 12)) == [("t", [(0, 0, 0)])]
    topics = [m.ListOffsetsRequest_ListOffsetsTopic("t", [])]
    assert world.client.call(m.ListOffsetsRequest(-1, 0, topics), 11).topics == []


def test_a_topic_cannot_ask_for_more_replicas_in_sync_than_it_has(world):
    world.create("t", min_insync_replicas="2")
    assert told(world.client.call(produce(("t", [(0, BATCH)])), 12)) == [("t", [(0, 0, 0)])]


def test_an_id_without_its_epoch_is_refused(world):
    for given in ({"producer_id": 5}, {"producer_epoch": 5}):
        answer = world.client.call(m.InitProducerIdRequest(None, 1000, **given), 5)
        assert (answer.error_code, answer.producer_id) == (Error.INVALID_REQUEST, -1)


def test_the_answer_to_a_newer_api_versions_names_that_key_alone(world):
    frame = bytearray(frames.request_frame(m.ApiVersionsRequest(), 4, 0, "test")[4:])
    frame[2:4] = (99).to_bytes(2)
    world.client.sent.append((18, 0))
    world.node.receive(world.client.connection, memoryview(frame))
    answer = world.client.take()
    assert answer.error_code == Error.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [(18, 0, 4)]


def asked(*topics: tuple[bytes, str | None]) -> Any:
    return m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(*topic) for topic in topics], False)


def test_one_id_makes_it_a_request_by_ids(world):
    topic_id = world.create("t")
    world.create("u")
    answer = world.client.call(asked((topic_id, None), (bytes(16), "u"), (b"?" * 16, "t")), 12)
    assert [(row.error_code, row.name) for row in answer.topics] == [(0, "t"), (Error.UNKNOWN_TOPIC_ID, None)]


def test_a_topic_by_name_and_by_id_is_not_deleted(world):
    topic_id = world.create("t")
    rows = [m.DeleteTopicsRequest_DeleteTopicState("t"), m.DeleteTopicsRequest_DeleteTopicState(None, topic_id)]
    answer = world.client.call(m.DeleteTopicsRequest(rows, timeout_ms=1000), 6)
    assert [(row.name, row.topic_id, row.error_code) for row in answer.responses] == [
        ("t", topic_id, Error.INVALID_REQUEST)
    ]
    assert world.node.cluster.topic("t", bytes(16)) is not None


def test_of_a_partition_named_twice_the_last_offset_counts(world):
    world.create("t")
    for _ in range(3):
        world.client.call(produce(("t", [(0, BATCH)])), 12)
    parts = [m.DeleteRecordsRequest_DeleteRecordsPartition(0, offset) for offset in (1, 2)]
    topics = [m.DeleteRecordsRequest_DeleteRecordsTopic("t", parts)]
    (topic,) = world.client.call(m.DeleteRecordsRequest(topics, 1000), 2).topics
    assert [(row.partition_index, row.low_watermark) for row in topic.partitions] == [(0, 2)]


def test_a_new_topic_comes_without_a_message(world):
    row = m.CreateTopicsRequest_CreatableTopic("t", 1, 1)
    (topic,) = world.client.call(m.CreateTopicsRequest([row], 1000), 7).topics
    assert (topic.error_code, topic.error_message) == (0, None)
