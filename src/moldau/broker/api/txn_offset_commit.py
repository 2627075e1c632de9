"""TxnOffsetCommit (key 28), v0-5: how far a group has read, valid when the producer's transaction commits.

v2 leader epochs (KIP-320).  v3 member, instance and generation (KIP-447).  v4 TRANSACTION_ABORTABLE (KIP-890).
v5 transactions version 2: the commit makes the group part of the transaction.
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.admission import admit
from moldau.broker.api import Answer, Connection, api
from moldau.broker.coordinators import ELSEWHERE
from moldau.broker.node import Node
from moldau.machines.effects import Effects, Producer, Promise
from moldau.machines.offsets import NO_TOPIC_ID, Commit, Row, commit_transactional
from moldau.machines.transactions import Identity
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

KNOWS_ABORTABLE, ADDS_PARTITIONS = 4, 5


@api(28, versions=(0, 5))
async def txn_offset_commit(
    node: Node, connection: Connection, request: m.TxnOffsetCommitRequest, version: int
) -> Answer:
    topics, rows, slots = sort_out(node, request)
    response = m.TxnOffsetCommitResponse(topics=topics)

    def refuse(error: Error) -> object:
        for slot in slots:
            slot.error_code = error
        return response

    if not rows:
        return response
    try:
        index, machine = await reach(node, request, version)
        member = request.member_id, request.group_instance_id, request.generation_id
        now = node.clock.wall_ms()
        commit: Commit = commit_transactional(machine, request.group_id, member, rows, now, version=version)
    except Refused as refused:
        return refuse(refused.error)
    for slot, error in zip(slots, commit.errors, strict=True):
        slot.error_code = error
    promise = Promise(refuse)
    producer = Producer(request.producer_id, request.producer_epoch)
    return await node.groups.start(index, promise, Effects(commit.changes, [(promise, response)], producer))


async def reach(node: Node, request: m.TxnOffsetCommitRequest, version: int) -> tuple[int, Any]:
    """Return the group's machine, once the transaction is known to include its partition; raises Refused."""
    if not request.group_id:
        raise Refused(Error.INVALID_GROUP_ID, "The group id is empty.")
    index = node.groups.partition_for(request.group_id)
    home = node.groups.home(index)
    producer = Identity(request.producer_id, request.producer_epoch)
    adds, knows_abortable = version >= ADDS_PARTITIONS, version >= KNOWS_ABORTABLE
    errors = await admit(node, request.transactional_id, producer, [home], adds, knows_abortable)
    for error in errors.values():
        raise Refused(Error.NOT_COORDINATOR if error in ELSEWHERE else error, error.message)
    return index, node.groups.machine(index)


def sort_out(node: Node, request: m.TxnOffsetCommitRequest) -> tuple[list[Any], list[Row], list[Any]]:
    """Return the answer's topics, the partitions that exist and their places in the answer, in request order."""
    topics: list[Any] = []
    rows: list[Row] = []
    slots: list[Any] = []
    for asked in request.topics:
        topic = node.cluster.topics.get(asked.name)
        answers: list[Any] = []
        topics.append(m.TxnOffsetCommitResponse_TxnOffsetCommitResponseTopic(asked.name, answers))
        for part in asked.partitions:
            answer = m.TxnOffsetCommitResponse_TxnOffsetCommitResponsePartition(part.partition_index)
            answers.append(answer)
            if topic is None or part.partition_index not in topic.partitions:
                answer.error_code = Error.UNKNOWN_TOPIC_OR_PARTITION
                continue
            offset = part.committed_offset, part.committed_leader_epoch
            rows.append(Row(asked.name, NO_TOPIC_ID, part.partition_index, *offset, part.committed_metadata))
            slots.append(answer)
    return topics, rows, slots
