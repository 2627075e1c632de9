"""Delegation tokens (KIP-48): decisions on their records. Passwords of tokens are not here: see broker/tokens.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

USER = "User"
DEFAULT = -1  # a period that the broker chooses


class Limits(NamedTuple):
    """How long tokens live: until they must be renewed, and at most."""

    expiry_ms: int
    lifetime_ms: int


def create(
    token_id: str,
    owner: str,
    requester: str,
    renewers: Iterable[tuple[str, str]],
    asked_ms: int,
    limits: Limits,
    now: int,
) -> Any:
    """Return the record of a new token; raises Refused."""
    names: list[str] = []
    for kind, name in renewers:
        if kind != USER:
            raise refused(Error.INVALID_PRINCIPAL_TYPE)
        names.append(f"{kind}:{name}")
    most = now + (min(asked_ms, limits.lifetime_ms) if asked_ms > 0 else limits.lifetime_ms)
    return m.DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=names,
        issue_timestamp=now,
        max_timestamp=most,
        expiration_timestamp=min(most, now + limits.expiry_ms),
        token_id=token_id,
    )


def renew(token: Any, principal: str, period_ms: int, limits: Limits, now: int) -> Any:
    """Return the record of a token that lives longer."""
    check_alive(token, now)
    check_right(token, principal)
    return changed(token, min(token.max_timestamp, now + (limits.expiry_ms if period_ms < 0 else period_ms)))


def expire(token: Any, principal: str, period_ms: int, now: int) -> tuple[Any, int]:
    """Return the record that ends a token, now or at another time, and that time."""
    check_right(token, principal)
    if period_ms < 0:
        return m.RemoveDelegationTokenRecord(token.token_id), now
    check_alive(token, now)
    ends = min(token.max_timestamp, now + period_ms)
    return changed(token, ends), ends


def check_alive(token: Any, now: int) -> None:
    if token.max_timestamp < now or token.expiration_timestamp < now:
        raise refused(Error.DELEGATION_TOKEN_EXPIRED)


def check_right(token: Any, principal: str) -> None:
    if not is_known_to(token, principal):
        raise refused(Error.DELEGATION_TOKEN_OWNER_MISMATCH)


def is_known_to(token: Any, principal: str) -> bool:
    """Tell whether somebody owns a token, asked for it (KIP-373), or may renew it."""
    return principal in (token.owner, token.requester, *token.renewers)


def changed(token: Any, ends: int) -> Any:
    return m.DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=ends,
        token_id=token.token_id,
    )


def removals(tokens: Mapping[str, Any], now: int) -> list[Any]:
    """Return the records that remove tokens which have ended."""
    ended = (token for token in tokens.values() if min(token.expiration_timestamp, token.max_timestamp) < now)
    return [m.RemoveDelegationTokenRecord(token.token_id) for token in ended]


def refused(error: Error) -> Refused:
    return Refused(error, error.message)
