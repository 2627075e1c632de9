"""The voters of the metadata log (KIP-853): AddRaftVoter (key 80), v0-1, and RemoveRaftVoter (key 81), v0.

The quorum is this node alone. One node cannot have another voter: the answer is REQUEST_TIMED_OUT, as Kafka's where the
new voter is not reached. The last voter cannot go: the answer is VOTER_NOT_FOUND, as Kafka's, for it as for any other.
AddRaftVoter v1 an answer before the change is committed.
Deviates: there is no listener for controllers alone, so a voter is expected to name one of this broker's listeners.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.features import KRAFT_VERSION
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_ID = bytes(16)


@api(80, versions=(0, 1))
def add_voter(node: Node, connection: Connection, request: m.AddRaftVoterRequest, version: int) -> Answer:
    try:
        check_voter(node, request)
        check_listeners(node, request)
        check_dynamic(node)
        if request.voter_id == node.id:
            raise Refused(Error.DUPLICATE_VOTER, f"Node {node.id} votes already.")
        raise Refused(Error.REQUEST_TIMED_OUT, "The new voter does not answer: this cluster has one node.")
    except Refused as refused:
        return m.AddRaftVoterResponse(error_code=refused.error, error_message=refused.message)


@api(81, versions=(0, 0))
def remove_voter(node: Node, connection: Connection, request: m.RemoveRaftVoterRequest, version: int) -> Answer:
    try:
        check_voter(node, request)
        check_dynamic(node)
        raise Refused(Error.VOTER_NOT_FOUND, "The voter is not known, or the last one.")
    except Refused as refused:
        return m.RemoveRaftVoterResponse(error_code=refused.error, error_message=refused.message)


def check_voter(node: Node, request: m.AddRaftVoterRequest | m.RemoveRaftVoterRequest) -> None:
    """Check that the request is meant for this cluster, and names a voter."""
    if request.cluster_id is not None and request.cluster_id != node.metadata.cluster_id:
        raise Refused(Error.INCONSISTENT_CLUSTER_ID, f"This is cluster {node.metadata.cluster_id}.")
    if request.voter_id < 0 or request.voter_directory_id == NO_ID:
        raise Refused(Error.INVALID_REQUEST, "The request names no voter: that is an id and a directory id.")


def check_listeners(node: Node, request: m.AddRaftVoterRequest) -> None:
    known = {endpoint.listener for endpoint in node.cluster.brokers[node.id].endpoints}
    if known.isdisjoint(listener.name for listener in request.listeners):
        raise Refused(Error.INVALID_REQUEST, f"The voter has no listener {' or '.join(sorted(known))}.")


def check_dynamic(node: Node) -> None:
    """Refuse a change with kraft.version 0: the voters are then those that the cluster was made with."""
    if not node.cluster.features.get(KRAFT_VERSION):
        raise Refused(Error.UNSUPPORTED_VERSION, f"Voters can be changed from {KRAFT_VERSION} 1 on.")
