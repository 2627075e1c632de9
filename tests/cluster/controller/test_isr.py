"""AlterPartition: which ISR a leader may propose, and what the answer says."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cluster.controller.isr import alter_partition
from moldau.cluster.controller.result import Result
from moldau.machines.metadata.cluster import Cluster
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.controller.images import EPOCH, TOPIC_ID, add_topic, commit, image_of, policy


def image_with(**placed: Any) -> Cluster:
    image = image_of(range(1, 7), fenced=(4,), stopping=(5,))
    add_topic(image, {"replicas": [1, 2, 3, 4, 5], "isr": [1, 2]} | placed)
    return image


def propose(
    image: Cluster,
    isr: list[int],
    broker: int = 1,
    broker_epoch: int | None = None,
    topic_id: bytes = TOPIC_ID,
    epochs: dict[int, int] | None = None,
    version: int = 3,
    **other: Any,
) -> Result:
    known = {one: EPOCH + one for one in range(1, 7)} | (epochs or {})
    members = [m.AlterPartitionRequest_BrokerState(one, known[one]) for one in isr]
    fields = {"partition_index": 0, "leader_epoch": 4, "partition_epoch": 9, "leader_recovery_state": 0} | other
    row = m.AlterPartitionRequest_PartitionData(new_isr=isr, new_isr_with_epochs=members, **fields)
    epoch = EPOCH + broker if broker_epoch is None else broker_epoch
    request = m.AlterPartitionRequest(broker, epoch, [m.AlterPartitionRequest_TopicData(topic_id, [row])])
    return alter_partition(image, request, version, policy(image, 2))


def error_of(result: Result) -> Error:
    return Error(result.response.error_code or result.response.topics[0].partitions[0].error_code)


def test_an_isr_is_agreed_to() -> None:
    image = image_with()
    result = propose(image, [1, 2, 3])
    row = result.response.topics[0].partitions[0]
    part = commit(image, result.records)
    assert part.isr == (1, 2, 3)
    assert (row.leader_id, row.isr, row.leader_epoch, row.partition_epoch) == (1, [1, 2, 3], 4, 10)


def test_the_same_isr_again_is_no_change() -> None:
    result = propose(image_with(), [1, 2])
    row = result.response.topics[0].partitions[0]
    assert (result.records, row.error_code, row.isr, row.partition_epoch) == ([], 0, [1, 2], 9)


def test_a_smaller_isr_makes_who_leaves_eligible() -> None:
    image = image_with()
    part = commit(image, propose(image, [1]).records)
    assert (part.isr, part.eligible_leaders) == ((1,), (2,))


@pytest.mark.parametrize(
    ("isr", "other", "error"),
    [
        ([1], {"broker_epoch": EPOCH}, Error.STALE_BROKER_EPOCH),
        ([1], {"broker": 9, "broker_epoch": 5}, Error.STALE_BROKER_EPOCH),
        ([1], {"topic_id": bytes([9] * 16)}, Error.UNKNOWN_TOPIC_ID),
        ([1], {"topic_id": bytes(16)}, Error.UNKNOWN_TOPIC_ID),
        ([1], {"partition_index": 1}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ([1], {"leader_epoch": 5}, Error.NOT_CONTROLLER),
        ([1], {"partition_epoch": 10, "leader_epoch": 3}, Error.NOT_CONTROLLER),
        ([1], {"leader_epoch": 3}, Error.FENCED_LEADER_EPOCH),
        ([2], {"broker": 2, "partition_epoch": 8}, Error.INVALID_REQUEST),
        ([1], {"partition_epoch": 8}, Error.INVALID_UPDATE_VERSION),
        ([1, 2, 2], {}, Error.INVALID_REQUEST),
        ([1, 6], {}, Error.INVALID_REQUEST),
        ([2, 3], {}, Error.INVALID_REQUEST),
        ([], {}, Error.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 1}, Error.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 7}, Error.INVALID_REQUEST),
        ([1, 4], {}, Error.INELIGIBLE_REPLICA),
        ([1, 5], {}, Error.INELIGIBLE_REPLICA),
        ([1, 3], {"epochs": {3: EPOCH}}, Error.INELIGIBLE_REPLICA),
        ([1, 3], {"epochs": {3: -1}}, Error.NONE),
        ([1, 3], {"epochs": {3: EPOCH}, "version": 2}, Error.NONE),
    ],
)
def test_what_cannot_be_is_refused(isr: list[int], other: dict[str, Any], error: Error) -> None:
    result = propose(image_with(), isr, **other)
    assert error_of(result) == error
    assert bool(result.records) is (error == Error.NONE)


def test_a_leader_in_recovery_is_alone_until_it_has_recovered() -> None:
    image = image_with(isr=[1], leader_recovery_state=1)
    assert error_of(propose(image, [1, 2], leader_recovery_state=1)) == Error.INVALID_REQUEST
    assert error_of(propose(image, [1], leader_recovery_state=1)) == Error.NONE
    result = propose(image, [1, 2])
    assert result.response.topics[0].partitions[0].leader_recovery_state == 0
    assert commit(image, result.records).recovery_state == 0


def test_a_move_that_ends_by_it_may_give_the_lead_to_another() -> None:
    image = image_with(replicas=[3, 2, 1], isr=[1, 2], leader=1, adding_replicas=[3], removing_replicas=[1])
    result = propose(image, [1, 2, 3])
    assert error_of(result) == Error.NEW_LEADER_ELECTED
    part = commit(image, result.records)
    assert (part.leader, part.replicas, part.isr, part.removing) == (3, (3, 2), (2, 3), ())


def test_a_move_that_ends_by_it_may_leave_the_leader() -> None:
    image = image_with(replicas=[3, 1, 2], isr=[1, 2], leader=1, adding_replicas=[3], removing_replicas=[2])
    row = propose(image, [1, 2, 3]).response.topics[0].partitions[0]
    assert (row.error_code, row.leader_id, row.leader_epoch, row.isr) == (0, 1, 5, [1, 3])


def test_a_leader_that_is_about_to_stop_proposes_nobody_with_itself() -> None:
    image = image_of(stopping=(1,))
    add_topic(image)
    assert error_of(propose(image, [1, 2])) == Error.INELIGIBLE_REPLICA
