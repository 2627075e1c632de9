"""StreamsGroupHeartbeat and StreamsGroupDescribe through a node: internal topics, what survives, what clients see."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.machines.streams.configuring import Status
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.machines.streamers import part, topology

SETTINGS = {"offsets_topic_num_partitions": "2", "group_streams_initial_rebalance_delay_ms": "0"}
NO_TASKS = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


@pytest.fixture
def world(make_world: Any) -> Any:
    return make_world(**SETTINGS).coordinate()


def words() -> Any:
    store = m.StreamsGroupHeartbeatRequest_TopicInfo("app-counts-changelog", 0, 0)
    store.topic_configs = [m.StreamsGroupHeartbeatRequest_KeyValue("cleanup.policy", "compact")]
    counts = part("1", reads=["app-words-repartition"])
    counts.state_changelog_topics = [store]
    return topology(part("0", "lines", sinks=["app-words-repartition"]), counts)


def beat(world: Any, member: str, epoch: int, **fields: Any) -> Any:
    return world.call(m.StreamsGroupHeartbeatRequest("g", member, epoch, **fields))


def join(world: Any, member: str = "m1", **fields: Any) -> Any:
    full = {"rebalance_timeout_ms": 30_000, "process_id": f"p-{member}", "topology": words(), "client_tags": []}
    return beat(world, member, 0, **(NO_TASKS | full | fields))


def running(world: Any) -> Any:
    """A member that has all tasks."""
    world.create("lines", 2)
    join(world)
    world.advance(1000)
    return beat(world, "m1", 2, **NO_TASKS)


def describe(world: Any, *groups: str) -> list[Any]:
    return world.call(m.StreamsGroupDescribeRequest(list(groups), True)).groups


def tasks(rows: Any) -> dict[str, list[int]]:
    return {row.subtopology_id: row.partitions for row in rows}


def test_internal_topics_are_created_with_their_settings(world):
    world.create("lines", 2)
    joined = join(world)
    (told,) = joined.status
    assert (joined.error_code, joined.member_epoch, told.status_code) == (0, 2, Status.MISSING_INTERNAL_TOPICS)
    topics = world.node.cluster.topics
    assert [len(topics[name].partitions) for name in ("app-words-repartition", "app-counts-changelog")] == [2, 2]
    resource = m.DescribeConfigsRequest_DescribeConfigsResource(2, "app-counts-changelog", ["cleanup.policy"])
    (row,) = world.call(m.DescribeConfigsRequest([resource])).results
    assert row.configs[0].value == "compact"
    world.advance(1000)
    answer = beat(world, "m1", 2, **NO_TASKS)
    assert (answer.member_epoch, answer.status, answer.heartbeat_interval_ms) == (3, [], 5000)
    assert tasks(answer.active_tasks) == {"0": [0, 1], "1": [0, 1]}


def test_a_topic_that_cannot_be_created_is_told(world):
    world.create("lines", 2)
    wrong = words()
    wrong.subtopologies[1].state_changelog_topics[0].topic_configs[0].value = "nonsense"
    (told,) = join(world, topology=wrong).status
    assert "; Creation failed: app-counts-changelog (" in told.status_detail
    assert "app-words-repartition" in world.node.cluster.topics


def test_internal_topics_of_the_broker_and_illegal_names_are_refused(world):
    for name, problem in (
        ("__consumer_offsets", "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is"),
        ("a/b", "Topic names a/b are not valid topic names."),
    ):
        answer = join(world, topology=topology(part("0", name)))
        assert answer.error_code == Error.STREAMS_INVALID_TOPOLOGY
        assert answer.error_message.startswith(problem)


def test_a_group_survives_crashes_of_the_broker(world):
    running(world)
    before = describe(world, "g")
    world.restart(clean=False)
    assert beat(world, "m1", 3).error_code == 0
    after = describe(world, "g")
    assert after == before
    assert (after[0].group_state, after[0].group_epoch, after[0].assignment_epoch) == ("Stable", 3, 3)


def test_a_group_is_described_with_its_topology_and_members(world):
    running(world)
    group, missing, empty = describe(world, "g", "h", "")
    assert (missing.error_code, empty.error_code) == (Error.GROUP_ID_NOT_FOUND, Error.INVALID_GROUP_ID)
    first, second = group.topology.subtopologies
    assert (first.source_topics, first.repartition_sink_topics) == (["lines"], ["app-words-repartition"])
    assert [(topic.name, topic.partitions) for topic in second.state_changelog_topics] == [("app-counts-changelog", 2)]
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.process_id, member.topology_epoch) == ("m1", 3, "p-m1", 0)
    assert tasks(member.assignment.active_tasks) == tasks(member.target_assignment.active_tasks)
    assert tasks(member.assignment.active_tasks) == {"0": [0, 1], "1": [0, 1]} and not member.is_classic


def test_a_topology_that_cannot_run_yet_is_described_as_it_was_told(world):
    join(world)
    (group,) = describe(world, "g")
    assert group.group_state == "NotReady"
    assert group.topology.subtopologies[1].state_changelog_topics[0].partitions == 0


def test_it_is_listed_and_deleted_as_a_streams_group(world):
    running(world)
    (listed,) = world.call(m.ListGroupsRequest(types_filter=["streams"])).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        "g",
        "streams",
        "Stable",
        "streams",
    )
    assert world.call(m.ListGroupsRequest(types_filter=["consumer"])).groups == []
    delete = m.DeleteGroupsRequest(["g"])
    assert world.call(delete).results[0].error_code == Error.NON_EMPTY_GROUP
    beat(world, "m1", -1)
    assert world.call(delete).results[0].error_code == 0
    assert describe(world, "g")[0].error_code == Error.GROUP_ID_NOT_FOUND
    world.restart()
    assert world.call(m.ListGroupsRequest()).groups == []


def commit(world: Any, epoch: int) -> int:
    part = m.OffsetCommitRequest_OffsetCommitRequestPartition(0, 5)
    rows = [m.OffsetCommitRequest_OffsetCommitRequestTopic("lines", partitions=[part])]
    answer = world.call(m.OffsetCommitRequest("g", epoch, "m1", topics=rows), 9)
    return answer.topics[0].partitions[0].error_code


def test_members_commit_and_fetch_offsets_by_their_epoch(world):
    running(world)
    assert commit(world, 3) == 0
    assert commit(world, 4) == Error.STALE_MEMBER_EPOCH
    topics = [m.OffsetFetchRequest_OffsetFetchRequestTopics("lines", partition_indexes=[0])]
    for epoch, error in ((3, 0), (2, Error.STALE_MEMBER_EPOCH)):
        asked = m.OffsetFetchRequest_OffsetFetchRequestGroup("g", "m1", epoch, topics)
        (group,) = world.call(m.OffsetFetchRequest(groups=[asked]), 9).groups
        assert group.error_code == error
        assert error or group.topics[0].partitions[0].committed_offset == 5


def test_without_the_protocol_or_the_feature_nobody_is_answered(make_world):
    world = make_world(**SETTINGS, group_coordinator_rebalance_protocols="classic,consumer").coordinate()
    assert join(world).error_code == Error.UNSUPPORTED_VERSION
    assert [group.error_code for group in describe(world, "g")] == [Error.UNSUPPORTED_VERSION]
    other = make_world(**SETTINGS).coordinate()
    lower = m.UpdateFeaturesRequest_FeatureUpdateKey("streams.version", 0, upgrade_type=2)
    assert other.call(m.UpdateFeaturesRequest(feature_updates=[lower])).error_code == 0
    assert join(other).error_code == Error.UNSUPPORTED_VERSION


def test_internal_topics_are_created_with_the_right_of_the_member(make_world):
    world = make_world(
        **SETTINGS,
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:root",
        allow_everyone_if_no_acl_found="true",
    ).coordinate()
    world.create("lines", 2)
    denied = m.AccessControlEntryRecord(
        id=bytes(16),
        resource_type=4,
        resource_name="kafka-cluster",
        pattern_type=3,
        principal="User:nobody",
        host="*",
        operation=5,
        permission_type=3,
    )
    others = m.AccessControlEntryRecord(
        id=bytes([*range(16)]),
        resource_type=2,
        resource_name="app-words-repartition",
        pattern_type=3,
        principal="User:*",
        host="*",
        operation=8,
        permission_type=3,
    )
    for record in (denied, others):
        world.node.cluster.replay(record)
    (told,) = join(world).status
    names = "app-counts-changelog, app-words-repartition"
    assert told.status_detail.endswith(f"; Unauthorized to CREATE on topics {names}.")
    assert "app-counts-changelog" not in world.node.cluster.topics
