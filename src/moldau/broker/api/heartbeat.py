"""Heartbeat (key 12), v0-4: a member of a classic group is alive, and learns whether to join again.

v3 static members (KIP-345).
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import ask_member
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error

LOADING = Error.COORDINATOR_LOAD_IN_PROGRESS


@api(12, versions=(0, 4))
def heartbeat(node: Node, connection: Connection, request: m.HeartbeatRequest, version: int) -> Answer:
    def refuse(error: Error) -> object:
        # While groups are loaded a member lives: an error would only make it join again.
        return m.HeartbeatResponse(error_code=Error.NONE if error is LOADING else error)

    return ask_member(node, connection, request, version, lambda kind: kind.heartbeat, refuse)
