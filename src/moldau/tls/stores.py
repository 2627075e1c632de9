"""Key and trust stores: PEM, PKCS12 and JKS, told apart by their content.

Java opens PKCS12 files as JKS, and keytool writes PKCS12 unless it is told otherwise, so a setting that names the type
says little. What a store holds is kept as objects, whose `repr` shows no key.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from moldau.tls import jks

MOST_BYTES = 16 << 20
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
_BEGIN = b"-----BEGIN "
_SEQUENCE = b"\x30"  # how DER, and so PKCS12, begins


class StoreError(ValueError):
    """A store that cannot be used, and why."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key, and the certificates from its own up to the authority's."""

    key: PrivateKeyTypes = field(repr=False)
    chain: tuple[x509.Certificate, ...]

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]

    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def load_into(self, context: ssl.SSLContext) -> None:
        """Give both to OpenSSL, which reads only files: this one is in memory and has no name."""
        data = self.key_pem() + pem(self.chain)
        descriptor = os.memfd_create("identity", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Store:
    """What a store holds."""

    identities: tuple[Identity, ...] = ()
    certificates: tuple[x509.Certificate, ...] = ()


def pem(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def read_store(path: str, password: str | None = None, key_password: str | None = None) -> Store:
    """Open the store in a file; raises StoreError."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise StoreError(error.strerror or "it cannot be read") from None
    return open_store(data, password, key_password)


def open_store(data: bytes, password: str | None = None, key_password: str | None = None) -> Store:
    """Open a store; raises StoreError."""
    if len(data) > MOST_BYTES:
        raise StoreError(f"a store has at most {MOST_BYTES} bytes")
    try:
        if _BEGIN in data:
            return _open_pem(data, key_password or password)
        if data.startswith(jks.MAGIC):
            return _open_jks(data, password or "", key_password or password or "")
        if data.startswith(_SEQUENCE):
            return _open_pkcs12(data, password or "")
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise StoreError(_reason(error)) from None
    raise StoreError("it is neither PEM nor PKCS12 nor JKS")


def _reason(error: Exception) -> str:
    text = str(error).split("\n")[0]
    if isinstance(error, StoreError | jks.JksError):
        return text
    if "password" in text.lower() or "decrypt" in text.lower():
        return "its password is wrong or missing"
    return f"it is damaged ({text})" if text else "it is damaged"


def _open_pem(data: bytes, password: str | None) -> Store:
    certificates = tuple(x509.load_pem_x509_certificates(data)) if b"-----BEGIN CERTIFICATE-----" in data else ()
    found = _KEY.search(data)
    if found is None:
        if not certificates:
            raise StoreError("it holds neither a key nor a certificate")
        return Store(certificates=certificates)
    secret = password.encode() if password and b"ENCRYPTED" in found[0] else None
    key = load_pem_private_key(found[0], secret)
    if not certificates:
        raise StoreError("it holds a key, and no certificate for it")
    return Store((Identity(key, certificates),), certificates)


def _open_jks(data: bytes, password: str, key_password: str) -> Store:
    keys, trusted = jks.read_jks(data, password, key_password)
    identities = []
    for entry in keys:
        chain = tuple(map(x509.load_der_x509_certificate, entry.chain))
        if not chain:
            raise StoreError("it holds a key, and no certificate for it")
        identities.append(Identity(load_der_private_key(entry.key, None), chain))
    return Store(tuple(identities), tuple(map(x509.load_der_x509_certificate, trusted)))


def _open_pkcs12(data: bytes, password: str) -> Store:
    found = pkcs12.load_pkcs12(data, password.encode())
    others = tuple(one.certificate for one in found.additional_certs)
    if found.key is None or found.cert is None:
        own = () if found.cert is None else (found.cert.certificate,)
        return Store(certificates=own + others)
    return Store((Identity(found.key, _chain(found.cert.certificate, others)),), others)


def _chain(leaf: x509.Certificate, others: tuple[x509.Certificate, ...]) -> tuple[x509.Certificate, ...]:
    """Return the certificates from one to its authority; the format keeps no order."""
    chain, left = [leaf], list(others)
    while issuer := next((one for one in left if one.subject == chain[-1].issuer), None):
        left.remove(issuer)
        chain.append(issuer)
    return tuple(chain)
