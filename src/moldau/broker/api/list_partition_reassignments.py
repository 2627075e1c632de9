"""ListPartitionReassignments (key 46), v0: the moves that have not ended (KIP-455). Null asks for all topics.

What does not exist, or does not move, is not in the answer.
Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.cluster.controller.reassigning import moving
from moldau.wire import messages as m


@api(46, versions=(0, 0))
def list_partition_reassignments(
    node: Node, connection: Connection, request: m.ListPartitionReassignmentsRequest, version: int
) -> Answer:
    known = node.cluster.topics
    if request.topics is None:
        asked = [(name, None) for name in known]
    else:
        asked = [(topic.name, topic.partition_indexes) for topic in request.topics if topic.name in known]
    topics = [
        m.ListPartitionReassignmentsResponse_OngoingTopicReassignment(name, rows)
        for name, indexes in asked
        if (rows := ongoing(known[name], indexes))
    ]
    return m.ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def ongoing(topic: Any, indexes: Sequence[int] | None) -> list[Any]:
    return [
        m.ListPartitionReassignmentsResponse_OngoingPartitionReassignment(
            part.index, list(part.replicas), list(part.adding), list(part.removing)
        )
        for part in moving(topic)
        if indexes is None or part.index in indexes
    ]
