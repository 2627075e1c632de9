"""What the voters of the metadata log say to each other, and what its followers ask for besides records:
Vote (key 52), v0-2; BeginQuorumEpoch (key 53), v0-1; EndQuorumEpoch (key 54), v0-1; FetchSnapshot (key 59), v0-1.

Vote: v1 directory ids (KIP-853), v2 pre-votes (KIP-996).  Begin and end of an epoch: v1 addresses and directory ids.
FetchSnapshot: v1 directory id.
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.controller import Controller
from moldau.broker.node import Node
from moldau.broker.quorum import Quorum
from moldau.wire import messages as m


def quorum_of(node: Node) -> Quorum:
    """Return this controller's part in the quorum; only controllers are asked."""
    assert isinstance(node.quorum, Quorum)
    return node.quorum


def controller_of(node: Node) -> Controller:
    """Return the active controller, which this node is: others are not let through."""
    assert node.controller is not None
    return node.controller


@api(52, versions=(0, 2))
def vote(node: Node, connection: Connection, request: m.VoteRequest, version: int) -> Answer:
    return quorum_of(node).answer(request)


@api(53, versions=(0, 1))
def begin_quorum_epoch(node: Node, connection: Connection, request: m.BeginQuorumEpochRequest, version: int) -> Answer:
    return quorum_of(node).answer(request)


@api(54, versions=(0, 1))
def end_quorum_epoch(node: Node, connection: Connection, request: m.EndQuorumEpochRequest, version: int) -> Answer:
    return quorum_of(node).answer(request)


@api(59, versions=(0, 1))
def fetch_snapshot(node: Node, connection: Connection, request: m.FetchSnapshotRequest, version: int) -> Answer:
    return quorum_of(node).answer(request)
