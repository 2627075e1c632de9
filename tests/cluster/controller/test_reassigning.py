"""Reassignments: what is refused, and what the partition looks like after replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moldau.cluster.controller import reassigning
from moldau.cluster.controller.reassigning import moving
from moldau.machines.metadata.cluster import Cluster, Partition
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.cluster.controller.images import TOPIC_ID, add_topic, commit, directory, image_of, policy


@pytest.fixture
def cluster() -> Cluster:
    image = image_of()
    add_topic(image, {"replicas": [1, 2]})
    return image


def reassign(image: Cluster, name: str, index: int, target: Sequence[int], may_change_count: bool = True) -> list[Any]:
    return reassigning.reassign(image, policy(image), name, index, target, may_change_count)


def cancel(image: Cluster, name: str = "t", index: int = 0, unclean: bool = False) -> list[Any]:
    return reassigning.cancel(image, policy(image, unclean=unclean), name, index)


def move(image: Cluster, *target: int) -> Partition:
    return commit(image, reassign(image, "t", 0, target))


def refusal(call: Any, *args: Any) -> Error:
    with pytest.raises(Refused) as caught:
        call(*args)
    return caught.value.error


def test_unknown_partitions_are_refused(cluster: Cluster) -> None:
    assert refusal(reassign, cluster, "unknown", 0, [1]) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(reassign, cluster, "t", 1, [1]) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(cancel, cluster, "t", 1) == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("target", [[], [1, 1], [9], [1, 9], [-1]])
def test_impossible_replica_lists_are_refused(cluster: Cluster, target: list[int]) -> None:
    assert refusal(reassign, cluster, "t", 0, target) == Error.INVALID_REPLICA_ASSIGNMENT


def test_a_request_may_forbid_to_change_the_number_of_replicas(cluster: Cluster) -> None:
    assert refusal(reassign, cluster, "t", 0, [1], False) == Error.INVALID_REPLICATION_FACTOR
    assert reassign(cluster, "t", 0, [2, 1], False)


def test_to_stay_where_it_is_needs_no_record(cluster: Cluster) -> None:
    assert reassign(cluster, "t", 0, [1, 2]) == []


def test_a_move_to_replicas_in_sync_is_done_at_once(cluster: Cluster) -> None:
    part = commit(cluster, reassign(cluster, "t", 0, [2]))
    assert (part.replicas, part.isr, part.leader, part.adding, part.removing) == ((2,), (2,), 2, (), ())
    assert part.directories == (directory(2),)


def test_a_move_to_another_broker_is_listed_until_it_ends(cluster: Cluster) -> None:
    part = commit(cluster, reassign(cluster, "t", 0, [3]))
    assert (part.replicas, part.adding, part.removing, part.isr) == ((3, 1, 2), (3,), (1, 2), (1, 2))
    assert part.directories == (directory(3), directory(1), directory(2))
    assert list(moving(cluster.topics["t"])) == [part]


def test_a_cancelled_move_leaves_all_as_it_was(cluster: Cluster) -> None:
    commit(cluster, reassign(cluster, "t", 0, [3]))
    part = commit(cluster, cancel(cluster, "t", 0))
    assert (part.replicas, part.adding, part.removing, part.leader) == ((1, 2), (), (), 1)
    assert refusal(cancel, cluster, "t", 0) == Error.NO_REASSIGNMENT_IN_PROGRESS


def test_a_move_can_be_turned_to_another_place_before_it_ends(cluster: Cluster) -> None:
    commit(cluster, reassign(cluster, "t", 0, [3]))
    part = commit(cluster, reassign(cluster, "t", 0, [1, 3]))
    assert (part.replicas, part.adding, part.removing) == ((1, 3, 2), (3,), (2,))


def test_a_move_back_to_where_it_was_ends_it(cluster: Cluster) -> None:
    move(cluster, 3)
    part = move(cluster, 1, 2)
    assert (part.replicas, part.adding, part.removing, part.isr) == ((1, 2), (), (), (1, 2))


def test_the_end_of_a_move_begins_a_new_epoch_even_if_the_leader_stays(cluster: Cluster) -> None:
    part = move(cluster, 1)
    assert (part.replicas, part.leader, part.leader_epoch) == ((1,), 1, 5)


def test_a_new_order_of_replicas_needs_no_new_epoch(cluster: Cluster) -> None:
    part = move(cluster, 2, 1)
    assert (part.replicas, part.leader, part.leader_epoch, part.partition_epoch) == ((2, 1), 1, 4, 10)
    assert part.directories == (directory(2), directory(1))


def test_a_cancelled_move_may_not_lose_records_unless_the_topic_allows_it(cluster: Cluster) -> None:
    move(cluster, 3)
    cluster.replay(m.PartitionChangeRecord(0, TOPIC_ID, isr=[3], leader=3))
    assert refusal(cancel, cluster) == Error.INVALID_REPLICA_ASSIGNMENT
    part = commit(cluster, cancel(cluster, unclean=True))
    assert (part.replicas, part.isr, part.leader, part.adding) == ((1, 2), (1,), 1, ())
