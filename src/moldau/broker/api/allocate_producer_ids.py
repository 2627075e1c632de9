"""AllocateProducerIds (key 67), v0: a block of producer ids for a broker (KIP-730).

Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.api.quorum import controller_of
from moldau.broker.node import Node
from moldau.cluster.controller.producer_ids import allocate_producer_ids
from moldau.wire import messages as m


@api(67, versions=(0, 0))
async def allocate(node: Node, connection: Connection, request: m.AllocateProducerIdsRequest, version: int) -> Answer:
    return await controller_of(node).decide(lambda proposal, _: allocate_producer_ids(proposal.image, request))
