"""AlterPartitionReassignments (key 45), v0-1: move partitions to other brokers, or (null) cancel a move (KIP-455).

With one node the only place to be is this node, so a valid request changes nothing and succeeds.
v1 may forbid that the number of replicas changes (KIP-860).
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.metadata import Proposal
from moldau.broker.node import Node
from moldau.cluster.controller.reassigning import cancel, reassign
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(45, versions=(0, 1))
async def alter_partition_reassignments(
    node: Node, connection: Connection, request: m.AlterPartitionReassignmentsRequest, version: int
) -> Answer:
    if not request.topics:
        return m.AlterPartitionReassignmentsResponse()
    may_change_count = request.allow_replication_factor_change
    proposal = node.metadata.propose()
    rows = [
        m.AlterPartitionReassignmentsResponse_ReassignableTopicResponse(
            topic.name, [alter(proposal, topic.name, part, may_change_count) for part in topic.partitions]
        )
        for topic in request.topics
    ]
    response = m.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_count, error_message=None, responses=rows
    )
    return await proposal.answer(response, [part for row in rows for part in row.partitions])


def alter(proposal: Proposal, name: str, asked: Any, may_change_count: bool) -> Any:
    """Move one partition, or cancel its move; returns its row."""
    index, target = asked.partition_index, asked.replicas
    try:
        if target is None:
            proposal.add(cancel(proposal.image, proposal.policy, name, index))
        else:
            proposal.add(reassign(proposal.image, proposal.policy, name, index, target, may_change_count))
    except Refused as refused:
        row = index, refused.error, refused.message
        return m.AlterPartitionReassignmentsResponse_ReassignablePartitionResponse(*row)
    return m.AlterPartitionReassignmentsResponse_ReassignablePartitionResponse(index, error_message=None)
