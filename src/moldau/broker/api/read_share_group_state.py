"""ReadShareGroupState (key 84), v0: the leader of a share partition takes over its state (KIP-932).

Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m


@api(84, versions=(0, 0))
async def read_share_group_state(
    node: Node, connection: Connection, request: m.ReadShareGroupStateRequest, version: int
) -> Answer:
    return await node.share_state.read(request)
