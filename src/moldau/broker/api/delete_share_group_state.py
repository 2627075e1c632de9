"""DeleteShareGroupState (key 86), v0: the group coordinator forgets a share partition (KIP-932).

Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m


@api(86, versions=(0, 0))
async def delete_share_group_state(
    node: Node, connection: Connection, request: m.DeleteShareGroupStateRequest, version: int
) -> Answer:
    return await node.share_state.delete(request)
