"""SCRAM (RFC 5802), both halves as generators, and the arithmetic that they share. Nonces are passed in."""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from moldau.sasl.outcome import Admitted, Denied, LoginFailed

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 10_000_000  # a server may not keep us busy for minutes
TOKEN_AUTH = "tokenauth"  # the extension that says that the user is the id of a delegation token (KIP-48)


class ScramError(LoginFailed):
    """A server that does not know the password either, or does not speak SCRAM."""


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """What a server keeps of a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salt_password(algorithm: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)


def derive_keys(algorithm: str, salted: bytes) -> tuple[bytes, bytes, bytes]:
    """Return client key, stored key and server key of a salted password."""
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    return client_key, hashlib.new(algorithm, client_key).digest(), hmac.digest(salted, b"Server Key", algorithm)


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def client(
    algorithm: str, user: str, password: str, nonce: str, extensions: Mapping[str, str] | None = None
) -> Generator[bytes, bytes, None]:
    """Yield what to send and take what came back; ScramError if the server does not know the password either."""
    name = user.replace("=", "=3D").replace(",", "=2C")
    more = "".join(f",{key}={value}" for key, value in (extensions or {}).items())
    bare = f"n={name},r={nonce}{more}"
    challenge = (yield f"n,,{bare}".encode()).decode(errors="replace")
    salt, iterations, whole_nonce = _challenge(challenge, nonce)
    without_proof = f"c=biws,r={whole_nonce}"
    signed = ",".join((bare, challenge, without_proof)).encode()

    client_key, stored_key, server_key = derive_keys(algorithm, salt_password(algorithm, password, salt, iterations))
    proof = xor(client_key, hmac.digest(stored_key, signed, algorithm))
    final = (yield f"{without_proof},p={b64encode(proof).decode()}".encode()).decode(errors="replace")

    fields = _fields(final)
    if "e" in fields:
        raise ScramError(f"the broker says {fields['e']}")
    expected = b64encode(hmac.digest(server_key, signed, algorithm))
    if not hmac.compare_digest(fields.get("v", "").encode(), expected):
        raise ScramError("the broker could not show that it knows the password")


def _challenge(text: str, nonce: str) -> tuple[bytes, int, str]:
    """Return salt, iterations and the whole nonce of the server's first message."""
    fields = _fields(text)
    try:
        salt, iterations, whole = b64decode(fields["s"], validate=True), int(fields["i"]), fields["r"]
    except (KeyError, ValueError) as error:
        raise ScramError("the broker's first message makes no sense") from error
    if "m" in fields or not whole.startswith(nonce) or len(whole) == len(nonce):
        raise ScramError("the broker's first message does not answer ours")
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise ScramError(f"the broker asks for {iterations} iterations")
    return salt, iterations, whole


def _fields(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


# The server's half.

_SASLNAME = r"(?:[^\x00=,]|=2C|=3D)+"
_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_SASLNAME}))?,)"
    rf"(?P<bare>n=(?P<user>{_SASLNAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<more>(?:,[A-Za-z]+=[^\x00,]+)*))"
)
_FINAL = re.compile(r"(?P<bare>c=(?P<header>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)),p=(?P<proof>[^,]+)")

Find = Callable[[str, Mapping[str, str]], "tuple[str, ServerKeys, Admitted] | None"]
"""The keys for a user and the extensions, with the name that an authorization id may have, and who then comes in."""


def server(
    mechanism: str, nonce: str, find: Find, decoy: Callable[[str], ServerKeys]
) -> Generator[bytes, bytes, Admitted]:
    """Take the client's messages and yield ours. A user who is not known gets a decoy, and fails at the end.

    So nobody learns who exists: `decoy` always makes the same salt for a name.
    """
    algorithm, failed = HASHES[mechanism], Denied(invalid_credentials(mechanism))
    first = _FIRST.fullmatch(_text((yield b""), failed))
    if first is None:
        raise failed
    user = _plain_name(first["user"])
    extensions = dict(part.split("=", 1) for part in first["more"].split(",") if part)
    found = find(user, extensions)
    if found is not None and first["authzid"] and _plain_name(first["authzid"]) != found[0]:
        found = None
    keys = decoy(user) if found is None else found[1]
    whole = first["nonce"] + nonce
    challenge = f"r={whole},s={b64encode(keys.salt).decode()},i={keys.iterations}"

    final = _FINAL.fullmatch(_text((yield challenge.encode()), failed))
    if final is None or not hmac.compare_digest(final["nonce"], whole):
        raise failed
    if _decoded(final["header"]) != first["header"].encode():
        raise failed
    signed = ",".join((first["bare"], challenge, final["bare"])).encode()
    proof, signature = _decoded(final["proof"]), hmac.digest(keys.stored_key, signed, algorithm)
    if proof is None or len(proof) != len(signature):
        raise failed
    shown = hashlib.new(algorithm, xor(proof, signature)).digest()
    if not hmac.compare_digest(shown, keys.stored_key) or found is None:
        raise failed
    admitted = found[2]
    last = b"v=" + b64encode(hmac.digest(keys.server_key, signed, algorithm))
    return admitted.with_answer(last)


def invalid_credentials(mechanism: str) -> str:
    """Return Kafka's sentence for a failure that is not to be explained."""
    return f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"


def _plain_name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")


def _text(message: bytes, failed: Denied) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise failed from None


def _decoded(text: str) -> bytes | None:
    """Decode base64; None for what is not, or not as it is written: no two texts mean the same."""
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return None
    return data if b64encode(data).decode() == text else None
