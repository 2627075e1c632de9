"""Delegation tokens, by which others act for a user (KIP-48, KIP-373)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.client import Client, check
from moldau.client import messages as m

DEFAULT_MS = -1  # the broker's own limit


@dataclass(frozen=True, slots=True)
class Token:
    """A token. Times are in milliseconds of wall time; the HMAC in base64 is its password."""

    id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    ends_ms: int

    @property
    def password(self) -> str:
        return b64encode(self.hmac).decode()


def create(
    client: Client, owner: str | None = None, renewers: Iterable[str] = (), lifetime_ms: int = DEFAULT_MS
) -> Token:
    """Create a token for the user of the client, or for another owner, as `User:name`."""
    rows = [m.CreateDelegationTokenRequest_CreatableRenewers(*_parts(one)) for one in renewers]
    kind, name = _parts(owner) if owner else (None, None)
    answer = check(client.send(m.CreateDelegationTokenRequest(kind, name, rows, lifetime_ms)))
    whose = f"{answer.principal_type}:{answer.principal_name}"
    asker = f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"
    times = answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms
    return Token(answer.token_id, bytes(answer.hmac), whose, asker, tuple(renewers), *times)


def described(client: Client, owners: Iterable[str] | None = None) -> list[Token]:
    """Return the tokens that the user may see: of these owners, or of all."""
    of = m.DescribeDelegationTokenRequest_DescribeDelegationTokenOwner
    wanted = None if owners is None else [of(*_parts(one)) for one in owners]
    answer = check(client.send(m.DescribeDelegationTokenRequest(wanted)))
    return [
        Token(
            row.token_id,
            bytes(row.hmac),
            f"{row.principal_type}:{row.principal_name}",
            f"{row.token_requester_principal_type}:{row.token_requester_principal_name}",
            tuple(f"{one.principal_type}:{one.principal_name}" for one in row.renewers),
            row.issue_timestamp,
            row.expiry_timestamp,
            row.max_timestamp,
        )
        for row in answer.tokens
    ]


def renew(client: Client, hmac: bytes, period_ms: int = DEFAULT_MS) -> int:
    """Let a token live longer; returns when it ends."""
    return check(client.send(m.RenewDelegationTokenRequest(hmac, period_ms))).expiry_timestamp_ms


def expire(client: Client, hmac: bytes, period_ms: int = DEFAULT_MS) -> int:
    """Let a token end after a time, or at once; returns when it ends."""
    return check(client.send(m.ExpireDelegationTokenRequest(hmac, period_ms))).expiry_timestamp_ms


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name
