"""AlterPartitionReassignments (key 45), v0-1: move partitions to other brokers, or (null) cancel a move (KIP-455).

With one node the only place to be is this node, so a valid request changes nothing and succeeds.
v1 may forbid that the number of replicas changes (KIP-860).
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import api
from moldau.machines.metadata.placement import cancel, reassign
from moldau.machines.result import Result
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(45, versions=(0, 1))
def alter_partition_reassignments(node, connection, request, version):
    if not request.topics:
        return m.AlterPartitionReassignmentsResponse()
    may_change_count = request.allow_replication_factor_change
    records: list[Any] = []
    rows = [
        m.AlterPartitionReassignmentsResponse_ReassignableTopicResponse(
            topic.name, [alter(node, topic.name, part, may_change_count, records) for part in topic.partitions]
        )
        for topic in request.topics
    ]
    response = m.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_count, error_message=None, responses=rows
    )
    return node.commit(Result(tuple(records), response))


def alter(node: Any, name: str, asked: Any, may_change_count: bool, records: list[Any]) -> Any:
    """The row of one partition; its records join those that are committed together."""
    index, target = asked.partition_index, asked.replicas
    try:
        if target is None:
            records += cancel(node.cluster, name, index).records
        else:
            records += reassign(node.cluster, name, index, target, may_change_count).records
    except Refused as refused:
        row = index, refused.error, refused.message
        return m.AlterPartitionReassignmentsResponse_ReassignablePartitionResponse(*row)
    return m.AlterPartitionReassignmentsResponse_ReassignablePartitionResponse(index, error_message=None)
