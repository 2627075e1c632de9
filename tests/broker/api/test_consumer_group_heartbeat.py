"""ConsumerGroupHeartbeat and ConsumerGroupDescribe through a node: what is written survives, and what clients see."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error


@pytest.fixture
def world(make_world: Any) -> Any:
    return make_world(offsets_topic_num_partitions="2").coordinate()


def beat(world: Any, member: str, epoch: int, **fields: Any) -> Any:
    return world.call(m.ConsumerGroupHeartbeatRequest("g", member, epoch, **fields))


def join(world: Any, member: str, **fields: Any) -> Any:
    full = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    return beat(world, member, 0, **(full | fields))


def describe(world: Any, *groups: str, version: int = 1) -> list[Any]:
    return world.call(m.ConsumerGroupDescribeRequest(list(groups), True), version).groups


def partitions(answer: Any) -> list[int]:
    return [index for row in answer.topic_partitions for index in row.partitions]


def test_a_member_joins_goes_on_and_leaves(world):
    world.create("t", 3)
    joined = join(world, "m1")
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m1", 2)
    assert joined.heartbeat_interval_ms == 5000 and partitions(joined.assignment) == [0, 1, 2]
    assert beat(world, "m1", 2).assignment is None
    assert beat(world, "m1", -1).member_epoch == -1
    assert beat(world, "m1", 2).error_code == Error.UNKNOWN_MEMBER_ID


def test_a_group_survives_crashes_of_the_broker(world):
    world.create("t", 2)
    join(world, "m1")
    world.restart(clean=False)
    assert beat(world, "m1", 2).error_code == 0
    (group,) = describe(world, "g")
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)


def test_time_takes_silent_members_out(world):
    world.create("t", 2)
    join(world, "m1")
    world.advance(45_000)
    (group,) = describe(world, "g")
    assert (group.group_state, group.members) == ("Empty", [])


def test_descriptions(world):
    topic = world.create("t", 2)
    world.create("u", 1)
    join(world, "m1", subscribed_topic_names=["t", "u"], instance_id="i1", rack_id="r1", server_assignor="range")
    join(world, "m2", subscribed_topic_regex="t+")
    group, missing, nameless = describe(world, "g", "none", "")
    assert (group.group_id, group.group_state, group.assignor_name) == ("g", "Assigning", "range")
    assert group.authorized_operations == 3400
    one, two = group.members
    assert (one.member_id, one.instance_id, one.rack_id, one.client_id) == ("m1", "i1", "r1", "test")
    assert one.subscribed_topic_names == ["t", "u"] and one.member_type == 1
    assert {(row.topic_name, *row.partitions) for row in one.assignment.topic_partitions} == {("t", 0, 1), ("u", 0)}
    assert topic in {row.topic_id for row in one.target_assignment.topic_partitions}
    assert (two.subscribed_topic_regex, two.assignment.topic_partitions) == ("t+", [])
    assert (missing.error_code, nameless.error_code) == (Error.GROUP_ID_NOT_FOUND, Error.INVALID_GROUP_ID)
    assert missing.authorized_operations == nameless.authorized_operations == -(2**31)
    assert describe(world, "g", version=0)[0].members[0].member_type == -1


def test_what_a_member_gives_up_is_described_as_its_own(world):
    world.create("t", 2)
    join(world, "m1")
    world.advance(1000)
    join(world, "m2")
    assert partitions(beat(world, "m1", 2).assignment) == [0]
    (group,) = describe(world, "g")
    assert group.group_state == "Reconciling"
    assert [partitions(member.assignment) for member in group.members] == [[0, 1], []]
    assert [partitions(member.target_assignment) for member in group.members] == [[0], [1]]


def test_deleted_topics_are_left_out_of_descriptions(world):
    world.create("t", 2)
    join(world, "m1")
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")], timeout_ms=1000))
    (group,) = describe(world, "g")
    assert group.members[0].assignment.topic_partitions == []


def test_offsets_are_committed_and_fetched_in_the_members_epoch(world):
    world.create("t", 1)
    join(world, "m1")

    def commit(epoch: int) -> int:
        part = m.OffsetCommitRequest_OffsetCommitRequestPartition(0, 7)
        topic = m.OffsetCommitRequest_OffsetCommitRequestTopic("t", partitions=[part])
        answer = world.call(m.OffsetCommitRequest("g", epoch, "m1", topics=[topic]), 9)
        return answer.topics[0].partitions[0].error_code

    def fetch(epoch: int) -> Any:
        topic = m.OffsetFetchRequest_OffsetFetchRequestTopics("t", partition_indexes=[0])
        asked = m.OffsetFetchRequest_OffsetFetchRequestGroup("g", "m1", epoch, [topic])
        return world.call(m.OffsetFetchRequest(groups=[asked]), 9).groups[0]

    assert commit(3) == Error.STALE_MEMBER_EPOCH
    assert commit(1) == Error.STALE_MEMBER_EPOCH
    assert commit(2) == 0
    assert fetch(2).topics[0].partitions[0].committed_offset == 7
    assert fetch(1).error_code == Error.STALE_MEMBER_EPOCH


def test_a_broker_without_the_consumer_protocol_says_so(make_world):
    world = make_world(group_coordinator_rebalance_protocols="classic")
    assert join(world, "m1").error_code == Error.UNSUPPORTED_VERSION


def test_listings_know_consumer_groups(world):
    world.create("t", 1)
    join(world, "m1")
    listed = world.call(m.ListGroupsRequest(types_filter=["consumer"])).groups
    assert [(row.group_id, row.protocol_type, row.group_state, row.group_type) for row in listed] == [
        ("g", "consumer", "Stable", "consumer")
    ]
