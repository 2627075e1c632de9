"""AlterPartition: a leader proposes who is in sync, and the controller agrees or says why not (KIP-497).

Only a broker that is alive and does not shut down joins, and only the very process that has caught up (KIP-841,
KIP-903). What follows from the new ISR, as the end of a reassignment, is written with it; if that gives the lead to
another, the answer says so although the change is made.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from moldau.cluster.controller.changes import Rules, Wanted, change, rules_of
from moldau.cluster.controller.policy import Policy
from moldau.cluster.controller.result import Result, broker_error
from moldau.machines.metadata.cluster import NO_LEADER_CHANGE, RECOVERING, Cluster, Partition, Topic, apply_change
from moldau.wire import messages as m
from moldau.wire.errors import Error

EPOCHS_SINCE = 3  # version of the request
ANY_EPOCH = -1
RECOVERED = 0

Members = list[tuple[int, int]]  # id and broker epoch


def alter_partition(image: Cluster, request: Any, version: int, policy: Policy) -> Result:
    """Answer AlterPartition."""
    if error := broker_error(image, request.broker_id, request.broker_epoch):
        return Result([], m.AlterPartitionResponse(error_code=error))
    rules, records, topics = rules_of(image, policy), list[Any](), list[Any]()
    for asked in request.topics:
        topic = image.topics_by_id.get(bytes(asked.topic_id))
        rows = [
            alter(rules, request.broker_id, topic, one, members_of(one, version), records) for one in asked.partitions
        ]
        topics.append(m.AlterPartitionResponse_TopicData(asked.topic_id, rows))
    return Result(records, m.AlterPartitionResponse(topics=topics))


def members_of(asked: Any, version: int) -> Members:
    """Return the proposed ISR; an old request does not say which process of a broker is meant."""
    if version < EPOCHS_SINCE:
        return [(member, ANY_EPOCH) for member in asked.new_isr]
    return [(member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs]


def alter(rules: Rules, leader: int, topic: Topic | None, asked: Any, members: Members, records: list[Any]) -> Any:
    """Decide on one partition: adds its record, and returns its row."""
    index = asked.partition_index
    if topic is None:
        return m.AlterPartitionResponse_PartitionData(index, Error.UNKNOWN_TOPIC_ID)
    part = topic.partitions.get(index)
    if part is None:
        return m.AlterPartitionResponse_PartitionData(index, Error.UNKNOWN_TOPIC_OR_PARTITION)
    if error := objection(rules.image, leader, part, asked, members):
        return m.AlterPartitionResponse_PartitionData(index, error)
    wanted = Wanted(isr=[member for member, _ in members], recovery_state=asked.leader_recovery_state)
    record = change(rules, topic, part, wanted)
    if record is None:
        return agreed(part)
    records.append(record)
    if record.leader not in (NO_LEADER_CHANGE, leader):
        return m.AlterPartitionResponse_PartitionData(index, Error.NEW_LEADER_ELECTED)
    changed = copy(part)
    apply_change(changed, record)
    return agreed(changed)


def agreed(part: Partition) -> Any:
    return m.AlterPartitionResponse_PartitionData(
        partition_index=part.index,
        leader_id=part.leader,
        leader_epoch=part.leader_epoch,
        isr=list(part.isr),
        leader_recovery_state=part.recovery_state,
        partition_epoch=part.partition_epoch,
    )


def objection(image: Cluster, leader: int, part: Partition, asked: Any, members: Members) -> Error:
    """Say why an ISR cannot be; the checks in Kafka's order.

    A leader that knows of a later epoch asks a controller that has been replaced.
    """
    ids, state = [member for member, _ in members], asked.leader_recovery_state
    if asked.leader_epoch > part.leader_epoch or asked.partition_epoch > part.partition_epoch:
        return Error.NOT_CONTROLLER
    if asked.leader_epoch < part.leader_epoch:
        return Error.FENCED_LEADER_EPOCH
    if leader != part.leader:
        return Error.INVALID_REQUEST
    if asked.partition_epoch < part.partition_epoch:
        return Error.INVALID_UPDATE_VERSION
    if len(set(ids)) != len(ids) or not set(ids) <= set(part.replicas) or leader not in ids:
        return Error.INVALID_REQUEST
    if state not in (RECOVERED, RECOVERING):
        return Error.INVALID_REQUEST
    if state == RECOVERING and (len(ids) > 1 or part.recovery_state != RECOVERING):
        return Error.INVALID_REQUEST
    return Error.NONE if all(is_eligible(image, *member) for member in members) else Error.INELIGIBLE_REPLICA


def is_eligible(image: Cluster, broker_id: int, epoch: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active and epoch in (ANY_EPOCH, broker.epoch)
