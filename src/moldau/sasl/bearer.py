"""OAUTHBEARER (RFC 7628, KIP-255), the server's half. Who checks the token is passed in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping

from moldau.sasl.outcome import Admitted, Denied, Exchange
from moldau.sasl.scram import invalid_credentials

MECHANISM = "OAUTHBEARER"
_SASLNAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_FIRST = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASLNAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01", re.DOTALL
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)", re.ASCII)


class InvalidToken(Exception):
    """A token that is not accepted; the text is for the log, not for the client."""


Validate = Callable[[str], tuple[str, int]]
"""Return the subject of a token and when it ends, in milliseconds of wall time; raises InvalidToken."""


def client(token: str, extensions: Mapping[str, str]) -> Generator[bytes, bytes, None]:
    """Show a token. A refusal is acknowledged, and then comes as a failure."""
    said = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    refusal = yield f"n,,\x01auth=Bearer {token}\x01{said}\x01".encode()
    if refusal:
        yield b"\x01"
        raise InvalidToken(refusal.decode(errors="replace"))


def server(validate: Validate, report: Callable[[str], None]) -> Exchange:
    """Take a token; one that is not accepted is answered with a status, and fails once that is acknowledged."""
    failed = Denied(invalid_credentials(MECHANISM))
    first = _FIRST.fullmatch((yield b"").decode(errors="replace"))
    if first is None:
        raise failed
    pairs = dict(pair.split("=", 1) for pair in first["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise failed
    try:
        user, until_ms = validate(auth["token"])
    except InvalidToken as problem:
        report(str(problem))
        status = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
        yield status.encode()
        raise Denied(status) from None
    other = first["authzid"]
    if other and other.replace("=2C", ",").replace("=3D", "=") != user:
        text = f"an authorization id ({other}) that is different from the token's principal name ({user})"
        raise Denied(f"Authentication failed: Client requested {text}")
    return Admitted(user, until_ms=until_ms)
