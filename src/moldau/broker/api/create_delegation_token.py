"""CreateDelegationToken (key 38), v1-3: a token by which others act for an authenticated user (KIP-48).

v3 a token for another owner (KIP-373).
Deviates: listeners authenticate nobody yet, so nobody can have a token: the answer is always
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as Kafka's on such a listener.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error

NO_TIME = -1


@api(38, versions=(1, 3))
def create_delegation_token(
    node: Node, connection: Connection, request: m.CreateDelegationTokenRequest, version: int
) -> Answer:
    kind, _, name = connection.principal.partition(":")
    other = request.owner_principal_name
    owner = (request.owner_principal_type or "", other) if other else (kind, name)
    response = m.CreateDelegationTokenResponse(Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, *owner)
    if version >= 3:
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
    response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = NO_TIME
    return response
