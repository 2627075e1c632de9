"""InitializeShareGroupState (key 83), v0: the group coordinator tells where a share partition begins (KIP-932).

Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m


@api(83, versions=(0, 0))
async def initialize_share_group_state(
    node: Node, connection: Connection, request: m.InitializeShareGroupStateRequest, version: int
) -> Answer:
    return await node.share_state.initialize(request)
