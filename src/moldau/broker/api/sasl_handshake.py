"""SaslHandshake (key 17), v0-1: which mechanism a client will authenticate with.

v1 the exchange that follows is wrapped in SaslAuthenticate (KIP-152).
Deviates: listeners authenticate nobody yet; the answer is ILLEGAL_SASL_STATE, as Kafka's on a listener without SASL.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(17, versions=(0, 1))
def sasl_handshake(node, connection, request, version):
    return m.SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE)
