"""Committed offsets through the node, in all versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error

from ..conftest import FEW, World

NO_ID = bytes(16)
Part = m.OffsetCommitRequest_OffsetCommitRequestPartition


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(**FEW).coordinate()


def commit(world: World, *parts: tuple[int, int], version: int = 9, group: str = "g", **fields: Any) -> list[int]:
    """Commit offsets of partitions of topic t; returns the error codes."""
    topic_id = world.node.cluster.topics["t"].id if "t" in world.node.cluster.topics else NO_ID
    rows = [Part(index, offset, committed_metadata=f"m{offset}") for index, offset in parts]
    named = ("", topic_id) if version >= 10 else ("t", NO_ID)
    topic = m.OffsetCommitRequest_OffsetCommitRequestTopic(*named, rows)
    answer = world.call(m.OffsetCommitRequest(group, topics=[topic], **fields), version)
    return [part.error_code for topic in answer.topics for part in topic.partitions]


def fetch(
    world: World, group: str = "g", version: int = 9, stable: bool = False
) -> dict[tuple[str, int], tuple[int, str]]:
    """All offsets of a group."""
    asked = m.OffsetFetchRequest_OffsetFetchRequestGroup(group, topics=None)
    (answer,) = world.call(m.OffsetFetchRequest(groups=[asked], require_stable=stable), version).groups
    assert answer.error_code == Error.NONE
    return {
        (topic.name, part.partition_index): (part.committed_offset, part.metadata)
        for topic in answer.topics
        for part in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 11))
def test_offsets_are_committed_in_every_version(world: World, version: int) -> None:
    world.create("t", 2)
    assert commit(world, (0, 5), (1, 6), version=version) == [Error.NONE, Error.NONE]
    expected = {("t", 0): (5, "m5"), ("t", 1): (6, "m6")}
    assert fetch(world) == expected
    world.restart(clean=False)
    assert fetch(world) == expected


def test_partitions_that_are_not_there_have_their_errors(world: World) -> None:
    assert commit(world, (0, 1)) == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert commit(world, (0, 1), version=10) == [Error.UNKNOWN_TOPIC_ID]
    world.create("t")
    assert commit(world, (7, 1), (0, 2)) == [Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NONE]
    assert commit(world, (7, 1), version=10) == [Error.UNKNOWN_TOPIC_OR_PARTITION]


def test_commit_of_a_generation_needs_its_group(world: World) -> None:
    world.create("t")
    fields = {"generation_id_or_member_epoch": 1, "member_id": "x"}
    assert commit(world, (0, 1), version=8, **fields) == [Error.ILLEGAL_GENERATION]
    assert commit(world, (0, 1), version=9, **fields) == [Error.GROUP_ID_NOT_FOUND]
    commit(world, (0, 1))
    assert commit(world, (0, 1), **fields) == [Error.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("version", range(1, 8))
def test_offsets_of_one_group_are_fetched_in_older_versions(world: World, version: int) -> None:
    world.create("t", 2)
    commit(world, (0, 5))
    asked = [m.OffsetFetchRequest_OffsetFetchRequestTopic("t", [0, 1, 9])]
    (topic,) = world.call(m.OffsetFetchRequest("g", asked), version).topics
    rows = [(part.partition_index, part.committed_offset, part.error_code) for part in topic.partitions]
    assert rows == [(0, 5, 0), (1, -1, 0), (9, -1, 0)]
    if version >= 2:
        (topic,) = world.call(m.OffsetFetchRequest("g", None), version).topics
        assert [part.partition_index for part in topic.partitions] == [0]


def test_offsets_are_fetched_by_topic_id(world: World) -> None:
    topic_id = world.create("t")
    commit(world, (0, 5), version=10)
    asked = [m.OffsetFetchRequest_OffsetFetchRequestTopics("", wanted, [0]) for wanted in (topic_id, b"x" * 16)]
    group = m.OffsetFetchRequest_OffsetFetchRequestGroup("g", topics=asked)
    (answer,) = world.call(m.OffsetFetchRequest(groups=[group]), 10).groups
    found = [
        (topic.topic_id, part.committed_offset, part.error_code) for topic in answer.topics for part in topic.partitions
    ]
    assert found == [(topic_id, 5, Error.NONE), (b"x" * 16, -1, Error.UNKNOWN_TOPIC_ID)]


def test_several_groups_are_fetched_at_once(world: World) -> None:
    world.create("t")
    for number in range(3):
        commit(world, (0, number), group=f"g{number}")
    groups = [m.OffsetFetchRequest_OffsetFetchRequestGroup(f"g{number}", topics=None) for number in (0, 2, 9)]
    answers = world.call(m.OffsetFetchRequest(groups=groups), 9).groups
    assert [[part.committed_offset for topic in group.topics for part in topic.partitions] for group in answers] == [
        [0],
        [2],
        [],
    ]


def test_offsets_of_a_deleted_topic_are_gone_also_for_its_namesake(world: World) -> None:
    world.create("t")
    commit(world, (0, 5))
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")]))
    assert fetch(world) == {}
    world.create("t")
    assert fetch(world) == {}
    world.restart()
    assert fetch(world) == {}


def test_offsets_are_deleted_one_by_one(world: World) -> None:
    world.create("t", 2)
    commit(world, (0, 5), (1, 6))
    rows = [m.OffsetDeleteRequest_OffsetDeleteRequestPartition(index) for index in (0, 9)]
    asked = m.OffsetDeleteRequest("g", [m.OffsetDeleteRequest_OffsetDeleteRequestTopic("t", rows)])
    (topic,) = world.call(asked).topics
    assert [part.error_code for part in topic.partitions] == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert fetch(world) == {("t", 1): (6, "m6")}
    asked.group_id = "nobody"
    assert world.call(asked).error_code == Error.GROUP_ID_NOT_FOUND


def test_metadata_has_a_limit(world: World) -> None:
    world.create("t")
    row = Part(0, 5, committed_metadata="x" * 4097)
    topic = m.OffsetCommitRequest_OffsetCommitRequestTopic("t", NO_ID, [row])
    (answer,) = world.call(m.OffsetCommitRequest("g", topics=[topic]), 9).topics
    assert answer.partitions[0].error_code == Error.OFFSET_METADATA_TOO_LARGE


def test_commit_too_large_for_a_batch_is_refused_and_the_group_lives(world: World) -> None:
    world.create("t")
    change = m.IncrementalAlterConfigsRequest_AlterableConfig("max.message.bytes", 0, "200")
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(2, "__consumer_offsets", [change])
    world.call(m.IncrementalAlterConfigsRequest([resource]))
    assert commit(world, (0, 5)) == [Error.NONE]
    assert commit(world, *[(0, 5)] * 20) == [Error.UNKNOWN_SERVER_ERROR] * 20
    assert commit(world, (0, 6)) == [Error.NONE]


def test_partition_that_went_offline_is_no_coordinator(world: World) -> None:
    world.create("t")
    assert commit(world, (0, 5)) == [Error.NONE]
    index = world.node.groups.partition_for("g")
    log = world.node.replicas.leader("__consumer_offsets", index).log
    log.fail("the disk is gone")
    assert commit(world, (0, 6)) == [Error.NOT_COORDINATOR]  # as Kafka answers a write that its disk refuses
    assert commit(world, (0, 6)) == [Error.NOT_COORDINATOR]
    (row,) = world.call(m.FindCoordinatorRequest(coordinator_keys=["g"])).coordinators
    assert row.error_code == Error.COORDINATOR_NOT_AVAILABLE
    world.restart(clean=False)
    assert fetch(world) == {("t", 0): (5, "m5")}
