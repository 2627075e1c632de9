"""WriteShareGroupState (key 85), v0-1: the leader of a share partition writes down what became of records (KIP-932).

v1 the count of records that are done (KIP-1226).  Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m


@api(85, versions=(0, 1))
async def write_share_group_state(
    node: Node, connection: Connection, request: m.WriteShareGroupStateRequest, version: int
) -> Answer:
    return await node.share_state.write(request)
