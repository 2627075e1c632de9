"""The short way of Produce answers as the long one does, byte for byte, and leaves the same log."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.broker.api.produce_one import TAGS, Appends, flexible_records, plain_records
from moldau.broker.learned_requests import serve
from moldau.machines.metadata.acls import ALLOW, DENY, LITERAL, TOPIC, WRITE
from moldau.wire import frames
from moldau.wire import messages as m
from moldau.wire.errors import WireError
from moldau.wire.records import Record, build
from tests.broker.conftest import Client
from tests.broker.transactional import Transactional

LONG = "long-" + "x" * 200
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NOW = 1_700_000_000_000


def request(version, topic, topic_id, partition, values, acks=-1, copies=1, **options):
    batch = bytes(build([Record(0, NOW, None, value) for value in values], **options))
    data = [m.ProduceRequest_PartitionProduceData(partition, batch)] * copies
    named = {"topic_id": topic_id} if version >= 13 else {"name": topic}
    return m.ProduceRequest(None, acks, 1000, [m.ProduceRequest_TopicProduceData(**named, partition_data=data)])


def send(world, frame):
    connection = world.client.connection
    world.node.receive(connection, memoryview(bytearray(frame)))
    answer = b"".join(connection.out)
    connection.out.clear()
    return answer


def answers(world, monkeypatch, way, sent):
    """What the node answers, frame by frame. The first of its kind goes the long way on both, and is learnt from."""
    with monkeypatch.context() as patched:
        if way == "long":
            patched.setattr("moldau.broker.learned_requests.serve", lambda *_: None)
        given = [send(world, frame) for frame in sent]
    return given, {str(p): p.log.end_offset for p in world.node.replicas}


def seeded(make_world):
    world = make_world()
    world.node.random.seed(1)
    return world


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    version=st.integers(3, 13),
    batches=st.lists(st.lists(st.binary(max_size=200), min_size=1, max_size=5), min_size=2, max_size=4),
    partition=st.integers(-1, 2),
    acks=st.sampled_from([-1, 1, 5]),
    copies=st.sampled_from([1, 1, 2]),
    topics=st.lists(st.sampled_from(["short", LONG, "missing", "synced"]), min_size=1, max_size=2),
)
def test_both_ways_give_the_same_answers(make_world, monkeypatch, version, batches, partition, acks, copies, topics):
    outcomes = []
    for way in ("short", "long"):
        world = seeded(make_world)
        ids = {"missing": b"?" * 16, "short": world.create("short", 2), LONG: world.create(LONG)}
        ids["synced"] = world.create("synced", flush_messages="1")
        asked = [request(version, t, ids[t], partition, values, acks, copies) for values in batches for t in topics]
        sent = [frames.request_frame(one, version, number, "client")[4:] for number, one in enumerate(asked)]
        outcomes.append(answers(world, monkeypatch, way, sent))
    assert outcomes[0] == outcomes[1]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    version=st.sampled_from([5, 6, 7, 8, 9, 10, 12, 13]),
    at=st.integers(0, 400),
    byte=st.integers(0, 255),
    cut=st.integers(0, 3),
    more=st.binary(max_size=3),
)
def test_a_damaged_request_fares_alike_both_ways(make_world, monkeypatch, version, at, byte, cut, more):
    outcomes = []
    for way in ("short", "long"):
        world = seeded(make_world)
        topic_id = world.create("t")
        whole = frames.request_frame(request(version, "t", topic_id, 0, [b"v"]), version, 1, "c")[4:]
        damaged = bytearray(whole[: len(whole) - cut] + more)
        damaged[at % len(damaged)] = byte
        try:
            outcomes.append(answers(world, monkeypatch, way, [whole, whole, damaged, whole]))
        except WireError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("version", [7, 9, 13])
def test_a_refusal_by_the_log_is_the_same_both_ways(make_world, monkeypatch, version):
    outcomes = []
    for way in ("short", "long"):
        world = seeded(make_world)
        topic_id = world.create("t", message_timestamp_type="LogAppendTime")
        sent = []
        for sequence in (0, 1, 7):  # the last one is out of order, which the log finds when it has set the time
            options = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
            asked = request(version, "t", topic_id, 0, [b"v"], **options)
            sent.append(frames.request_frame(asked, version, 1, "c")[4:])
        outcomes.append(answers(world, monkeypatch, way, sent))
    assert outcomes[0] == outcomes[1]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([1, 2]),
    st.lists(
        st.sampled_from(["send", "send", "send", "again", "ahead", "stale", "plain", "commit", "abort", "init"]),
        max_size=15,
    ),
)
def test_transactions_fare_alike_both_ways(make_world, version, steps):
    outcomes = []
    for way in ("short", "long"):
        world = seeded(make_world)
        world.create("t")
        with pytest.MonkeyPatch.context() as patched:
            if way == "long":
                patched.setattr("moldau.broker.learned_requests.serve", lambda *_: None)
            outcomes.append((told(world, version, steps), world.node.replicas.by_name["t"][0].log.end_offset))
    assert outcomes[0] == outcomes[1]


def told(world, version, steps):
    """What a producer hears at each step; version 1 adds its partition before it writes."""
    producer = Transactional(world, "x", version).begin()
    return [step(producer, name) for name in steps]


def step(producer, name):
    if name in ("commit", "abort"):
        return producer.end(name == "commit")
    if name == "init":
        return producer.init()
    if producer.version == 1 and name == "send":
        producer.add("t", 0)
    if name == "send":
        return producer.send("t", b"v")
    sequence, before = producer.sequences.get(("t", 0), 0), producer.identity
    if name == "stale":
        producer.identity = before._replace(epoch=before.epoch - 1)
    batch = producer.batch(sequence + {"again": -1, "ahead": 7}.get(name, 0) & 0x7FFFFFFF, b"v")
    if name == "plain":
        batch = build([Record(0, NOW, None, b"v")])
    producer.identity = before
    return producer.produce(bytes(batch), "t")


def test_only_the_first_batch_of_a_transaction_goes_the_long_way(world):
    world.create("t")
    producer, shortly = Transactional(world, "x").begin(), []
    for _ in range(3):
        for _ in range(3):
            batch = producer.batch(len(shortly) % 3, b"v")
            data = m.ProduceRequest_TopicProduceData(
                "t", partition_data=[m.ProduceRequest_PartitionProduceData(0, batch)]
            )
            frame = frames.request_frame(m.ProduceRequest("x", -1, 1000, [data]), 12, 1, "c")[4:]
            shortly.append(serve(world.node, world.client.connection, memoryview(bytearray(frame))) is not None)
            if not shortly[-1]:
                send(world, frame)
        assert not producer.end()
    assert shortly == [False, True, True] * 3


@pytest.mark.parametrize("version", [5, 7, 8, 9, 10, 12, 13])
def test_a_request_like_one_before_goes_the_short_way(world, version):
    topic_id = world.create("t")
    for value in (b"", b"v" * 50, b"v" * 20_000):
        frame = frames.request_frame(request(version, "t", topic_id, 0, [value]), version, 1, "c")[4:]
        if not value:
            send(world, frame)
        else:
            assert serve(world.node, world.client.connection, memoryview(bytearray(frame)))


def test_topics_with_names_of_several_lengths_go_the_short_way_on_one_connection(world):
    names = ["a" * length for length in range(1, 21)]
    for name in names:
        world.create(name)
    sent = [frames.request_frame(request(10, name, None, 0, [b"v"]), 10, 1, "c")[4:] for name in names]
    for frame in sent:
        send(world, frame)
    for frame in sent:
        assert serve(world.node, world.client.connection, memoryview(bytearray(frame)))


def test_what_was_learnt_is_forgotten_when_the_metadata_changes(world):
    first = world.create("t")
    frame = frames.request_frame(request(10, "t", first, 0, [b"v"]), 10, 1, "c")[4:]
    send(world, frame)
    world.client.call(m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest_DeleteTopicState("t")]))
    assert serve(world.node, world.client.connection, memoryview(bytearray(frame))) is None
    world.create("t")
    send(world, frame)
    assert world.node.replicas.by_name["t"][0].log.end_offset == 1


def test_what_is_learnt_is_bounded(world, monkeypatch):
    monkeypatch.setattr("moldau.broker.learned_requests.HEADS", 4)
    monkeypatch.setattr("moldau.broker.learned_requests.HEAD_ENDS", 8)
    world.create("t")
    for number in range(20):
        client = "c" * number
        send(world, frames.request_frame(request(10, "t", None, 0, [b"v"]), 10, 1, client)[4:])
    assert len(world.node.heads[10]) <= 4
    assert len(world.client.connection.head_ends) == 8


def test_with_an_authorizer_each_client_is_asked_about_each_time(make_world):
    """Heads are shared by connections, permissions are not."""
    world = make_world(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS")
    world.create("t")
    frame = frames.request_frame(request(10, "t", None, 0, [b"v"]), 10, 1, "c")[4:]
    alice = Client(world.node)
    alice.connection.principal = "User:alice"

    def short(client):
        return serve(world.node, client.connection, memoryview(bytearray(frame)))

    def allow(permission):
        rows = [m.CreateAclsRequest_AclCreation(TOPIC, "t", LITERAL, "User:alice", "*", WRITE, permission)]
        world.call(m.CreateAclsRequest(rows))
        send(world, frame)  # a change of the metadata has made the node forget

    send(world, frame)
    alice.connection.head_ends = world.client.connection.head_ends
    assert short(world.client) and not short(alice)
    allow(ALLOW)
    assert short(world.client) and short(alice)
    allow(DENY)
    assert short(world.client) and not short(alice)


def test_a_connection_does_not_keep_what_it_was_cleared_for_before_the_metadata_changed(make_world):
    world = make_world(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS")
    world.create("t")
    frame = frames.request_frame(request(10, "t", None, 0, [b"v"]), 10, 1, "c")[4:]
    for number in range(5):
        world.create(f"other{number}")
        send(world, frame)  # is learnt
        send(world, frame)
        assert len(world.client.connection.cleared) == 1


def test_nothing_is_learnt_of_a_request_that_was_refused_in_part(make_world):
    world = make_world(authorizer_class_name=STANDARD, allow_everyone_if_no_acl_found="true")
    for name in ("a", "b"):
        world.create(name)
    denied = m.CreateAclsRequest_AclCreation(TOPIC, "a", LITERAL, "User:ANONYMOUS", "*", WRITE, DENY)
    world.call(m.CreateAclsRequest([denied]))
    both = request(10, "a", None, 0, [b"v"])
    both.topic_data = [*both.topic_data, *request(10, "b", None, 0, [b"v"]).topic_data]
    send(world, frames.request_frame(both, 10, 1, "c")[4:])
    assert not world.node.heads


@pytest.mark.parametrize("size", [1, 90, *range(50, 70), 126, 127, 128, 16_100, 16_383, 16_384, 100_000, 2_200_000])
@pytest.mark.parametrize("version", [8, 9])
def test_records_are_measured_without_being_read(version, size):
    records = b"x" * size
    length = size.to_bytes(4) if version == 8 else varint(size + 1)
    frame = memoryview(b"head" + length + records + (b"" if version == 8 else TAGS))
    blank = Appends(None, None, version, range(1), 0, b"", b"", bytes, (), 1, 0)
    read = plain_records if version == 8 else flexible_records
    assert blank.measure(frame, 4) == len(read(frame, 4)) == size


def varint(number):
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes(made + bytes([number]))
