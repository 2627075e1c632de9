"""ReadShareGroupStateSummary (key 87), v0-1: where a share partition begins, for those who only look (KIP-932).

v1 the count of records that are done (KIP-1226).  Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m


@api(87, versions=(0, 1))
async def read_share_group_state_summary(
    node: Node, connection: Connection, request: m.ReadShareGroupStateSummaryRequest, version: int
) -> Answer:
    return await node.share_state.read_summary(request)
