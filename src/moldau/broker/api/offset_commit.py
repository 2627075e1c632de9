"""OffsetCommit (key 8), v2-10: how far a group has read.

v2-4 retention time.  v6 leader epochs (KIP-320).  v7 static members (KIP-345).  v9 member epochs (KIP-848).
v10 topic ids.
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines import offsets
from moldau.machines.effects import Effects, Promise
from moldau.machines.offsets import AnyRow
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

BY_ID = 10
RETENTION_UNTIL = 4


@api(8, versions=(2, 10))
def offset_commit(node: Node, connection: Connection, request: m.OffsetCommitRequest, version: int) -> Answer:
    topics, rows, slots = sort_out(node, request, version)
    response = m.OffsetCommitResponse(topics=topics)

    def refuse(error: Error) -> object:
        for slot in slots:
            slot.error_code = error
        return response

    if not rows:
        return response
    member = request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
    retention = request.retention_time_ms if version <= RETENTION_UNTIL else -1
    try:
        index, machine = node.groups.of(request.group_id)
        now = node.clock.wall_ms()
        commit = offsets.commit(machine, request.group_id, member, rows, now, version=version, retention_ms=retention)
    except Refused as refused:
        return refuse(refused.error)
    if any(commit.errors):
        for slot, error in zip(slots, commit.errors, strict=True):
            slot.error_code = error
    promise = Promise(refuse)
    return node.groups.ask(index, promise, Effects(commit.changes, [(promise, response)]))


def sort_out(node: Node, request: m.OffsetCommitRequest, version: int) -> tuple[list[Any], list[AnyRow], list[Any]]:
    """Return the answer's topics, the partitions that exist and their places in the answer, in request order."""
    topics: list[Any] = []
    rows: list[AnyRow] = []
    slots: list[Any] = []
    for asked in request.topics:
        if not asked.partitions:
            continue
        answers: list[Any] = []
        topics.append(m.OffsetCommitResponse_OffsetCommitResponseTopic(asked.name, asked.topic_id, answers))
        topic = node.cluster.topic(None if version >= BY_ID else asked.name, asked.topic_id)
        missing = Error.UNKNOWN_TOPIC_ID if version >= BY_ID else Error.UNKNOWN_TOPIC_OR_PARTITION
        for part in asked.partitions:
            answer = m.OffsetCommitResponse_OffsetCommitResponsePartition(part.partition_index)
            answers.append(answer)
            if topic is None:
                answer.error_code = missing
            elif part.partition_index not in topic.partitions:
                answer.error_code = Error.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offset = part.committed_offset, part.committed_leader_epoch, part.committed_metadata
                rows.append((topic.name, topic.id, part.partition_index, *offset))
                slots.append(answer)
    return topics, rows, slots
