"""Conversations with a listener of SASL_PLAINTEXT, as rows: each step sends one thing, and its answer is written down.

The user `alice` has the same password for PLAIN and for both kinds of SCRAM; OAUTHBEARER takes unsigned tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import struct
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error

USER, PASSWORD = "alice", "alice's, = secret"
GOOD = f"\0{USER}\0{PASSWORD}".encode()
ADMIN = b"\0admin\0admin-secret"
TIMEOUT_S = 20.0


class Talk:
    """A connection, and what was said last."""

    def __init__(self, port: int, client_id: str = "talk") -> None:
        self.client_id = client_id
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.serial = 0
        self.challenge = ""

    def frame(self) -> bytes:
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def ask(self, request: Any, version: int) -> Any:
        self.serial += 1
        self.socket.sendall(frames.request_frame(request, version, self.serial, self.client_id))
        data, key = self.frame(), request.SCHEMA.key
        _, position = frames.response_header(key, version, data)
        return codec.decode(m.response_class(key), version, memoryview(data), position)


Step = Callable[[Talk], Any]


def versions(version: int = 3) -> Step:
    return lambda talk: talk.ask(m.ApiVersionsRequest("talk", "1"), version)


def shake(mechanism: str = "PLAIN", version: int = 1) -> Step:
    return lambda talk: talk.ask(m.SaslHandshakeRequest(mechanism), version)


def prove(token: bytes = GOOD, version: int = 2) -> Step:
    return lambda talk: talk.ask(m.SaslAuthenticateRequest(token), version)


def metadata(talk: Talk) -> Any:
    return talk.ask(m.MetadataRequest([]), 9)


def raw(token: bytes) -> Step:
    def say(talk: Talk) -> bytes:
        talk.socket.sendall(struct.pack(">i", len(token)) + token)
        return talk.frame()

    return say


def claim(size: int) -> Step:
    def say(talk: Talk) -> bytes:
        talk.socket.sendall(struct.pack(">i", size))
        return talk.frame()

    return say


def scram_first(said: str = f"n,,n={USER},r=abc") -> Step:
    def say(talk: Talk) -> Any:
        answer = talk.ask(m.SaslAuthenticateRequest(said.encode()), 2)
        talk.challenge = bytes(answer.auth_bytes).decode()
        return answer

    return say


def scram_final(password: str = PASSWORD, change: Callable[[str], str] = str) -> Step:
    def say(talk: Talk) -> Any:
        fields = dict(part.split("=", 1) for part in talk.challenge.split(","))
        bare = f"c=biws,r={change(fields['r'])}"
        signed = f"n={USER},r=abc,{talk.challenge},{bare}".encode()
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(fields["s"]), int(fields["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        return talk.ask(m.SaslAuthenticateRequest(f"{bare},p={proof}".encode()), 2)

    return say


def token(before: str = "n,,", after: str = "", **claims: Any) -> bytes:
    now = int(time.time())
    content = {"sub": "olga", "iat": now - 1, "exp": now + 300} | claims
    parts = (urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=").decode() for one in ({"alg": "none"}, content))
    return f"{before}\x01auth=Bearer {'.'.join(parts)}.\x01{after}\x01".encode()


SCRAM, BEARER = shake("SCRAM-SHA-256"), shake("OAUTHBEARER")
SCENARIOS: dict[str, tuple[Step, ...]] = {
    "versions twice": (versions(), versions()),
    "versions, then within the exchange": (shake(), versions()),
    "metadata first": (metadata,),
    "metadata after versions": (versions(), metadata),
    "metadata within the exchange": (shake(), metadata),
    "authenticate first": (prove(),),
    "authenticate after versions": (versions(), prove()),
    "unknown mechanism": (shake("NOPE"),),
    "mechanism in lower case": (shake("plain"),),
    "handshake twice": (shake(), shake()),
    "plain": (versions(), shake(), prove(), metadata),
    "plain, version 0": (shake(), prove(version=0), metadata),
    "plain, version 1": (shake(), prove(version=1), metadata),
    "plain, wrong password": (shake(), prove(b"\0alice\0x")),
    "plain, unknown user": (shake(), prove(b"\0nobody\0x")),
    "plain, for another": (shake(), prove(b"bob" + GOOD)),
    "plain, for oneself": (shake(), prove(b"alice" + GOOD)),
    "plain, one part": (shake(), prove(b"alice")),
    "plain, two parts": (shake(), prove(b"alice\0b")),
    "plain, four parts": (shake(), prove(b"\0alice\0b\0c")),
    "plain, no user": (shake(), prove(b"\0\0b")),
    "plain, no password": (shake(), prove(b"\0alice\0")),
    "plain, not UTF-8": (shake(), prove(b"\0al\xff\0b")),
    "plain, nothing": (shake(), prove(b"")),
    "raw": (shake(version=0), raw(GOOD), metadata),
    "raw, wrong": (shake(version=0), raw(b"\0alice\0x")),
    "a frame of 600,000": (claim(600_000),),
    "a frame of 524,289": (claim(524_289),),
    "a token of Kerberos first": (raw(b"\x60\x82\x02\x00"),),
    "scram": (SCRAM, scram_first(), scram_final(), metadata),
    "scram, wrong password": (SCRAM, scram_first(), scram_final("no")),
    "scram, other nonce": (SCRAM, scram_first(), scram_final(change=lambda nonce: nonce + "x")),
    "scram, own nonce": (SCRAM, scram_first(), scram_final(change=lambda nonce: "abc")),
    "scram, unknown user": (SCRAM, scram_first("n,,n=nobody,r=abc")),
    "scram, binding y": (SCRAM, scram_first(f"y,,n={USER},r=abc")),
    "scram, binding p": (SCRAM, scram_first(f"p=tls-unique,,n={USER},r=abc")),
    "scram, for another": (SCRAM, scram_first(f"n,a=bob,n={USER},r=abc")),
    "scram, mandatory extension": (SCRAM, scram_first(f"n,,m=x,n={USER},r=abc")),
    "scram, no nonce": (SCRAM, scram_first(f"n,,n={USER},r=")),
    "scram, not UTF-8": (SCRAM, prove(b"\xff\xfe")),
    "bearer": (BEARER, lambda talk: prove(token())(talk), metadata),
    "bearer, ended": (BEARER, lambda talk: prove(token(exp=int(time.time()) - 100))(talk), prove(b"\x01")),
    "bearer, no token": (BEARER, prove(b"n,,\x01\x01")),
    "bearer, not a token": (BEARER, prove(b"n,,\x01auth=Bearer abc\x01\x01"), prove(b"\x01")),
    "bearer, for another": (BEARER, lambda talk: prove(token("n,a=bob,"))(talk)),
    "bearer, extension": (BEARER, lambda talk: prove(token(after="traceId=1\x01"))(talk), metadata),
    "bearer, extension auth": (BEARER, lambda talk: prove(token(after="auth=1\x01"))(talk)),
    "again, same user": (shake(), prove(), metadata, shake(), prove(), metadata),
    "again, without a handshake": (shake(), prove(), prove(), metadata),
    "again, another user": (shake(), prove(), shake(), prove(ADMIN)),
    "again, another mechanism": (shake(), prove(), SCRAM, scram_first()),
    "again, unknown mechanism": (shake(), prove(), shake("NOPE"), metadata),
    "again, metadata within": (shake(), prove(), shake(), metadata),
    "again, versions within": (shake(), prove(), shake(), versions()),
}


def play(port: int, steps: tuple[Step, ...]) -> list[str]:
    """Run a conversation to its end, and write down what was answered."""
    talk, answers = Talk(port), list[str]()
    with talk.socket:
        for step in steps:
            try:
                answers.append(shown(step(talk)))
            except (EOFError, ConnectionError):
                return [*answers, "closed"]
    return answers


def shown(answer: Any) -> str:
    """Write an answer without what is never the same: nonces, salts, brokers."""
    if isinstance(answer, bytes):
        return f"raw {answer.hex()}"
    name = answer.SCHEMA.name.removesuffix("Response")
    error = Error(getattr(answer, "error_code", 0)).name
    if name == "SaslHandshake":
        return f"{name} {error} {sorted(answer.mechanisms)}"
    if name == "SaslAuthenticate":
        said = bytes(answer.auth_bytes)
        kind = "nothing" if not said else said.decode() if said.startswith(b"{") else said[:2].decode()
        return f"{name} {error} {answer.error_message!r} {kind} {answer.session_lifetime_ms}"
    return f"{name} {error} {len(getattr(answer, 'brokers', ()))}"
