"""AddRaftVoter (key 80), v0-1: one more voter for the metadata log (KIP-853).

One node cannot have another voter: the answer is REQUEST_TIMED_OUT, as Kafka's where the new voter is not reached.
v1 an answer before the change is committed.
Deviates: there is no listener for controllers alone, so a voter is expected to name one of this broker's listeners.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.quorum import check_dynamic, check_voter
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(80, versions=(0, 1))
def add_raft_voter(node: Node, connection: Connection, request: m.AddRaftVoterRequest, version: int) -> Answer:
    try:
        check_voter(node, request)
        check_listeners(node, request)
        check_dynamic(node)
        if request.voter_id == node.id:
            raise Refused(Error.DUPLICATE_VOTER, f"Node {node.id} votes already.")
    except Refused as refused:
        return m.AddRaftVoterResponse(error_code=refused.error, error_message=refused.message)
    return m.AddRaftVoterResponse(
        error_code=Error.REQUEST_TIMED_OUT, error_message="The new voter does not answer: this cluster has one node."
    )


def check_listeners(node: Node, request: m.AddRaftVoterRequest) -> None:
    known = {endpoint.listener for endpoint in node.cluster.brokers[node.id].endpoints}
    if known.isdisjoint(listener.name for listener in request.listeners):
        raise Refused(Error.INVALID_REQUEST, f"The voter has no listener {' or '.join(sorted(known))}.")
