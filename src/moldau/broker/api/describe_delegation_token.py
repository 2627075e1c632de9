"""DescribeDelegationToken (key 41), v1-3: the tokens that a user owns or may renew (KIP-48).

v3 who asked for a token (KIP-373).
Deviates: listeners authenticate nobody yet, so nobody can have a token: the answer is always
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as Kafka's on such a listener.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(41, versions=(1, 3))
def describe_delegation_token(
    node: Node, connection: Connection, request: m.DescribeDelegationTokenRequest, version: int
) -> Answer:
    return m.DescribeDelegationTokenResponse(error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
