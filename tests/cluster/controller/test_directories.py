"""AssignReplicasToDirs: where replicas lie, and what happens to those in failed directories."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cluster.controller.directories import assign_directories
from moldau.cluster.controller.result import Result
from moldau.machines.metadata.cluster import Cluster
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.controller.images import EPOCH, TOPIC_ID, add_topic, commit, directory, image_of, policy


def assign(
    image: Cluster, where: bytes, *indexes: int, broker: int = 1, epoch: int = EPOCH + 1, topic_id: bytes = TOPIC_ID
) -> Result:
    rows = [m.AssignReplicasToDirsRequest_PartitionData(index) for index in indexes or (0,)]
    topics = [m.AssignReplicasToDirsRequest_TopicData(topic_id, rows)]
    named = [m.AssignReplicasToDirsRequest_DirectoryData(where, topics)]
    return assign_directories(image, m.AssignReplicasToDirsRequest(broker, epoch, named), policy(image, 2))


def errors(result: Result) -> list[int]:
    return [row.error_code for row in result.response.directories[0].topics[0].partitions]


@pytest.fixture
def image() -> Cluster:
    made = image_of(directories=2)
    add_topic(made, {}, {"replicas": [2, 3]})
    return made


def test_a_replica_lies_where_its_broker_says(image: Cluster) -> None:
    result = assign(image, directory(1, 1))
    part = commit(image, result.records)
    assert part.directories == (directory(1, 1), directory(2), directory(3))
    assert (part.leader, part.leader_epoch, part.partition_epoch) == (1, 4, 10)
    assert errors(result) == [0]


def test_what_is_known_is_not_written_again(image: Cluster) -> None:
    assert assign(image, directory(1)).records == []


def test_a_replica_in_a_failed_directory_is_elected_away(image: Cluster) -> None:
    part = commit(image, assign(image, directory(1, 9)).records)
    assert (part.directories[0], part.leader, part.isr) == (directory(1, 9), 2, (2, 3))


def test_what_is_not_there_or_not_kept_is_refused(image: Cluster) -> None:
    assert errors(assign(image, directory(1, 1), 0, 1, 2)) == [
        Error.NONE,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert errors(assign(image, directory(1, 1), topic_id=bytes([9] * 16))) == [Error.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"epoch": EPOCH}, Error.STALE_BROKER_EPOCH),
        ({"broker": 9}, Error.STALE_BROKER_EPOCH),
    ],
)
def test_another_process_is_refused(image: Cluster, given: dict[str, Any], error: Error) -> None:
    result = assign(image, directory(1, 1), **given)
    assert (result.records, result.response.error_code) == ([], error)


def test_an_old_cluster_has_no_directory_ids() -> None:
    old = image_of(level=16, eligible=False)
    add_topic(old)
    assert assign(old, directory(1)).response.error_code == Error.UNSUPPORTED_VERSION
