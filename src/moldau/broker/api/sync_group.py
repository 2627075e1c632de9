"""SyncGroup (key 14), v0-5: a member's assignment; the leader brings those of all.

v3 static members (KIP-345).  v5 protocol type and name (KIP-559).
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import ask_member
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error

WITH_PROTOCOL = 5


@api(14, versions=(0, 5))
def sync_group(node: Node, connection: Connection, request: m.SyncGroupRequest, version: int) -> Answer:
    def refuse(error: Error) -> object:
        return m.SyncGroupResponse(error_code=error)

    if version >= WITH_PROTOCOL and (request.protocol_type is None or request.protocol_name is None):
        return refuse(Error.INCONSISTENT_GROUP_PROTOCOL)
    return ask_member(node, connection, request, version, lambda kind: kind.sync, refuse)
