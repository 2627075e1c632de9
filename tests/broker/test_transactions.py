"""Transactions through the node: markers, last stable offsets, time-outs, crashes, and what may be written when."""

from __future__ import annotations

import pytest

from moldau.broker import transactions
from moldau.broker.transactions import TOPIC
from moldau.machines.transactions import Identity, State
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.conftest import FEW, Client
from tests.broker.transactional import Transactional, committed_offset, fetch, read


@pytest.fixture
def world(make_world):
    return make_world(**FEW)


def state(world, name="x"):
    return world.node.transactions.of(name)[1].by_id[name].state


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_committed_is_read_and_what_is_aborted_is_not(world, version):
    world.create("t", 2)
    producer = Transactional(world, "x", version).begin()
    for turn, commit in enumerate([True, False, True]):
        for index in (0, 1):
            if version == 1:
                assert producer.add("t", index) is Error.NONE
            assert producer.send("t", b"%d" % turn, index=index) is Error.NONE
        assert producer.end(commit) is Error.NONE
    assert read(world, "t", 0) == read(world, "t", 1) == [b"0", b"2"]
    assert state(world) is State.COMPLETE_COMMIT


def test_a_reader_of_committed_records_stops_before_an_open_transaction(world):
    world.create("t")
    one, other = Transactional(world, "x").begin(), Transactional(world, "y").begin()
    one.send("t", b"a")
    other.send("t", b"b")
    other.end()
    assert read(world, "t") == [] and fetch(world, "t").last_stable_offset == 0
    assert len(fetch(world, "t", committed=False).records) > 0
    one.end(commit=False)
    row = fetch(world, "t")
    assert row.last_stable_offset == row.high_watermark == 4
    assert [(a.producer_id, a.first_offset) for a in row.aborted_transactions] == [(0, 0)]
    assert read(world, "t") == [b"b"]


def test_a_waiting_reader_is_woken_by_the_marker(world):
    world.create("t")
    producer = Transactional(world, "x").begin()
    producer.send("t", b"a")
    reader = Client(world.node)
    wanted = m.FetchRequest_FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [m.FetchRequest_FetchTopic("t", partitions=[wanted])]
    reader.send(m.FetchRequest(max_wait_ms=10_000, min_bytes=1, isolation_level=1, topics=topics), 12)
    assert reader.take() is None
    producer.end()
    assert len(reader.take().responses[0].partitions[0].records) > 0


def test_a_second_producer_fences_the_first(world):
    world.create("t", 2)
    first = Transactional(world, "x").begin()
    first.send("t", b"a")
    second = Transactional(world, "x")
    assert second.init() is Error.CONCURRENT_TRANSACTIONS
    assert second.init() is Error.NONE
    assert first.send("t", b"b") is Error.INVALID_PRODUCER_EPOCH
    assert first.send("t", b"b", index=1) is Error.INVALID_PRODUCER_EPOCH, "a partition that saw no marker"
    assert first.end() is Error.PRODUCER_FENCED
    second.send("t", b"c")
    second.end()
    assert read(world, "t") == [b"c"] and read(world, "t", 1) == []


@pytest.mark.parametrize(("version", "error"), [(9, Error.INVALID_TXN_STATE), (11, Error.TRANSACTION_ABORTABLE)])
def test_before_version_12_a_partition_must_have_been_added(world, version, error):
    world.create("t", 2)
    producer = Transactional(world, "x", 1).begin()
    assert producer.send("t", b"a", version=version) is error
    assert producer.add("t", 1) is Error.NONE
    assert producer.send("t", b"a", version=version) is error
    assert producer.send("t", b"a", index=1, version=version) is Error.NONE
    assert fetch(world, "t").high_watermark == 0


def test_without_verification_any_transactional_batch_is_taken(make_world):
    world = make_world(transaction_partition_verification_enable="false", **FEW)
    world.create("t")
    producer = Transactional(world, "x", 1).begin()
    assert producer.send("t", b"a") is Error.NONE


def test_a_late_batch_of_a_transaction_that_is_over_opens_no_new_one(world):
    world.create("t")
    producer = Transactional(world, "x", 1).begin()
    producer.add("t", 0)
    producer.send("t", b"a")
    late = producer.batch(1, b"late")
    producer.end()
    assert producer.produce(late, "t", version=9).error_code == Error.INVALID_TXN_STATE
    assert fetch(world, "t").last_stable_offset == 2


def test_the_first_batch_of_version_2_has_sequence_0(world):
    world.create("t")
    producer = Transactional(world, "x").begin()
    producer.sequences["t", 0] = 5
    assert producer.send("t", b"a") is Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_transactional_batch_needs_a_transactional_id_and_one_producer(world):
    world.create("t", 2)
    one, other = Transactional(world, "x").begin(), Transactional(world, "y").begin()
    parts = [
        m.ProduceRequest_PartitionProduceData(0, one.batch(0, b"a")),
        m.ProduceRequest_PartitionProduceData(1, other.batch(0, b"b")),
    ]
    data = [m.ProduceRequest_TopicProduceData("t", partition_data=parts)]
    for name, error in ((None, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), ("x", Error.INVALID_PRODUCER_ID_MAPPING)):
        (topic,) = world.call(m.ProduceRequest(name, -1, 1000, data), 12).responses
        assert [part.error_code for part in topic.partition_responses] == [error, error]
    one.name = "y"
    assert one.send("t", b"a") is Error.INVALID_PRODUCER_ID_MAPPING


def test_offsets_of_a_transaction_count_when_it_commits(world):
    world.create("t")
    producer = Transactional(world, "x").begin()
    assert producer.commit_offset("g", "t", 7) is Error.NONE
    assert committed_offset(world, "g", "t") == (Error.UNSTABLE_OFFSET_COMMIT, -1)
    assert committed_offset(world, "g", "t", stable=False) == (Error.NONE, -1)
    producer.end()
    assert committed_offset(world, "g", "t") == (Error.NONE, 7)
    producer.commit_offset("g", "t", 9)
    producer.end(commit=False)
    assert committed_offset(world, "g", "t") == (Error.NONE, 7)
    world.restart(clean=False)
    assert committed_offset(world, "g", "t") == (Error.NONE, 7)


def test_before_version_5_the_group_must_have_been_added(world):
    world.create("t")
    producer = Transactional(world, "x", 1).begin()
    assert producer.commit_offset("g", "t", 7, version=3) is Error.INVALID_TXN_STATE
    assert producer.commit_offset("g", "t", 7, version=4) is Error.TRANSACTION_ABORTABLE
    assert producer.add_group("g") is Error.NONE
    assert producer.commit_offset("g", "t", 7) is Error.NONE
    producer.end()
    assert committed_offset(world, "g", "t") == (Error.NONE, 7)


def test_offsets_that_cannot_be_committed_have_their_errors(world):
    world.create("t")
    producer = Transactional(world, "x").begin()
    assert producer.commit_offset("", "t", 7) is Error.INVALID_GROUP_ID
    assert producer.commit_offset("g", "unknown", 7) is Error.UNKNOWN_TOPIC_OR_PARTITION
    producer.identity = Identity(producer.identity.producer_id, 9)
    assert producer.commit_offset("g", "t", 7) is Error.INVALID_PRODUCER_EPOCH
    producer.name = "unknown"
    assert producer.commit_offset("g", "t", 7) is Error.INVALID_PRODUCER_ID_MAPPING


def test_a_transaction_that_takes_too_long_is_aborted_by_the_coordinator(make_world):
    world = make_world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000", **FEW)
    world.create("t")
    producer = Transactional(world, "x").begin(timeout_ms=5000)
    producer.send("t", b"a")
    world.advance(4000)
    assert state(world) is State.ONGOING
    world.advance(2000)
    assert state(world) is State.COMPLETE_ABORT
    assert fetch(world, "t").last_stable_offset == 2 and read(world, "t") == []
    assert producer.send("t", b"b") is Error.INVALID_PRODUCER_EPOCH
    assert producer.end() is Error.INVALID_TXN_STATE
    assert producer.init(expected=producer.identity) is Error.NONE, "the producer may go on"
    assert producer.send("t", b"c") is Error.NONE


@pytest.mark.parametrize("clean", [True, False])
def test_an_open_transaction_survives_a_restart(world, clean):
    world.create("t")
    producer = Transactional(world, "x").begin()
    producer.send("t", b"a")
    world.restart(clean)
    assert producer.send("t", b"b") is Error.NONE
    assert producer.end() is Error.NONE
    assert read(world, "t") == [b"a", b"b"]


def test_an_open_transaction_times_out_after_a_restart_though_nobody_asks(make_world):
    world = make_world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000", **FEW)
    world.create("t")
    Transactional(world, "x").begin(timeout_ms=5000).send("t", b"a")
    world.restart(clean=False)
    world.advance(3000)
    world.advance(3000)
    assert fetch(world, "t").last_stable_offset == 2


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("written", [0, 1, 2])
def test_what_was_decided_is_completed_after_a_crash(world, commit, written, monkeypatch):
    world.create("t", 2)
    producer = Transactional(world, "x").begin()
    for index in (0, 1):
        producer.send("t", b"a", index=index)
    producer.commit_offset("g", "t", 3)
    crash_after(world, monkeypatch, markers=written)
    with pytest.raises(Crash):
        producer.end(commit)
    monkeypatch.undo()
    world.restart(clean=False)
    world.advance(1)
    assert state(world) is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
    assert read(world, "t", 0) == read(world, "t", 1) == ([b"a"] if commit else [])
    assert committed_offset(world, "g", "t") == (Error.NONE, 3 if commit else -1)
    assert producer.end(commit) is Error.NONE, "the answer was lost, so the producer asks again"
    assert producer.send("t", b"b") is Error.NONE


class Crash(Exception):
    pass


def crash_after(world, monkeypatch, markers):
    """Let the broker die when it has written so many markers of the next transaction."""
    write = transactions.Marker.write
    left = [markers]

    def dying(self, topic, index):
        if not left[0]:
            raise Crash
        left[0] -= 1
        return write(self, topic, index)

    monkeypatch.setattr(transactions.Marker, "write", dying)


def test_a_marker_that_cannot_be_written_is_tried_again(world):
    world.create("t", 2)
    producer = Transactional(world, "x").begin()
    for index in (0, 1):
        producer.send("t", b"a", index=index)
    broken = world.node.replicas.by_name["t"][1].log
    active, broken.offline, broken.active = broken.active, "the disk is gone", None
    assert producer.end() is Error.NONE
    assert state(world) is State.PREPARE_COMMIT
    assert read(world, "t", 0) == [b"a"]
    assert producer.send("t", b"b") is Error.CONCURRENT_TRANSACTIONS
    assert producer.send("t", b"b", version=9) is Error.NOT_ENOUGH_REPLICAS
    assert Transactional(world, "x").init() is Error.CONCURRENT_TRANSACTIONS
    broken.offline, broken.active = None, active
    world.advance(2000)
    assert state(world) is State.COMPLETE_COMMIT
    assert read(world, "t", 1) == [b"a"]


def test_a_coordinator_that_lost_its_log_comes_back_by_itself(make_world):
    world = make_world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000", **FEW)
    world.create("t")
    producer = Transactional(world, "x").begin(timeout_ms=5000)
    producer.send("t", b"a")
    lost = world.node.transactions.home(world.node.transactions.partition_for("x")).log
    active, lost.offline, lost.active = lost.active, "the disk is gone", None
    assert producer.end() is Error.NOT_COORDINATOR
    world.advance(2000)
    lost.offline, lost.active = None, active
    for _ in range(6):
        world.advance(1000)
    assert fetch(world, "t").last_stable_offset == 2
    assert read(world, "t") == []


def test_offsets_of_a_transaction_whose_coordinator_lost_its_log_are_asked_elsewhere(world):
    world.coordinate().create("t")
    producer = Transactional(world, "x").begin()
    lost = world.node.groups.home(world.node.groups.partition_for("g")).log
    assert producer.commit_offset("g", "t", 1) is Error.NONE
    lost.offline, lost.active = "the disk is gone", None
    assert producer.commit_offset("g", "t", 2) is Error.NOT_COORDINATOR


def test_a_topic_that_was_deleted_holds_up_no_transaction(world):
    world.create("t")
    world.create("gone")
    producer = Transactional(world, "x").begin()
    producer.send("t", b"a")
    producer.send("gone", b"a")
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("gone")]))
    assert producer.end() is Error.NONE
    assert state(world) is State.COMPLETE_COMMIT
    assert read(world, "t") == [b"a"]


def test_an_id_that_nobody_uses_is_forgotten(make_world):
    world = make_world(transactional_id_expiration_ms="5000", **FEW)
    producer = Transactional(world, "x").begin()
    world.advance(3_700_000)
    assert "x" not in world.node.transactions.of("x")[1].by_id
    assert producer.init(expected=producer.identity) is Error.NONE
    assert producer.identity.epoch == 0


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_beyond_the_limits_is_refused(world, timeout_ms):
    assert Transactional(world, "x").init(timeout_ms) is Error.INVALID_TRANSACTION_TIMEOUT


def test_the_longest_timeout_is_a_setting(make_world):
    world = make_world(transaction_max_timeout_ms="1000", **FEW)
    assert Transactional(world, "x").init(1001) is Error.INVALID_TRANSACTION_TIMEOUT
    assert Transactional(world, "x").init(1000) is Error.NONE


def test_an_empty_id_is_refused(world):
    assert Transactional(world, "").init() is Error.INVALID_REQUEST


def test_the_topic_of_transactions_is_made_as_kafka_makes_it(make_world):
    world = make_world()
    Transactional(world, "x").begin()
    known = world.node.cluster.topics[TOPIC]
    assert len(known.partitions) == 50
    asked = m.DescribeConfigsRequest_DescribeConfigsResource(2, TOPIC, None)
    (answer,) = world.call(m.DescribeConfigsRequest([asked])).results
    own = {row.name: row.value for row in answer.configs if row.config_source == 1}
    assert own == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


def test_clients_cannot_write_to_it(world):
    producer = Transactional(world, "x").begin()
    assert producer.add(TOPIC, 0) is Error.TOPIC_AUTHORIZATION_FAILED
    assert producer.send(TOPIC, b"a") is Error.INVALID_TOPIC_EXCEPTION
