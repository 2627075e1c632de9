"""UnregisterBroker (key 64), v0: forget a broker that was taken away for good.

Deviates: a node that is alone does not unregister itself (INVALID_REQUEST). Kafka does so, and its broker then serves
nothing until it is started again.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.cluster.controller.registration import unregister
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(64, versions=(0, 0))
async def unregister_broker(
    node: Node, connection: Connection, request: m.UnregisterBrokerRequest, version: int
) -> Answer:
    broker_id, proposal = request.broker_id, node.metadata.propose()
    if broker_id == node.id and node.quorum is None:
        problem = f"Broker {broker_id} is running; stop it before you unregister it."
        return m.UnregisterBrokerResponse(error_code=Error.INVALID_REQUEST, error_message=problem)
    result = unregister(proposal.image, broker_id, proposal.policy)
    proposal.add(result.records)
    return await proposal.answer(result.response, [result.response])
