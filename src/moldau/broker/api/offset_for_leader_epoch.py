"""OffsetForLeaderEpoch (key 23), v2-4: where a leader epoch ended, so that a reader finds out what was truncated.

v3 replica id, which decides whether uncommitted offsets are told (consumers send it as -1 since KIP-320).
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(23, versions=(2, 4))
def offset_for_leader_epoch(
    node: Node, connection: Connection, request: m.OffsetForLeaderEpochRequest, version: int
) -> Answer:
    topics = [
        m.OffsetForLeaderEpochResponse_OffsetForLeaderTopicResult(
            topic.topic, [end_of(node, topic.topic, part) for part in topic.partitions]
        )
        for topic in request.topics
    ]
    return m.OffsetForLeaderEpochResponse(topics=topics)


def end_of(node: Node, topic: str, part: Any) -> Any:
    answer = m.OffsetForLeaderEpochResponse_EpochEndOffset(partition=part.partition)
    try:
        partition = node.replicas.leader(topic, part.partition)
        answer.error_code = partition.leader_error(part.current_leader_epoch)
        if answer.error_code == Error.NONE:
            partition.begin_epoch()
            answer.leader_epoch, answer.end_offset = partition.log.end_offset_for_epoch(part.leader_epoch)
    except Refused as refused:
        answer.error_code = refused.error
    return answer
