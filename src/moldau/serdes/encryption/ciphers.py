"""The ciphers of data encryption keys, and Tink's form of keys and ciphertexts, which all of Confluent's clients use.

A key is Tink's Protobuf message of its kind, and a ciphertext has no prefix: nonce, ciphertext and tag for GCM, the
synthetic nonce and the ciphertext for SIV, which gives the same ciphertext for the same text. The library is imported
where it is used: every registry knows of keys, few have any.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from moldau.serdes.context import SerdeError

NONCE = 12
BYTES = 2  # Protobuf's wire type of a field with a length


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A row of ALGORITHMS: how long its keys are, and the number of the field of Tink's message that has the key."""

    name: str
    key_bytes: int
    field: int
    deterministic: bool = False


ALGORITHMS = {
    row.name: row
    for row in (
        Algorithm("AES128_GCM", 16, 3),
        Algorithm("AES256_GCM", 32, 3),
        Algorithm("AES256_SIV", 64, 2, deterministic=True),
    )
}
DEFAULT = "AES256_GCM"


def algorithm(name: str | None) -> Algorithm:
    """Return the row of a name; SerdeError if there is none."""
    found = ALGORITHMS.get(name or DEFAULT)
    if found is None:
        raise SerdeError(f"the algorithm {name!r} is not known: use one of {', '.join(ALGORITHMS)}")
    return found


def new_key(kind: Algorithm) -> bytes:
    """Return a random key in Tink's form."""
    return to_tink(kind, os.urandom(kind.key_bytes))


def to_tink(kind: Algorithm, key: bytes) -> bytes:
    """Write Tink's message of a key; version 0 is the default, and so is left out."""
    return bytes((kind.field << 3 | BYTES, len(key))) + key


def of_tink(kind: Algorithm, data: bytes) -> bytes:
    """Read Tink's message of a key; SerdeError if it is none of this kind."""
    rest = data[2:] if data[:2] == b"\x08\x00" else data  # a version that was written although it is 0
    key = rest[2:]
    if len(rest) < 2 or rest[0] != kind.field << 3 | BYTES or rest[1] != len(key) or len(key) != kind.key_bytes:
        raise SerdeError(f"the data encryption key is no key for {kind.name}")
    return key


def encrypt(kind: Algorithm, key: bytes, plain: bytes) -> bytes:
    """Encrypt with a key in Tink's form."""
    raw = of_tink(kind, key)
    return siv_encrypt(raw, plain) if kind.deterministic else gcm_encrypt(raw, plain)


def decrypt(kind: Algorithm, key: bytes, data: bytes) -> bytes:
    """Decrypt with a key in Tink's form; SerdeError if these bytes were not encrypted with it."""
    raw = of_tink(kind, key)
    plain = siv_decrypt(raw, data) if kind.deterministic else gcm_decrypt(raw, data)
    if plain is None:
        raise SerdeError("the field cannot be decrypted: it was encrypted with another key, or is not whole")
    return plain


def siv_encrypt(raw: bytes, plain: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    return AESSIV(raw).encrypt(plain, [b""])


def siv_decrypt(raw: bytes, data: bytes) -> bytes | None:
    """Decrypt; None if these bytes are not of this key."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    try:
        return AESSIV(raw).decrypt(data, [b""])
    except (InvalidTag, ValueError):
        return None


def gcm_encrypt(raw: bytes, plain: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(NONCE)
    return nonce + AESGCM(raw).encrypt(nonce, plain, None)


def gcm_decrypt(raw: bytes, data: bytes) -> bytes | None:
    """Decrypt; None if these bytes are not of this key."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(raw).decrypt(data[:NONCE], data[NONCE:], None)
    except (InvalidTag, ValueError):
        return None
