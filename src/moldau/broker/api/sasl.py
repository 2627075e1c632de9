"""Authentication by SASL: SaslHandshake (key 17), v0-1, and SaslAuthenticate (key 36), v0-2.

The handshake names a mechanism; its v1 wraps the exchange that follows in SaslAuthenticate (KIP-152), whose v1 has the
life of the session (KIP-368).
Deviates: listeners authenticate nobody yet; the answer is ILLEGAL_SASL_STATE, as Kafka's on a listener without SASL.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error

OUT_OF_PLACE = "SaslAuthenticate has no place here: nothing is left to be authenticated."


@api(17, versions=(0, 1))
def shake_hands(node: Node, connection: Connection, request: m.SaslHandshakeRequest, version: int) -> Answer:
    return m.SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE)


@api(36, versions=(0, 2))
def authenticate(node: Node, connection: Connection, request: m.SaslAuthenticateRequest, version: int) -> Answer:
    return m.SaslAuthenticateResponse(error_code=Error.ILLEGAL_SASL_STATE, error_message=OUT_OF_PLACE)
