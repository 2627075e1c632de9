"""`moldau token`: delegation tokens, by which others act for a user."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from datetime import UTC, datetime
from typing import Any

from moldau.admin import tokens
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import noun
from moldau.cli.options import argument, flag, option
from moldau.cli.session import Session

cli, verb = noun()
HOUR_MS = 3_600_000
COLUMNS = ("id", "owner", "requester", "renewers", "issued", "expires", "ends")
HMAC = argument("The token's id, or its HMAC in base64.", metavar="TOKEN")
PERIOD = "Hours from now; otherwise what the broker allows."


def _principal(name: str) -> str:
    return name if ":" in name else f"User:{name}"


def _row(token: tokens.Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": ", ".join(token.renewers),
        "issued": _when(token.issued_ms),
        "expires": _when(token.expires_ms),
        "ends": _when(token.ends_ms),
    }


def _when(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@verb("create", "moldau token create --profile secure", "moldau token create --owner ada --hours 8 --renewer bob")
def create(
    session: Session,
    owner: str | None = option("--owner", "The user whom the token stands for; otherwise you.", metavar="USER"),
    renewer: list[str] | None = option("--renewer", "A user who may renew and end it too; repeatable.", metavar="USER"),
    hours: float | None = option("--hours", "How long it may live at most; otherwise what the broker allows.", min=0),
) -> None:
    """Create a token, and print it with its HMAC, the password with which it logs in. Nobody can see that again."""
    made = tokens.create(
        session.client, _principal(owner) if owner else None, map(_principal, renewer or ()), _ms(hours)
    )
    session.show([{**_row(made), "hmac": made.password}], ("id", "owner", "expires", "ends", "hmac"))


def _ms(hours: float | None) -> int:
    return tokens.DEFAULT_MS if hours is None else int(hours * HOUR_MS)


@verb("list", "moldau token list", "moldau token list --owner ada -o json")
def list_tokens(
    session: Session,
    owner: list[str] | None = option("--owner", "Only tokens of this user; repeatable.", metavar="USER"),
) -> None:
    """List the tokens that you may see, without their HMACs."""
    found = tokens.described(session.client, [_principal(one) for one in owner] if owner else None)
    rows = sorted((_row(token) for token in found), key=lambda row: (row["owner"], row["issued"], row["id"]))
    session.show(rows, COLUMNS, "There are no tokens that you may see.")


def _hmac(session: Session, text: str) -> bytes:
    """Return the HMAC that a text is, or that the token of this id has."""
    for token in tokens.described(session.client):
        if token.id == text:
            return token.hmac
    try:
        return b64decode(text, validate=True)
    except NoBase64:
        raise Mistake(f"There is no token {text!r} that you may see. `moldau token list` shows them.") from None


@verb("renew", "moldau token renew TOKEN-ID", "moldau token renew TOKEN-ID --hours 12")
def renew(
    session: Session,
    token: str = HMAC,
    hours: float | None = option("--hours", PERIOD, min=0),
) -> None:
    """Let a token live longer."""
    ends = _when(tokens.renew(session.client, _hmac(session, token), _ms(hours)))
    session.done(f"The token is good until {ends}.", expires=ends)


@verb("expire", "moldau token expire TOKEN-ID", "moldau token expire TOKEN-ID --hours 1")
def expire(
    session: Session,
    token: str = HMAC,
    hours: float | None = option("--hours", "Hours from now; otherwise at once.", min=0),
    now: bool = flag("--now", "End it at once."),
) -> None:
    """End a token, at once or after a time."""
    if now and hours is not None:
        raise misused("--now and --hours exclude each other.")
    ends = _when(tokens.expire(session.client, _hmac(session, token), _ms(hours)))
    session.done(f"The token ends at {ends}.", expires=ends)
