"""SCRAM (RFC 5802), the client's side. No I/O; the nonce is passed in."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Generator

from moldau.client.errors import ClientError
from moldau.wire.errors import Error

LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 10_000_000  # a server may not keep us busy for minutes


def scram(algorithm: str, user: str, password: str, nonce: str) -> Generator[bytes, bytes, None]:
    """Yield what to send and take what came back; ClientError if the server does not know the password either."""
    name = user.replace("=", "=3D").replace(",", "=2C")
    bare = f"n={name},r={nonce}"
    challenge = (yield f"n,,{bare}".encode()).decode(errors="replace")
    salt, iterations, whole_nonce = _challenge(challenge, nonce)
    without_proof = f"c=biws,r={whole_nonce}"
    signed = ",".join((bare, challenge, without_proof)).encode()

    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), signed, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = (yield f"{without_proof},p={b64encode(proof).decode()}".encode()).decode(errors="replace")

    expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), signed, algorithm)
    fields = _fields(final)
    if "e" in fields:
        raise _failure(f"the broker says {fields['e']}")
    if not hmac.compare_digest(fields.get("v", "").encode(), b64encode(expected)):
        raise _failure("the broker could not show that it knows the password")


def _challenge(text: str, nonce: str) -> tuple[bytes, int, str]:
    """Return salt, iterations and the whole nonce of the server's first message."""
    fields = _fields(text)
    try:
        salt, iterations, whole = b64decode(fields["s"], validate=True), int(fields["i"]), fields["r"]
    except (KeyError, ValueError) as error:
        raise _failure("the broker's first message makes no sense") from error
    if "m" in fields or not whole.startswith(nonce) or len(whole) == len(nonce):
        raise _failure("the broker's first message does not answer ours")
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise _failure(f"the broker asks for {iterations} iterations")
    return salt, iterations, whole


def _fields(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _failure(why: str) -> ClientError:
    return ClientError(Error.SASL_AUTHENTICATION_FAILED, f"SCRAM failed: {why}.")
