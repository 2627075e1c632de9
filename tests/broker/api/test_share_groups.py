"""Share groups through a node: heartbeats, descriptions, offsets, deletion, and what survives a crash."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build
from moldau.wire.refusal import Refused

SMALL = {"offsets_topic_num_partitions": "2", "share_coordinator_state_topic_num_partitions": "2"}


@pytest.fixture
def world(make_world: Any) -> Any:
    return make_world(**SMALL).coordinate()


def beat(world: Any, member: str, epoch: int, group: str = "g", **fields: Any) -> Any:
    return world.call(m.ShareGroupHeartbeatRequest(group, member, epoch, **fields))


def join(world: Any, member: str = "m1", *topics: str, group: str = "g") -> Any:
    """Join, and wait until there is something to fetch."""
    first = beat(world, member, 0, group, subscribed_topic_names=list(topics or ["t"]))
    world.advance(1000)
    return beat(world, member, first.member_epoch, group)


def partitions(answer: Any) -> list[int]:
    return [index for row in answer.topic_partitions for index in row.partitions]


def describe(world: Any, *groups: str) -> list[Any]:
    return world.call(m.ShareGroupDescribeRequest(list(groups), True)).groups


def offsets(world: Any, group: str = "g", topics: dict[str, list[int]] | None = None, version: int = 1) -> Any:
    row = m.DescribeShareGroupOffsetsRequest_DescribeShareGroupOffsetsRequestTopic
    asked = None if topics is None else [row(*topic) for topic in topics.items()]
    group_row = m.DescribeShareGroupOffsetsRequest_DescribeShareGroupOffsetsRequestGroup(group, asked)
    (answer,) = world.call(m.DescribeShareGroupOffsetsRequest([group_row]), version).groups
    return answer


def starts(world: Any, group: str = "g") -> dict[tuple[str, int], int]:
    topics = offsets(world, group).topics
    return {(row.topic_name, part.partition_index): part.start_offset for row in topics for part in row.partitions}


def alter(world: Any, topics: dict[str, dict[int, int]], group: str = "g") -> Any:
    row = m.AlterShareGroupOffsetsRequest_AlterShareGroupOffsetsRequestTopic
    part = m.AlterShareGroupOffsetsRequest_AlterShareGroupOffsetsRequestPartition
    rows = [row(name, [part(*start) for start in offsets.items()]) for name, offsets in topics.items()]
    return world.call(m.AlterShareGroupOffsetsRequest(group, rows))


def delete_offsets(world: Any, *topics: str, group: str = "g") -> Any:
    row = m.DeleteShareGroupOffsetsRequest_DeleteShareGroupOffsetsRequestTopic
    return world.call(m.DeleteShareGroupOffsetsRequest(group, [row(name) for name in topics]))


def delete_group(world: Any, group: str = "g") -> int:
    (row,) = world.call(m.DeleteGroupsRequest([group])).results
    return row.error_code


def test_a_member_joins_goes_on_and_leaves(world):
    world.create("t", 3)
    first = beat(world, "m1", 0, subscribed_topic_names=["t"])
    assert (first.error_code, first.member_id, first.member_epoch, first.heartbeat_interval_ms) == (0, "m1", 2, 5000)
    assert partitions(first.assignment) == []
    world.advance(1000)
    second = beat(world, "m1", 2)
    assert (second.member_epoch, partitions(second.assignment)) == (3, [0, 1, 2])
    assert beat(world, "m1", 3).assignment is None
    assert beat(world, "m1", -1).member_epoch == -1
    assert beat(world, "m1", 3).error_code == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("clean", [True, False])
def test_a_group_survives_the_broker(world, clean):
    world.create("t", 2)
    join(world)
    world.restart(clean)
    assert beat(world, "m1", 3).error_code == 0
    (group,) = describe(world, "g")
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    assert starts(world) == {("t", 0): -1, ("t", 1): -1}
    world.advance(45_000)
    assert describe(world, "g")[0].group_state == "Empty"


def test_descriptions(world):
    topic = world.create("t", 2)
    beat(world, "m1", 0, subscribed_topic_names=["t"], rack_id="r1")
    world.advance(1000)
    beat(world, "m1", 2)
    group, missing, nameless = describe(world, "g", "none", "")
    assert (group.group_id, group.group_state, group.assignor_name) == ("g", "Stable", "simple")
    assert (group.group_epoch, group.assignment_epoch, group.authorized_operations) == (3, 3, 3400)
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.member_epoch, member.client_id) == ("m1", "r1", 3, "test")
    (row,) = member.assignment.topic_partitions
    assert (row.topic_id, row.topic_name, row.partitions) == (topic, "t", [0, 1])
    assert (missing.error_code, nameless.error_code) == (Error.GROUP_ID_NOT_FOUND, Error.INVALID_GROUP_ID)


def test_other_apis_see_a_share_group_as_what_it_is(world):
    world.create("t", 1)
    join(world)
    (row,) = world.call(m.ListGroupsRequest()).groups
    assert (row.group_id, row.protocol_type, row.group_state, row.group_type) == ("g", "share", "Stable", "share")
    assert world.call(m.ListGroupsRequest(types_filter=["consumer"])).groups == []
    assert world.call(m.DescribeGroupsRequest(["g"])).groups[0].error_code == Error.GROUP_ID_NOT_FOUND
    assert world.call(m.ConsumerGroupDescribeRequest(["g"])).groups[0].error_code == Error.GROUP_ID_NOT_FOUND
    asked = m.OffsetFetchRequest_OffsetFetchRequestGroup("g", topics=None)
    (fetched,) = world.call(m.OffsetFetchRequest(groups=[asked])).groups
    assert (fetched.error_code, fetched.topics) == (0, [])


def test_share_groups_can_be_switched_off(world):
    world.create("t", 1)
    wish = m.UpdateFeaturesRequest_FeatureUpdateKey("share.version", 0, upgrade_type=2)
    assert world.call(m.UpdateFeaturesRequest(feature_updates=[wish])).error_code == 0
    assert beat(world, "m1", 0, subscribed_topic_names=["t"]).error_code == Error.UNSUPPORTED_VERSION
    assert describe(world, "g")[0].error_code == Error.UNSUPPORTED_VERSION
    assert offsets(world).error_code == Error.UNSUPPORTED_VERSION
    assert alter(world, {"t": {0: 1}}).error_code == Error.UNSUPPORTED_VERSION
    assert delete_offsets(world, "t").error_code == Error.UNSUPPORTED_VERSION


def test_a_setting_of_the_broker_switches_them_on(make_world):
    world = make_world(**SMALL, group_coordinator_rebalance_protocols="classic,consumer,share").coordinate()
    wish = m.UpdateFeaturesRequest_FeatureUpdateKey("share.version", 0, upgrade_type=2)
    world.call(m.UpdateFeaturesRequest(feature_updates=[wish]))
    assert beat(world, "m1", 0, subscribed_topic_names=["t"]).error_code == 0


def test_settings_of_a_group(world):
    def change(name: str, value: str) -> int:
        config = m.IncrementalAlterConfigsRequest_AlterableConfig(name, 0, value)
        resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(32, "g", [config])
        return world.call(m.IncrementalAlterConfigsRequest([resource])).responses[0].error_code

    world.create("t", 1)
    assert change("share.heartbeat.interval.ms", "6000") == 0
    assert change("share.session.timeout.ms", "50000") == 0
    assert change("share.auto.offset.reset", "by_duration:PT1H") == 0
    assert change("share.auto.offset.reset", "whenever") == Error.INVALID_CONFIG
    assert change("share.session.timeout.ms", "1000000") == Error.INVALID_CONFIG
    assert beat(world, "m1", 0, subscribed_topic_names=["t"]).heartbeat_interval_ms == 6000
    world.advance(49_000)
    assert describe(world, "g")[0].group_state == "Stable"
    world.advance(1000)
    assert describe(world, "g")[0].group_state == "Empty"


def test_offsets_and_lag(world):
    world.create("t", 2)
    join(world)
    (topic,) = offsets(world).topics
    assert [(part.start_offset, part.leader_epoch, part.lag) for part in topic.partitions] == [(-1, 0, -1)] * 2
    known, unknown = offsets(world, topics={"t": [0], "none": [4]}).topics[::-1]
    assert (known.topic_name, known.partitions[0].start_offset) == ("t", -1)
    assert (unknown.topic_id, unknown.partitions[0].partition_index, unknown.partitions[0].start_offset) == (
        bytes(16),
        4,
        -1,
    )
    assert offsets(world, "missing").topics == offsets(world, topics={}).topics == []
    beat(world, "m1", -1)
    alter(world, {"t": {1: 0}})
    produce(world, "t", 1)
    (topic,) = offsets(world).topics
    assert [(part.start_offset, part.lag) for part in topic.partitions] == [(-1, -1), (0, 1)]
    assert offsets(world, version=0).topics[0].partitions[1].start_offset == 0


def produce(world: Any, topic: str, partition: int) -> None:
    data = m.ProduceRequest_PartitionProduceData(partition, bytes(build([Record(0, 0, None, b"v")])))
    row = m.ProduceRequest_TopicProduceData(topic, partition_data=[data])
    answer = world.call(m.ProduceRequest(None, -1, 1000, [row]), 12)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_offsets_of_a_log_that_is_gone_have_no_lag(world, monkeypatch):
    world.create("t", 1)
    alter(world, {"t": {0: 0}})
    leader = world.node.replicas.leader

    def offline(topic: str, index: int) -> Any:
        if topic == "t":
            raise Refused(Error.KAFKA_STORAGE_ERROR, "gone")
        return leader(topic, index)

    monkeypatch.setattr(world.node.replicas, "leader", offline)
    (part,) = offsets(world).topics[0].partitions
    assert (part.error_code, part.lag) == (Error.KAFKA_STORAGE_ERROR, -1)


def test_altering_offsets(world):
    topic = world.create("t", 2)
    join(world)
    refused = alter(world, {"t": {0: 1}})
    assert (refused.error_code, refused.responses) == (Error.NON_EMPTY_GROUP, [])
    beat(world, "m1", -1)
    unknown, known = alter(world, {"t": {0: 5, 9: 1}, "none": {0: 0}}).responses
    assert (unknown.topic_name, unknown.topic_id) == ("none", bytes(16))
    assert [part.error_code for part in unknown.partitions] == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert (known.topic_name, known.topic_id) == ("t", topic)
    assert [part.error_code for part in known.partitions] == [0, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert starts(world) == {("t", 0): 5, ("t", 1): -1}
    world.restart(clean=False)
    assert starts(world) == {("t", 0): 5, ("t", 1): -1}
    assert alter(world, {}).responses == []
    assert alter(world, {"t": {0: 1}}, "").error_code == Error.INVALID_GROUP_ID


def test_altering_makes_a_group_and_is_refused_by_others(world):
    world.create("t", 1)
    assert alter(world, {"t": {0: 3}}, "new").error_code == 0
    assert (describe(world, "new")[0].group_state, starts(world, "new")) == ("Empty", {("t", 0): 3})
    alter(world, {"none": {0: 3}}, "none")
    assert describe(world, "none")[0].error_code == Error.GROUP_ID_NOT_FOUND
    topic = m.OffsetCommitRequest_OffsetCommitRequestTopic(
        "t", partitions=[m.OffsetCommitRequest_OffsetCommitRequestPartition(0, 1)]
    )
    world.call(m.OffsetCommitRequest("classic", topics=[topic]), 9)
    assert alter(world, {"t": {0: 3}}, "classic").error_code == Error.GROUP_ID_NOT_FOUND
    assert beat(world, "m1", 0, "classic", subscribed_topic_names=["t"]).error_code == Error.GROUP_ID_NOT_FOUND


def test_a_topic_that_is_named_twice_is_altered_once(world):
    world.create("t", 3)
    row = m.AlterShareGroupOffsetsRequest_AlterShareGroupOffsetsRequestTopic
    part = m.AlterShareGroupOffsetsRequest_AlterShareGroupOffsetsRequestPartition
    request = m.AlterShareGroupOffsetsRequest("g", [row("t", [part(1, 5), part(1, 6)]), row("t", [part(2, 0)])])
    (answer,) = world.call(request).responses
    assert [part.partition_index for part in answer.partitions] == [1, 1, 2]
    assert starts(world) == {("t", 1): 6, ("t", 2): 0}


def test_deleting_offsets(world):
    topic = world.create("t", 2)
    world.create("u", 1)
    join(world)
    assert delete_offsets(world, "t").error_code == Error.NON_EMPTY_GROUP
    beat(world, "m1", -1)
    done, unused, unknown = delete_offsets(world, "t", "u", "none").responses
    assert (done.topic_name, done.topic_id, done.error_code) == ("t", topic, 0)
    assert [row.error_code for row in (unused, unknown)] == [Error.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert unused.error_message == "There is no offset information to delete."
    assert starts(world) == {}
    assert delete_offsets(world, "t", group="none").error_code == Error.GROUP_ID_NOT_FOUND
    assert delete_offsets(world, "t", group="").error_code == Error.INVALID_GROUP_ID
    assert partitions(join(world).assignment) == [0, 1]


def test_deleting_a_group(world):
    world.create("t", 2)
    join(world)
    assert delete_group(world) == Error.NON_EMPTY_GROUP
    beat(world, "m1", -1)
    assert delete_group(world) == 0
    assert delete_group(world) == Error.GROUP_ID_NOT_FOUND
    assert describe(world, "g")[0].error_code == Error.GROUP_ID_NOT_FOUND
    assert offsets(world, topics={"t": [0]}).topics[0].partitions[0].start_offset == -1
    world.restart(clean=False)
    assert world.call(m.ListGroupsRequest()).groups == []


def test_a_deleted_topic_is_forgotten(world):
    world.create("t", 1)
    world.create("u", 1)
    join(world, "m1", "t", "u")
    state = m.DeleteTopicsRequest_DeleteTopicState("u")
    world.call(m.DeleteTopicsRequest([state], timeout_ms=1000))
    assert starts(world) == {("t", 0): -1}
    world.advance(1000)
    assert [row.partitions for row in beat(world, "m1", 3).assignment.topic_partitions] == [[0]]
    world.create("u", 2)
    world.advance(1000)
    assert beat(world, "m1", 4).member_epoch == 5
    world.advance(1000)
    assert sorted(partitions(beat(world, "m1", 5).assignment)) == [0, 0, 1]


class Refusing:
    """A share coordinator that is not there."""

    def __getattr__(self, name: str) -> Any:
        async def refuse(request: Any) -> Any:
            response = m.response_class(request.SCHEMA.key)
            row = getattr(m, f"{response.__name__}_PartitionResult")
            topic_row = getattr(m, response.__name__ + "_" + RESULTS[name])
            error = Error.COORDINATOR_NOT_AVAILABLE
            return response(
                [
                    topic_row(topic.topic_id, [row(part.partition, error, "down") for part in topic.partitions])
                    for topic in request.topics
                ]
            )

        return refuse


RESULTS = {
    "initialize": "InitializeStateResult",
    "delete": "DeleteStateResult",
    "read_summary": "ReadStateSummaryResult",
}


def test_without_a_share_coordinator_nothing_is_assigned_and_nothing_is_lost(world, monkeypatch):
    world.create("t", 1)
    with monkeypatch.context() as patched:
        patched.setattr(world.node, "share_state", Refusing())
        assert join(world).assignment is None
        beat(world, "m1", -1)
        (row,) = alter(world, {"t": {0: 3}}).responses
        assert row.partitions[0].error_code == Error.COORDINATOR_NOT_AVAILABLE
    assert partitions(join(world).assignment) == [0]
    beat(world, "m1", -1)
    with monkeypatch.context() as patched:
        patched.setattr(world.node, "share_state", Refusing())
        assert offsets(world).topics[0].partitions[0].start_offset == -1
        (row,) = delete_offsets(world, "t").responses
        assert (row.topic_name, row.error_code) == ("t", Error.COORDINATOR_NOT_AVAILABLE)
        assert delete_group(world) == Error.COORDINATOR_NOT_AVAILABLE
    assert delete_offsets(world, "t").responses[0].error_code == 0
    assert delete_group(world) == 0


def test_without_a_log_the_coordinator_is_elsewhere(world, monkeypatch):
    world.create("t", 1)
    join(world)
    beat(world, "m1", -1)

    def refuse(*_: Any) -> Any:
        raise Refused(Error.NOT_LEADER_OR_FOLLOWER, "elsewhere")

    for ask in (
        lambda: beat(world, "m1", 0, subscribed_topic_names=["t"]).error_code,
        lambda: alter(world, {"t": {0: 1}}).error_code,
        lambda: delete_offsets(world, "t").error_code,
        lambda: delete_group(world),
    ):
        describe(world, "g")
        with monkeypatch.context() as patched:
            patched.setattr(world.node.groups, "write", refuse)
            assert ask() == Error.NOT_COORDINATOR
        assert describe(world, "g")[0].group_state == "Empty"
