"""SaslHandshake (key 17), v0-1: which mechanism a client will authenticate with.

v1 the exchange that follows is wrapped in SaslAuthenticate (KIP-152).
Deviates: listeners authenticate nobody yet; the answer is ILLEGAL_SASL_STATE, as Kafka's on a listener without SASL.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(17, versions=(0, 1))
def sasl_handshake(node: Node, connection: Connection, request: m.SaslHandshakeRequest, version: int) -> Answer:
    return m.SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE)
