"""TLS clients that write their records themselves, also such as no library sends."""

from __future__ import annotations

import hmac
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

HANDSHAKE, DATA = 22, 23
KEY_UPDATE = b"\x18\0\0\x01\0"  # the peer need not change its own key
HASH_BYTES, KEY_BYTES, NONCE_BYTES, FIXED_BYTES, TAG_BYTES = 48, 32, 12, 4, 16  # of AES-256-GCM with SHA-384
RANDOM = slice(11, 43)  # of a hello, in its record
SUITES = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384"


class Sealer(Protocol):
    """Makes the records of a connection whose handshake is done."""

    def record(self, content: bytes, kind: int = DATA) -> bytes: ...


def _derived(secret: bytes, label: bytes, size: int) -> bytes:
    label = b"tls13 " + label
    return HKDFExpand(SHA384(), size, size.to_bytes(2) + bytes((len(label),)) + label + b"\0").derive(secret)


@dataclass
class Sealer13:
    """A client's records in TLS 1.3."""

    secret: bytes
    _number: int = field(init=False)
    _key: AESGCM = field(init=False)
    _nonce: int = field(init=False)

    def __post_init__(self) -> None:
        self._key = AESGCM(_derived(self.secret, b"key", KEY_BYTES))
        self._nonce = int.from_bytes(_derived(self.secret, b"iv", NONCE_BYTES))
        self._number = 0

    def record(self, content: bytes, kind: int = DATA) -> bytes:
        head = b"\x17\x03\x03" + (len(content) + 1 + TAG_BYTES).to_bytes(2)
        nonce = (self._nonce ^ self._number).to_bytes(NONCE_BYTES)
        self._number += 1
        return head + self._key.encrypt(nonce, content + bytes((kind,)), head)

    def key_update(self) -> bytes:
        """Say that the next record has another key."""
        sealed = self.record(KEY_UPDATE, HANDSHAKE)
        self.secret = _derived(self.secret, b"traffic upd", HASH_BYTES)
        self.__post_init__()
        return sealed


@dataclass
class Sealer12:
    """A client's records in TLS 1.2."""

    _key: AESGCM
    _fixed: bytes
    _number: int = 1  # Finished was the one before

    def record(self, content: bytes, kind: int = DATA) -> bytes:
        number, head = self._number.to_bytes(8), bytes((kind, 3, 3))
        self._number += 1
        sealed = number + self._key.encrypt(self._fixed + number, content, number + head + len(content).to_bytes(2))
        return head + len(sealed).to_bytes(2) + sealed


def shake_hands(sock: socket.socket, folder: Path, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Sealer:
    """Perform the handshake on a connected socket; `folder` is for the secrets."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    context.set_ciphers(SUITES)
    secrets = folder / f"secrets-{sock.getsockname()[1]}"
    context.keylog_filename = str(secrets)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing)
    said, heard = b"", b""
    while True:
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
            break
        said += (data := outgoing.read())
        sock.sendall(data)
        heard += (data := sock.recv(65536))
        incoming.write(data)
    sock.sendall(outgoing.read())
    rows = (line.split() for line in secrets.read_text().splitlines() if not line.startswith("#"))
    known = {name: bytes.fromhex(value) for name, _, value in rows}
    if version == ssl.TLSVersion.TLSv1_3:
        return Sealer13(known["CLIENT_TRAFFIC_SECRET_0"])
    keys = _expanded(known["CLIENT_RANDOM"], b"key expansion" + heard[RANDOM] + said[RANDOM])
    return Sealer12(AESGCM(keys[:KEY_BYTES]), keys[2 * KEY_BYTES :][:FIXED_BYTES])


def _expanded(secret: bytes, seed: bytes) -> bytes:
    """Expand a secret as TLS 1.2 does, to as many bytes as two keys and two nonces need."""
    found, last = b"", seed
    while len(found) < 2 * (KEY_BYTES + FIXED_BYTES):
        last = hmac.digest(secret, last, "sha384")
        found += hmac.digest(secret, last + seed, "sha384")
    return found
