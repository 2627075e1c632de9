"""The voters of the metadata log (KIP-853): AddRaftVoter (key 80), v0-1; RemoveRaftVoter (key 81), v0; and
UpdateRaftVoter (key 82), v0.

In a cluster the leader of the quorum decides: see cluster/voter_changes.py. A node that is alone cannot have another
voter: the answer is REQUEST_TIMED_OUT, as Kafka's where the new voter is not reached. The last voter cannot go: the
answer is VOTER_NOT_FOUND, as Kafka's, for it as for any other.
AddRaftVoter v1 an answer before the change is committed.
Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.features import KRAFT_VERSION
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_ID = bytes(16)


@api(80, versions=(0, 1))
async def add_voter(node: Node, connection: Connection, request: m.AddRaftVoterRequest, version: int) -> Answer:
    return await changed(node, request, m.AddRaftVoterResponse, add_to_one)


@api(81, versions=(0, 0))
async def remove_voter(node: Node, connection: Connection, request: m.RemoveRaftVoterRequest, version: int) -> Answer:
    return await changed(node, request, m.RemoveRaftVoterResponse, remove_from_one)


@api(82, versions=(0, 0))
def update_voter(node: Node, connection: Connection, request: m.UpdateRaftVoterRequest, version: int) -> Answer:
    from moldau.broker.api.quorum import quorum_of

    return quorum_of(node).answer(request)


async def changed(node: Node, request: Any, response: type[Any], alone: Callable[[Node, Any], Refused]) -> Any:
    """Let the quorum change its voters, and answer with the outcome."""
    if node.quorum is None:
        refused = check_voter(node, request) or alone(node, request)
        return response(error_code=refused.error, error_message=refused.message)
    from moldau.broker.api.quorum import quorum_of

    error, message = await quorum_of(node).change_voters(request)
    return response(error_code=error, error_message=error.message if message is None else message)


# A node that is alone.


def check_voter(node: Node, request: Any) -> Refused | None:
    """Check that the request is meant for this cluster, and names a voter."""
    if request.cluster_id is not None and request.cluster_id != node.metadata.cluster_id:
        return Refused(Error.INCONSISTENT_CLUSTER_ID, f"This is cluster {node.metadata.cluster_id}.")
    if request.voter_id < 0 or request.voter_directory_id == NO_ID:
        return Refused(Error.INVALID_REQUEST, "The request names no voter: that is an id and a directory id.")
    return None


def add_to_one(node: Node, request: m.AddRaftVoterRequest) -> Refused:
    known = {endpoint.listener for endpoint in node.cluster.brokers[node.id].endpoints}
    if known.isdisjoint(listener.name for listener in request.listeners):
        return Refused(Error.INVALID_REQUEST, f"The voter has no listener {' or '.join(sorted(known))}.")
    if (fixed := check_dynamic(node)) is not None:
        return fixed
    if request.voter_id == node.id:
        return Refused(Error.DUPLICATE_VOTER, f"Node {node.id} votes already.")
    return Refused(Error.REQUEST_TIMED_OUT, "The new voter does not answer: this cluster has one node.")


def remove_from_one(node: Node, request: m.RemoveRaftVoterRequest) -> Refused:
    return check_dynamic(node) or Refused(Error.VOTER_NOT_FOUND, "The voter is not known, or the last one.")


def check_dynamic(node: Node) -> Refused | None:
    """Refuse a change with kraft.version 0: the voters are then those that the cluster was made with."""
    if node.cluster.features.get(KRAFT_VERSION):
        return None
    return Refused(Error.UNSUPPORTED_VERSION, f"Voters can be changed from {KRAFT_VERSION} 1 on.")
