"""The state of share groups, which the share coordinator keeps for the leaders of share partitions (KIP-932).

InitializeShareGroupState (key 83), v0: the group coordinator says where a share partition begins.
ReadShareGroupState (key 84), v0: the leader of a share partition takes over its state.
WriteShareGroupState (key 85), v0-1: the leader writes down what became of records.
DeleteShareGroupState (key 86), v0: the group coordinator forgets a share partition.
ReadShareGroupStateSummary (key 87), v0-1: where a share partition begins, for those who only look.
v1 has the count of records that are done (KIP-1226).  Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m


@api(83, versions=(0, 0))
async def initialize(
    node: Node, connection: Connection, request: m.InitializeShareGroupStateRequest, version: int
) -> Answer:
    return await node.share_state_here.initialize(request)


@api(84, versions=(0, 0))
async def read(node: Node, connection: Connection, request: m.ReadShareGroupStateRequest, version: int) -> Answer:
    return await node.share_state_here.read(request)


@api(85, versions=(0, 1))
async def write(node: Node, connection: Connection, request: m.WriteShareGroupStateRequest, version: int) -> Answer:
    return await node.share_state_here.write(request)


@api(86, versions=(0, 0))
async def delete(node: Node, connection: Connection, request: m.DeleteShareGroupStateRequest, version: int) -> Answer:
    return await node.share_state_here.delete(request)


@api(87, versions=(0, 1))
async def read_summary(
    node: Node, connection: Connection, request: m.ReadShareGroupStateSummaryRequest, version: int
) -> Answer:
    return await node.share_state_here.read_summary(request)
