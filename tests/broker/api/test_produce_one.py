"""The short way of Produce answers as the long one does, byte for byte, and leaves the same log."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.broker.api.produce_one import produce_one
from moldau.wire import frames
from moldau.wire import messages as m
from moldau.wire.records import Record, build
from tests.broker.conftest import Client

LONG = "long-" + "x" * 200
NOW = 1_700_000_000_000


def request(version, topic, topic_id, partition, values, acks=-1, copies=1, **options):
    batch = bytes(build([Record(0, NOW, None, value) for value in values], **options))
    data = [m.ProduceRequest_PartitionProduceData(partition, batch)] * copies
    named = {"topic_id": topic_id} if version >= 13 else {"name": topic}
    return m.ProduceRequest(None, acks, 1000, [m.ProduceRequest_TopicProduceData(**named, partition_data=data)])


def long_way(world, frame, monkeypatch):
    client = Client(world.node)
    with monkeypatch.context() as patched:
        patched.setattr("moldau.broker.node.produce_one", lambda *_: None)
        world.node.receive(client.connection, memoryview(bytearray(frame)))
    return b"".join(client.connection.out)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    version=st.integers(3, 13),
    values=st.lists(st.binary(max_size=200), min_size=1, max_size=5),
    partition=st.integers(-1, 2),
    acks=st.sampled_from([-1, 1, 5]),
    copies=st.integers(1, 2),
    topic=st.sampled_from(["short", LONG, "missing", "synced"]),
)
def test_both_ways_give_the_same_answer(make_world, monkeypatch, version, values, partition, acks, copies, topic):
    answers = []
    for way in ("short", "long"):
        world = make_world()
        world.node.random.seed(1)
        ids = {"missing": b"?" * 16, "short": world.create("short", 2), LONG: world.create(LONG)}
        ids["synced"] = world.create("synced", flush_messages="1")
        asked = request(version, topic, ids[topic], partition, values, acks, copies)
        frame = frames.request_frame(asked, version, 77, "client")[4:]
        if way == "long":
            answers.append(long_way(world, frame, monkeypatch))
        else:
            world.node.receive(world.client.connection, memoryview(bytearray(frame)))
            answers.append(b"".join(world.client.connection.out))
        ends = {str(p): p.log.end_offset for p in world.node.replicas}
        answers.append(ends)
    assert answers[0] == answers[2]
    assert answers[1] == answers[3]


@pytest.mark.parametrize("version", [7, 9, 13])
def test_a_refusal_by_the_log_is_the_same_both_ways(make_world, monkeypatch, version):
    answers = []
    for way in ("short", "long"):
        world = make_world()
        world.node.random.seed(1)
        topic_id = world.create("t", message_timestamp_type="LogAppendTime")
        for sequence in (0, 7):  # the second one is out of order, which the log finds when it has set the time
            options = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
            frame = frames.request_frame(request(version, "t", topic_id, 0, [b"v"], **options), version, 1, "c")[4:]
            if way == "long":
                answers.append(long_way(world, frame, monkeypatch))
            else:
                world.node.receive(world.client.connection, memoryview(bytearray(frame)))
                answers.append(b"".join(world.client.connection.out))
                world.client.connection.out.clear()
    assert answers[:2] == answers[2:]


@pytest.mark.parametrize("version", [5, 7, 9, 10, 12, 13])
def test_a_common_request_goes_the_short_way(world, version):
    topic_id = world.create("t")
    frame = frames.request_frame(request(version, "t", topic_id, 0, [b"v"]), version, 1, "c")[4:]
    position = frames.request_header(frame)[4]
    assert produce_one(world.node, memoryview(bytearray(frame)), position, version, 1)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=120), version=st.integers(3, 13), cut=st.integers(0, 200))
def test_damaged_requests_are_left_to_the_long_way(world, data, version, cut):
    world.node.replicas.by_name or world.create("t")
    whole = frames.request_frame(request(version, "t", b"?" * 16, 0, [b"v"]), version, 1, "c")[4:]
    end = world.node.replicas.by_name["t"][0].log.end_offset
    for frame in (data, whole[: min(cut, len(whole) - 1)]):
        assert produce_one(world.node, memoryview(bytearray(frame)), 0, version, 1) is None
    assert world.node.replicas.by_name["t"][0].log.end_offset == end
