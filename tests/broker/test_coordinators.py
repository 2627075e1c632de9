"""The runtime of the coordinators: loads in steps, and machines that are let go."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from moldau.broker import coordinators
from moldau.broker.coordinators import encode
from moldau.log.answers import Origin
from moldau.log.log import Log
from moldau.machines.effects import Change, Producer
from moldau.machines.offset_records import TopicCommit
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Batch, build_pairs, records
from moldau.wire.refusal import Refused

from .conftest import World


def commit(world: World, group: str, offset: int, metadata: str = "x" * 500) -> int:
    row = m.OffsetCommitRequest_OffsetCommitRequestPartition(0, offset, committed_metadata=metadata)
    topic = m.OffsetCommitRequest_OffsetCommitRequestTopic("t", bytes(16), [row])
    (answer,) = world.call(m.OffsetCommitRequest(group, topics=[topic]), 9).topics
    return answer.partitions[0].error_code


def fetch(world: World, group: str) -> tuple[int, list[int]]:
    asked = m.OffsetFetchRequest_OffsetFetchRequestGroup(group, topics=None)
    (answer,) = world.call(m.OffsetFetchRequest(groups=[asked]), 9).groups
    return answer.error_code, [part.committed_offset for topic in answer.topics for part in topic.partitions]


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    world = make_world(offsets_topic_num_partitions="1").coordinate()
    world.create("t")
    return world


def test_long_log_is_loaded_in_steps_while_clients_are_asked_to_come_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators, "LOAD_AT_ONCE", 1000)
    monkeypatch.setattr(coordinators, "CHUNK", 2000)
    for offset in range(20):
        commit(world, f"g{offset}", offset)
    world.restart()
    before = len(world.node.work.pieces)
    for _ in range(5):
        assert fetch(world, "g7") == (Error.COORDINATOR_LOAD_IN_PROGRESS, [])
    assert len(world.node.work.pieces) <= before + 1, "one load, however many ask for it"
    assert world.call(m.HeartbeatRequest("g7", 1, "x")).error_code == Error.NONE
    assert world.call(m.ListGroupsRequest()).error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    for _ in range(50):
        world.advance(3)
    assert fetch(world, "g7") == (Error.NONE, [7])
    assert len(world.call(m.ListGroupsRequest()).groups) == 20


def asked_of_a_coordinator() -> list[Any]:
    """Requests that one broker only answers, each with a row for an error."""
    topic = m.OffsetCommitRequest_OffsetCommitRequestTopic(
        "t", partitions=[m.OffsetCommitRequest_OffsetCommitRequestPartition(0, 1)]
    )
    part = m.TxnOffsetCommitRequest_TxnOffsetCommitRequestPartition(0, 1, -1, "")
    row = m.TxnOffsetCommitRequest_TxnOffsetCommitRequestTopic("t", [part])
    protocol = m.JoinGroupRequest_JoinGroupRequestProtocol("range", b"")
    added = m.AddPartitionsToTxnRequest_AddPartitionsToTxnTopic("t", [0])
    return [
        m.JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", [protocol]),
        m.SyncGroupRequest("g", 1, "m", None, "consumer", "range"),
        m.HeartbeatRequest("g", 1, "m"),
        m.LeaveGroupRequest("g", "", [m.LeaveGroupRequest_MemberIdentity("m")]),
        m.OffsetCommitRequest("g", topics=[topic]),
        m.OffsetFetchRequest(groups=[m.OffsetFetchRequest_OffsetFetchRequestGroup("g", topics=None)]),
        m.OffsetDeleteRequest("g"),
        m.DescribeGroupsRequest(["g"]),
        m.DeleteGroupsRequest(["g"]),
        m.ConsumerGroupHeartbeatRequest("g", "m", 0, None, None, 1000, ["t"], topic_partitions=[]),
        m.ConsumerGroupDescribeRequest(["g"]),
        m.ShareGroupHeartbeatRequest("g", "m", 0, None, ["t"]),
        streams_join(),
        m.TxnOffsetCommitRequest("x", "g", 1, 0, topics=[row]),
        m.InitProducerIdRequest("x", 1000),
        m.AddPartitionsToTxnRequest(
            transactions=[m.AddPartitionsToTxnRequest_AddPartitionsToTxnTransaction("x", 1, 0, False, [added])]
        ),
        m.AddOffsetsToTxnRequest("x", 1, 0, "g"),
        m.EndTxnRequest("x", 1, 0, True),
        m.DescribeTransactionsRequest(["x"]),
    ]


def streams_join() -> Any:
    part = m.StreamsGroupHeartbeatRequest_Subtopology("0", ["t"])
    return m.StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        topology=m.StreamsGroupHeartbeatRequest_Topology(0, [part]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )


def error_codes(answer: Any) -> Iterator[int]:
    """All error codes of an answer, however deep, but for those of success."""
    for field in answer.SCHEMA.fields:
        value = getattr(answer, field.name, None)
        if field.name.endswith("error_code") and value:
            yield value
        for item in value if isinstance(value, list) else ():
            if hasattr(item, "SCHEMA"):
                yield from error_codes(item)


@pytest.mark.parametrize("request_", asked_of_a_coordinator(), ids=lambda request: type(request).__name__)
def test_nobody_is_a_coordinator_before_somebody_asks_for_one(make_world: Callable[..., World], request_: Any) -> None:
    world = make_world()
    world.create("t")
    version = 9 if isinstance(request_, m.OffsetCommitRequest | m.OffsetFetchRequest) else None
    expected = Error.NOT_COORDINATOR
    if isinstance(request_, m.TxnOffsetCommitRequest):
        expected = Error.COORDINATOR_NOT_AVAILABLE  # the partition is looked for first: it is part of the transaction
    assert list(error_codes(world.call(request_, version))) == [expected]
    assert list(world.node.cluster.topics) == ["t"]


@pytest.mark.parametrize(
    "request_",
    [
        m.ConsumerGroupHeartbeatRequest("g", " ", 0, None, None, 1000, ["t"], topic_partitions=[]),
        m.ShareGroupHeartbeatRequest("g", " ", 0, None, ["t"]),
        m.StreamsGroupHeartbeatRequest("g", " "),
    ],
    ids=lambda request: type(request).__name__,
)
def test_heartbeat_that_makes_no_sense_is_told_so_by_whomever_it_reaches(
    make_world: Callable[..., World], request_: Any
) -> None:
    answer = make_world().call(request_)
    assert (answer.error_code, answer.error_message) == (Error.INVALID_REQUEST, "MemberId can't be empty.")


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_internal_topic_that_a_client_merely_mentions_is_made_as_it_must_be(
    make_world: Callable[..., World], name: str
) -> None:
    world = make_world()
    asked = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    (first,), (topic,) = world.call(asked, 9).topics, world.call(asked, 9).topics
    assert (first.error_code, first.partitions, first.is_internal) == (Error.UNKNOWN_TOPIC_OR_PARTITION, [], True)
    assert (topic.error_code, len(topic.partitions), topic.is_internal) == (Error.NONE, 50, True)
    policy = "delete" if name == "__share_group_state" else "compact"
    assert world.node.cluster.config(2, name)["cleanup.policy"] == policy


def test_listings_are_empty_before_somebody_asks_for_a_coordinator(make_world: Callable[..., World]) -> None:
    world = make_world()
    groups, transactions = world.call(m.ListGroupsRequest()), world.call(m.ListTransactionsRequest())
    assert (groups.error_code, groups.groups) == (Error.NONE, [])
    assert (transactions.error_code, transactions.transaction_states) == (Error.NONE, [])
    assert not world.node.cluster.topics


def test_load_goes_on_by_itself_after_a_start(world: World) -> None:
    commit(world, "g", 5)
    world.restart()
    assert world.node.groups.machines == {}
    world.advance(3)
    assert list(world.node.groups.machines) == [0]


def test_a_load_begins_anew_when_somebody_else_has_led(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has read may have been dropped meanwhile, and other records be in its place."""
    monkeypatch.setattr(coordinators, "LOAD_AT_ONCE", 1000)
    monkeypatch.setattr(coordinators, "CHUNK", 2000)
    for offset in range(20):
        commit(world, f"g{offset}", offset)
    world.restart()
    assert fetch(world, "g0") == (Error.COORDINATOR_LOAD_IN_PROGRESS, [])
    work = world.node.groups.loads[0]
    assert next(work) == next(work) == coordinators.BUSY
    partition = world.node.groups.home(0)
    ours, led = partition.placement, world.node.leadership_changed
    partition.follow(replace(ours, leader=7, leader_epoch=ours.leader_epoch + 1))
    led(partition)
    partition.log.truncate_to(1)
    partition.lead(replace(ours, leader_epoch=ours.leader_epoch + 2), world.node.clock.monotonic_ms())
    for offset in range(20):
        change = TopicCommit("other", "t", bytes(16), 0, -1).change(0, offset, -1, "x" * 500)
        assert change.encoded is not None
        partition.append(memoryview(build_pairs([change.encoded], 0)), 0, Origin.COORDINATOR)
    led(partition)
    assert list(work) == [], "the load that was under way"
    for _ in range(50):
        world.advance(3)
    assert fetch(world, "g0") == (Error.NONE, [0]) and fetch(world, "g1") == (Error.NONE, [])
    assert fetch(world, "other") == (Error.NONE, [19])
    assert world.node.groups.loads == {}


def test_a_node_loads_nothing_of_an_internal_topic_that_only_others_keep(world: World) -> None:
    """As the fourth broker of a cluster in which the topic has three replicas."""
    commit(world, "g", 5)
    world.node.groups.stop()
    del world.node.replicas.by_name["__consumer_offsets"]
    assert list(world.node.groups.load_all()) == []
    assert world.node.groups.machines == {}


def test_damaged_log_makes_no_coordinator_and_is_not_read_again_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(world, "g", 5)
    world.node.groups.unload(0, Error.NOT_COORDINATOR)
    reads = 0

    def damaged(*_: object) -> int:
        nonlocal reads
        reads += 1
        raise Refused(Error.CORRUPT_MESSAGE, "damaged")

    with monkeypatch.context() as patched:
        patched.setattr(coordinators.Coordinators, "replay_chunk", damaged)
        assert fetch(world, "g")[0] == fetch(world, "g")[0] == Error.NOT_COORDINATOR
    assert reads == 1
    world.advance(coordinators.LOAD_AGAIN_MS)
    assert fetch(world, "g") == (Error.NONE, [5])


def test_log_that_cannot_be_opened_for_want_of_room_is_opened_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commit(world, "g", 7) == Error.NONE
    world.restart()
    log = world.node.groups.home(0).log
    assert log.active is None, "a log sleeps until it is used"

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as full:
        full.setattr(Log, "_load", no_room)
        assert fetch(world, "g") == (Error.NOT_COORDINATOR, [])
        beat = m.ConsumerGroupHeartbeatRequest("g", "m", 0, None, None, 1000, ["t"], None, None, [])
        assert world.call(beat, 1).error_code == Error.NOT_COORDINATOR
    assert fetch(world, "g") == (Error.NONE, [7])


def test_internal_topic_that_cannot_be_made_leaves_no_coordinator(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world()

    def full(*_: object) -> None:
        raise Refused(Error.KAFKA_STORAGE_ERROR, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(world.node.metadata, "append", full)
        (row,) = world.call(m.FindCoordinatorRequest("", 0, ["g"])).coordinators
        assert row.error_code == Error.COORDINATOR_NOT_AVAILABLE
    assert world.call(m.FindCoordinatorRequest("", 0, ["g"])).coordinators[0].error_code == Error.NONE


def test_internal_topic_that_is_deleted_comes_back_empty_when_a_coordinator_is_asked_for(world: World) -> None:
    commit(world, "g", 5)
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("__consumer_offsets")]))
    assert fetch(world, "g") == (Error.NOT_COORDINATOR, [])
    world.coordinate()
    assert fetch(world, "g") == (Error.NONE, [])
    assert commit(world, "g", 6) == Error.NONE
    assert fetch(world, "g") == (Error.NONE, [6])


@pytest.mark.parametrize("codec", range(5))
def test_records_are_compressed_as_the_setting_says(make_world: Callable[..., World], codec: int) -> None:
    world = make_world(offsets_topic_num_partitions="1", offsets_topic_compression_codec=str(codec)).coordinate()
    world.create("t")
    commit(world, "g", 5)
    span = world.node.groups.home(0).log.read(0, 1 << 20).span
    assert span is not None
    batch = Batch(memoryview(span.read()))
    assert batch.compression == codec and (batch.size < 500) == (codec > 0)
    world.restart()
    assert fetch(world, "g") == (Error.NONE, [5])


def test_changes_become_one_batch_with_one_time() -> None:
    topic = TopicCommit("g", "t", bytes(16), 7, -1)
    changes = [topic.change(index, 5, 0, "") for index in range(2000)]
    changes.append(Change(m.GroupMetadataKey("g"), None))
    pairs = [change.encoded or encode(change) for change in changes]
    batch = Batch(build_pairs(pairs, 1234, Producer(9, 3)))
    batch.verify()
    assert batch.is_transactional and (batch.producer_id, batch.producer_epoch, batch.count) == (9, 3, 2001)
    found = list(records(batch))
    assert [record.offset for record in found] == list(range(2001))
    assert {record.timestamp for record in found} == {1234}
    assert [(record.key, record.value) for record in found[:2]] == [change.encoded for change in changes[:2]]
    assert found[-1].value is None and found[-1].key == b"\0\2\0\1g"
