"""Authentication by SASL: SaslHandshake (key 17), v0-1, and SaslAuthenticate (key 36), v0-2.

The handshake names a mechanism; its v1 wraps the exchange that follows in SaslAuthenticate (KIP-152), whose v1 has the
life of the session (KIP-368).
A connection that has yet to authenticate does not come here: its gate answers (broker/authentication/gate.py). Who has
may do so again, as the same user and with the same mechanism.
Deviates: a SCRAM user who does not exist fails at the end of the exchange, as a wrong password does (Kafka: at once).
SCRAM's extension `m` is refused, as RFC 5802 wants it.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error

OUT_OF_PLACE = "SaslAuthenticate request received after successful authentication"


@api(17, versions=(0, 1))
def shake_hands(node: Node, connection: Connection, request: m.SaslHandshakeRequest, version: int) -> Answer:
    if not connection.mechanism:
        return m.SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE)
    from moldau.broker.authentication.gate import Gate

    return Gate(node, connection).shake_hands(request.mechanism, version)


@api(36, versions=(0, 2))
def authenticate(node: Node, connection: Connection, request: m.SaslAuthenticateRequest, version: int) -> Answer:
    return m.SaslAuthenticateResponse(error_code=Error.ILLEGAL_SASL_STATE, error_message=OUT_OF_PLACE)
