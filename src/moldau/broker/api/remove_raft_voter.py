"""RemoveRaftVoter (key 81), v0: one voter less for the metadata log (KIP-853).

The last voter cannot go: the answer is VOTER_NOT_FOUND, as Kafka's, for it as for any other.
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.quorum import check_dynamic, check_voter
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(81, versions=(0, 0))
def remove_raft_voter(node: Node, connection: Connection, request: m.RemoveRaftVoterRequest, version: int) -> Answer:
    try:
        check_voter(node, request)
        check_dynamic(node)
    except Refused as refused:
        return m.RemoveRaftVoterResponse(error_code=refused.error, error_message=refused.message)
    reason = "The voter is not known, or the last one."
    return m.RemoveRaftVoterResponse(error_code=Error.VOTER_NOT_FOUND, error_message=reason)
