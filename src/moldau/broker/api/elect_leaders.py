"""ElectLeaders (key 43), v0-2: give partitions their preferred leader, or any leader.

Null asks for all partitions; those that need no election are then left out of the answer, their topics are not.
v1 election type: preferred 0, unclean 1 (KIP-460), and a code for the whole request.
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.metadata import Proposal
from moldau.broker.node import Node
from moldau.cluster.controller.elections import PREFERRED, UNCLEAN, elect_leader
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(43, versions=(0, 2))
async def elect_leaders(node: Node, connection: Connection, request: m.ElectLeadersRequest, version: int) -> Answer:
    asked = request.topic_partitions
    if asked is not None and not asked:
        return m.ElectLeadersResponse()
    if request.election_type not in (PREFERRED, UNCLEAN):
        return unknown_type(request)
    proposal = node.metadata.propose()
    if asked is None:
        topics = [(topic.name, sorted(topic.partitions)) for topic in proposal.image.topics.values()]
    else:
        topics = [(topic.topic, topic.partitions) for topic in asked]
    results = []
    for name, indexes in topics:
        rows = [elect(proposal, name, index, request.election_type) for index in indexes]
        if asked is None:
            rows = [row for row in rows if row.error_code != Error.ELECTION_NOT_NEEDED]
        results.append(m.ElectLeadersResponse_ReplicaElectionResult(name, rows))
    response = m.ElectLeadersResponse(replica_election_results=results)
    return await proposal.answer(response, [row for result in results for row in result.partition_result])


def elect(proposal: Proposal, name: str, index: int, kind: int) -> Any:
    """Elect the leader of one partition; returns its row."""
    try:
        proposal.add(elect_leader(proposal.image, proposal.policy, name, index, kind))
    except Refused as refused:
        return m.ElectLeadersResponse_PartitionResult(index, refused.error, refused.message)
    return m.ElectLeadersResponse_PartitionResult(index, error_message=None)


def unknown_type(request: m.ElectLeadersRequest) -> Any:
    error, problem = Error.INVALID_REQUEST, f"There is no election type {request.election_type}."
    results = [
        m.ElectLeadersResponse_ReplicaElectionResult(
            topic.topic, [m.ElectLeadersResponse_PartitionResult(index, error, problem) for index in topic.partitions]
        )
        for topic in request.topic_partitions or ()
    ]
    return m.ElectLeadersResponse(error_code=error, replica_election_results=results)
