"""UnregisterBroker (key 64), v0: forget a broker that was taken away for good.

Deviates: the node does not unregister itself (INVALID_REQUEST). Kafka does so, and its broker then serves nothing
until it is started again.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(64, versions=(0, 0))
async def unregister_broker(
    node: Node, connection: Connection, request: m.UnregisterBrokerRequest, version: int
) -> Answer:
    broker_id = request.broker_id
    proposal = node.metadata.propose()
    if broker_id not in proposal.image.brokers:
        problem = f"No broker {broker_id} is registered."
        return m.UnregisterBrokerResponse(error_code=Error.BROKER_ID_NOT_REGISTERED, error_message=problem)
    if broker_id == node.id:
        problem = f"Broker {broker_id} is running; stop it before you unregister it."
        return m.UnregisterBrokerResponse(error_code=Error.INVALID_REQUEST, error_message=problem)
    proposal.add([m.UnregisterBrokerRecord(broker_id, proposal.image.brokers[broker_id].epoch)])
    response = m.UnregisterBrokerResponse()
    return await proposal.answer(response, [response])
