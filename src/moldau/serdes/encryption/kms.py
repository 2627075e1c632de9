"""Key management services, which keep the keys that encrypt data encryption keys.

`local-kms` derives its key from a secret, given as `secret` among the settings or in LOCAL_SECRET, as in Confluent's
clients: for tests and for teams without a service. Others are added with `register`; their type begins a key's address.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Protocol

from moldau.serdes.context import SerdeError
from moldau.serdes.encryption.ciphers import gcm_decrypt, gcm_encrypt

LOCAL = "local-kms"
SECRET, SECRET_VARIABLE = "secret", "LOCAL_SECRET"
ALTERNATES = "encrypt.alternate.kms.key.ids"


class Kms(Protocol):
    """One key in a service."""

    def encrypt(self, plain: bytes) -> bytes: ...
    def decrypt(self, data: bytes) -> bytes: ...


Opener = Callable[[str, Mapping[str, str]], Kms]  # the key's id in the service, the settings


class KmsError(SerdeError):
    """A key management service refused, or could not be asked."""


class Local:
    """A key derived from a secret. Its `repr` says nothing of it."""

    def __init__(self, key_id: str, settings: Mapping[str, str]) -> None:
        secret = settings.get(SECRET) or os.environ.get(SECRET_VARIABLE)
        if not secret:
            raise KmsError(f"local-kms has no secret: set rule.executors._default_.param.{SECRET} or {SECRET_VARIABLE}")
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        self._key = HKDF(SHA256(), 16, None, b"").derive(secret.encode())

    def encrypt(self, plain: bytes) -> bytes:
        return gcm_encrypt(self._key, plain)

    def decrypt(self, data: bytes) -> bytes:
        plain = gcm_decrypt(self._key, data)
        if plain is None:
            raise KmsError("local-kms cannot decrypt the key: it was encrypted with another secret")
        return plain


_openers: dict[str, Opener] = {LOCAL: Local}


def register(type: str, opener: Opener) -> None:
    """Make a further service known: `opener(key id, settings)` returns what encrypts and decrypts."""
    _openers[type] = opener


class Wrapper:
    """A key encryption key: the first of its services' keys that works does the work."""

    def __init__(self, type: str, key_id: str, props: Mapping[str, str], settings: Mapping[str, str]) -> None:
        if type not in _openers:
            raise KmsError(f"the key management service {type!r} is not known: {', '.join(sorted(_openers))} is")
        own = {**settings, **props}
        others = own.get(ALTERNATES, "")
        self._ids = [key_id, *(each.strip() for each in others.split(",") if each.strip())]
        self._open = lambda id: _openers[type](id, own)

    def encrypt(self, plain: bytes) -> bytes:
        return self._first(lambda kms: kms.encrypt(plain))

    def decrypt(self, data: bytes) -> bytes:
        return self._first(lambda kms: kms.decrypt(data))

    def _first(self, work: Callable[[Kms], bytes]) -> bytes:
        refused: list[str] = []
        for id in self._ids:
            try:
                return work(self._open(id))
            except KmsError as error:
                refused.append(str(error))
        raise KmsError("; ".join(dict.fromkeys(refused)))
