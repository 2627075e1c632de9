"""RenewDelegationToken (key 39), v1-2: a longer life for a token (KIP-48).

v2 is flexible.
Deviates: listeners authenticate nobody yet, so nobody can have a token: the answer is always
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as Kafka's on such a listener.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(39, versions=(1, 2))
def renew_delegation_token(
    node: Node, connection: Connection, request: m.RenewDelegationTokenRequest, version: int
) -> Answer:
    return m.RenewDelegationTokenResponse(error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1)
