"""Delegation tokens, by which others act for an authenticated user (KIP-48).

CreateDelegationToken (key 38), v1-3. v3 a token for another owner (KIP-373).  RenewDelegationToken (key 39), v1-2: a
longer life for a token.  ExpireDelegationToken (key 40), v1-2: a shorter one.  DescribeDelegationToken (key 41), v1-3:
the tokens that a user owns or may renew. v3 who asked for a token (KIP-373).
Deviates: listeners authenticate nobody yet, so nobody can have a token: the answer is always
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as Kafka's on such a listener.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error

NOT_ALLOWED = Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
NO_TIME = -1


@api(38, versions=(1, 3))
def create(node: Node, connection: Connection, request: m.CreateDelegationTokenRequest, version: int) -> Answer:
    kind, _, name = connection.principal.partition(":")
    other = request.owner_principal_name
    owner = (request.owner_principal_type or "", other) if other else (kind, name)
    response = m.CreateDelegationTokenResponse(NOT_ALLOWED, *owner)
    if version >= 3:
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
    response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = NO_TIME
    return response


@api(39, versions=(1, 2))
def renew(node: Node, connection: Connection, request: m.RenewDelegationTokenRequest, version: int) -> Answer:
    return m.RenewDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=NO_TIME)


@api(40, versions=(1, 2))
def expire(node: Node, connection: Connection, request: m.ExpireDelegationTokenRequest, version: int) -> Answer:
    return m.ExpireDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=NO_TIME)


@api(41, versions=(1, 3))
def describe(node: Node, connection: Connection, request: m.DescribeDelegationTokenRequest, version: int) -> Answer:
    return m.DescribeDelegationTokenResponse(error_code=NOT_ALLOWED)
