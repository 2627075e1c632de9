"""DescribeCluster (key 60), v0-2: the brokers, the controller and the cluster's id.

v1 endpoint type (KIP-919): a broker answers for brokers only, a controller for controllers only.
v2 fenced brokers, if asked for (KIP-1073).
Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.broker import operations
from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error

BROKERS, CONTROLLERS = 1, 2


@api(60, versions=(0, 2))
def describe_cluster(node: Node, connection: Connection, request: m.DescribeClusterRequest, version: int) -> Answer:
    if connection.is_controller:
        return describe_controllers(node, connection, request)
    if request.endpoint_type == CONTROLLERS:
        problem = "This is an endpoint for clients; it does not describe the controllers."
        return m.DescribeClusterResponse(error_code=Error.MISMATCHED_ENDPOINT_TYPE, error_message=problem)
    if request.endpoint_type != BROKERS:
        problem = f"There is no endpoint type {request.endpoint_type}."
        return m.DescribeClusterResponse(error_code=Error.UNSUPPORTED_ENDPOINT_TYPE, error_message=problem)
    rows = list(brokers(node.cluster, connection.listener, request.include_fenced_brokers))
    response = m.DescribeClusterResponse(
        cluster_id=node.metadata.cluster_id,
        controller_id=node.controller_among([row.broker_id for row in rows if not row.is_fenced]),
        brokers=rows,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = operations.CLUSTER
    return response


def describe_controllers(node: Node, connection: Connection, request: m.DescribeClusterRequest) -> Answer:
    """Describe the voters, by the listener that the client itself uses."""
    from moldau.broker.api.quorum import quorum_of

    if request.endpoint_type != CONTROLLERS:
        known = request.endpoint_type == BROKERS
        problem = "This is an endpoint of a controller; it does not describe the brokers."
        error = Error.MISMATCHED_ENDPOINT_TYPE if known else Error.UNSUPPORTED_ENDPOINT_TYPE
        return m.DescribeClusterResponse(error_code=error, error_message=problem if known else error.message)
    quorum = quorum_of(node)
    found = [(voter.id, where) for voter in quorum.voters if (where := voter.address(connection.listener)) is not None]
    return m.DescribeClusterResponse(
        cluster_id=node.metadata.cluster_id,
        endpoint_type=CONTROLLERS,
        controller_id=quorum.raft.leader_id,
        brokers=[m.DescribeClusterResponse_DescribeClusterBroker(node_id, *where) for node_id, where in found],
    )


def brokers(cluster: Any, listener: str, include_fenced: bool) -> Iterator[Any]:
    """Yield the brokers that can be reached by the listener that the client itself uses."""
    for _, broker in sorted(cluster.brokers.items()):
        endpoint = next((e for e in broker.endpoints if e.listener == listener), None)
        if endpoint is not None and (include_fenced or not broker.fenced):
            row = broker.id, endpoint.host, endpoint.port, broker.rack, broker.fenced
            yield m.DescribeClusterResponse_DescribeClusterBroker(*row)
