"""Delegation tokens, by which others act for an authenticated user (KIP-48).

CreateDelegationToken (key 38), v1-3. v3 a token for another owner (KIP-373).  RenewDelegationToken (key 39), v1-2: a
longer life for a token.  ExpireDelegationToken (key 40), v1-2: a shorter one.  DescribeDelegationToken (key 41), v1-3:
the tokens that a user owns or may renew. v3 who asked for a token (KIP-373).
Who has not authenticated, or did so by a token, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, from the broker that was
asked: a controller does not know how the client came.
Deviates: nothing known.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.connection import ANONYMOUS
from moldau.broker.node import Node
from moldau.broker.tokens import SECRET, hmac_of
from moldau.machines.metadata import acls, tokens
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_TIME = -1


@api(38, versions=(1, 3))
async def create(node: Node, connection: Connection, request: m.CreateDelegationTokenRequest, version: int) -> Answer:
    kind, name = owner_of(connection, request)
    response = m.CreateDelegationTokenResponse(Error.NONE, kind, name)
    if version >= 3:
        asker = connection.principal.partition(":")
        response.token_requester_principal_type, response.token_requester_principal_name = asker[0], asker[2]
    response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = NO_TIME
    token_id = urlsafe_b64encode(node.random.randbytes(16)).rstrip(b"=").decode()
    renewers = [(one.principal_type, one.principal_name) for one in request.renewers]
    try:
        check_asker(node, connection, request)
        secret = secret_of(node)
        now = node.clock.wall_ms()
        token = tokens.create(
            token_id, f"{kind}:{name}", connection.principal, renewers, request.max_lifetime_ms, limits(node), now
        )
    except Refused as refused:
        response.error_code = refused.error
        return response
    proposal = node.metadata.propose()
    proposal.add([token])
    response.error_code = await proposal.commit()
    if not response.error_code:
        response.issue_timestamp_ms, response.max_timestamp_ms = token.issue_timestamp, token.max_timestamp
        response.expiry_timestamp_ms, response.token_id = token.expiration_timestamp, token_id
        response.hmac = hmac_of(secret, token_id)
    return response


@api(39, versions=(1, 2))
async def renew(node: Node, connection: Connection, request: m.RenewDelegationTokenRequest, version: int) -> Answer:
    def decide(token: Any, now: int) -> tuple[Any, int]:
        record = tokens.renew(token, connection.principal, request.renew_period_ms, limits(node), now)
        return record, record.expiration_timestamp

    if (early := refuse_early(node, connection, request, version)) is not None:
        return early
    return await change(node, bytes(request.hmac), m.RenewDelegationTokenResponse(), decide)


@api(40, versions=(1, 2))
async def expire(node: Node, connection: Connection, request: m.ExpireDelegationTokenRequest, version: int) -> Answer:
    def decide(token: Any, now: int) -> tuple[Any, int]:
        return tokens.expire(token, connection.principal, request.expiry_time_period_ms, now)

    if (early := refuse_early(node, connection, request, version)) is not None:
        return early
    return await change(node, bytes(request.hmac), m.ExpireDelegationTokenResponse(), decide)


async def change(node: Node, shown: bytes, response: Any, decide: Callable[[Any, int], tuple[Any, int]]) -> Answer:
    """Find a token, decide what becomes of it (a record, and when it ends), and answer when that is committed."""
    try:
        proposal = node.metadata.propose()
        token = find(node, proposal.image.tokens, shown)
        record, ends = decide(token, node.clock.wall_ms())
    except Refused as refused:
        response.error_code = refused.error
        return response
    proposal.add([record])
    response.error_code = await proposal.commit()
    if not response.error_code:
        response.expiry_timestamp_ms = ends
    return response


@api(41, versions=(1, 3))
def describe(node: Node, connection: Connection, request: m.DescribeDelegationTokenRequest, version: int) -> Answer:
    try:
        check_asker(node, connection)
        secret = secret_of(node)
    except Refused as refused:
        return m.DescribeDelegationTokenResponse(error_code=refused.error)
    owners = request.owners
    wanted = None if owners is None else {f"{one.principal_type}:{one.principal_name}" for one in owners}
    rows = [
        row_of(token, secret, version)
        for token in node.cluster.tokens.values()
        if (wanted is None or token.owner in wanted) and may_see(node, connection, token)
    ]
    return m.DescribeDelegationTokenResponse(tokens=rows)


def check_asker(node: Node, connection: Connection, request: Any = None) -> None:
    """Refuse those who may not ask for tokens; on a controller the broker has done so that forwards for them."""
    if connection.is_controller:
        return
    if connection.principal == ANONYMOUS or connection.by_token:
        raise tokens.refused(Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if request is not None:
        owner = ":".join(owner_of(connection, request))
        if owner != connection.principal and not node.may(connection, acls.CREATE_TOKENS, acls.USER, owner):
            raise tokens.refused(Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED)


def refuse_early(node: Node, connection: Connection, request: Any, version: int) -> Any:
    """Return the refusal of a request that is not to be forwarded to the controller; None if it may be."""
    try:
        check_asker(node, connection, request if request.SCHEMA.key == 38 else None)
    except Refused as refused:
        response = m.response_class(request.SCHEMA.key)(error_code=refused.error)
        response.expiry_timestamp_ms = NO_TIME
        if request.SCHEMA.key == 38:
            response.principal_type, response.principal_name = owner_of(connection, request)
            response.issue_timestamp_ms = response.max_timestamp_ms = NO_TIME
            if version >= 3:
                kind, _, name = connection.principal.partition(":")
                response.token_requester_principal_type, response.token_requester_principal_name = kind, name
        return response
    return None


def owner_of(connection: Connection, request: m.CreateDelegationTokenRequest) -> tuple[str, str]:
    if request.owner_principal_name:
        return request.owner_principal_type or "", request.owner_principal_name
    kind, _, name = connection.principal.partition(":")
    return kind, name


def secret_of(node: Node) -> str:
    secret = node.settings[SECRET]
    if not secret:
        raise tokens.refused(Error.DELEGATION_TOKEN_AUTH_DISABLED)
    return secret


def find(node: Node, known: dict[str, Any], shown: bytes) -> Any:
    secret = secret_of(node)
    for token_id, token in known.items():
        if hmac.compare_digest(hmac_of(secret, token_id), shown):
            return token
    raise tokens.refused(Error.DELEGATION_TOKEN_NOT_FOUND)


def limits(node: Node) -> tokens.Limits:
    settings = node.settings
    return tokens.Limits(settings["delegation.token.expiry.time.ms"], settings["delegation.token.max.lifetime.ms"])


def may_see(node: Node, connection: Connection, token: Any) -> bool:
    return (
        tokens.is_known_to(token, connection.principal)
        or (node.authorizer is not None and node.may(connection, acls.DESCRIBE_TOKENS, acls.USER, token.owner))
        or (node.authorizer is not None and node.may(connection, acls.DESCRIBE, acls.DELEGATION_TOKEN, token.token_id))
    )


def row_of(token: Any, secret: str, version: int) -> Any:
    owner, asker = token.owner.partition(":"), token.requester.partition(":")
    row = m.DescribeDelegationTokenResponse_DescribedDelegationToken(owner[0], owner[2])
    if version >= 3:
        row.token_requester_principal_type, row.token_requester_principal_name = asker[0], asker[2]
    row.issue_timestamp, row.expiry_timestamp = token.issue_timestamp, token.expiration_timestamp
    row.max_timestamp, row.token_id, row.hmac = token.max_timestamp, token.token_id, hmac_of(secret, token.token_id)
    renewer = m.DescribeDelegationTokenResponse_DescribedDelegationTokenRenewer
    row.renewers = [renewer(kind, name) for kind, _, name in (one.partition(":") for one in token.renewers)]
    return row
