"""PLAIN (RFC 4616): the name and the password as they are, so it belongs inside TLS. Texts are Kafka's."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Generator

from moldau.sasl.outcome import Admitted, Denied, Exchange

PARTS = 3
WRONG = "Authentication failed: Invalid username or password"
OTHER = "Authentication failed: Client requested an authorization id that is different from username"


def client(user: str, password: str) -> Generator[bytes, bytes, None]:
    yield f"\0{user}\0{password}".encode()


def server(find: Callable[[str], str | None]) -> Exchange:
    """Check a message against the password that `find` returns for the user."""
    parts = (yield b"").decode(errors="replace").split("\0")
    if len(parts) != PARTS:
        count = min(len(parts), PARTS + 1)
        raise Denied(f"Invalid SASL/PLAIN response: expected {PARTS} tokens, got {count}")
    other, user, password = parts
    if not user:
        raise Denied("Authentication failed: username not specified")
    if not password:
        raise Denied("Authentication failed: password not specified")
    expected = find(user)
    # Compared also where there is no such user: the time must not tell.
    is_right = hmac.compare_digest(password.encode(), ("" if expected is None else expected).encode())
    if expected is None or not is_right:
        raise Denied(WRONG)
    if other not in ("", user):
        raise Denied(OTHER)
    return Admitted(user)
