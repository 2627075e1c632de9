"""The quorum of the metadata log is this node alone: what the requests that would change it check (KIP-853)."""

from __future__ import annotations

from typing import Any

from moldau.broker.node import Node
from moldau.machines.metadata.features import KRAFT_VERSION
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_ID = bytes(16)


def check_voter(node: Node, request: Any) -> None:
    """Whether the request is meant for this cluster, and names a voter."""
    if request.cluster_id is not None and request.cluster_id != node.metadata.cluster_id:
        raise Refused(Error.INCONSISTENT_CLUSTER_ID, f"This is cluster {node.metadata.cluster_id}.")
    if request.voter_id < 0 or request.voter_directory_id == NO_ID:
        raise Refused(Error.INVALID_REQUEST, "The request names no voter: that is an id and a directory id.")


def check_dynamic(node: Node) -> None:
    """With kraft.version 0 the voters are those that the cluster was made with."""
    if not node.cluster.features.get(KRAFT_VERSION):
        raise Refused(Error.UNSUPPORTED_VERSION, f"Voters can be changed from {KRAFT_VERSION} 1 on.")
