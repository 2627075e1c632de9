"""SaslAuthenticate (key 36), v0-2: a step of an authentication (KIP-152).

v1 life of the session (KIP-368).
Deviates: listeners authenticate nobody yet; the answer is ILLEGAL_SASL_STATE, as Kafka's on a listener without SASL.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error

OUT_OF_PLACE = "SaslAuthenticate has no place here: nothing is left to be authenticated."


@api(36, versions=(0, 2))
def sasl_authenticate(node: Node, connection: Connection, request: m.SaslAuthenticateRequest, version: int) -> Answer:
    return m.SaslAuthenticateResponse(error_code=Error.ILLEGAL_SASL_STATE, error_message=OUT_OF_PLACE)
