"""Keys, certificates and stores for tests; the JKS writer is the reverse of the reader's layout, for small files."""

from __future__ import annotations

import datetime
import hashlib
import struct
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True, slots=True)
class Pair:
    """A key and a certificate that it signed itself."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        return self.key_pem + self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def self_signed(name: str = "broker", subject: x509.Name | None = None) -> Pair:
    return issue(name, subject=subject)


def issue(
    name: str,
    issuer: Pair | None = None,
    *,
    key: ec.EllipticCurvePrivateKey | None = None,
    subject: x509.Name | None = None,
    hosts: tuple[str, ...] = ("localhost",),
    days: tuple[int, int] = (-1, 1),
    extensions: tuple[x509.ExtensionType, ...] = (),
) -> Pair:
    """Make a certificate, signed by itself where nobody issues it; `days` from now it begins and ends."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = subject or x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    begin, end = (now + datetime.timedelta(days=count) for count in days)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName(list(map(x509.DNSName, hosts))), critical=False)
    )
    for extension in extensions:
        made = made.add_extension(extension, critical=False)
    return Pair(key, made.sign(issuer.key if issuer else key, hashes.SHA256()))


AUTHORITY = x509.BasicConstraints(ca=True, path_length=None)
FOR_SERVERS = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
FOR_CLIENTS = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])


def chain(root: Pair, depth: int, padding: int = 0) -> list[Pair]:
    """Make a chain of certificates, its root first, each of which holds so many bytes for nothing."""
    extra = (x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), bytes(padding)),) if padding else ()
    pairs = [root]
    for number in range(1, depth):
        own = () if number == depth - 1 else (AUTHORITY,)
        pairs.append(issue(f"level {number}", pairs[-1], key=pairs[0].key, extensions=(*own, *extra)))
    return pairs


def shown(pairs: list[Pair]) -> bytes:
    """A store with the key of the last certificate, and the chain up to its root."""
    return pairs[-1].key_pem + b"".join(pair.certificate.public_bytes(Encoding.PEM) for pair in pairs[:0:-1])


def jks(pair: Pair, password: str, key_password: str, *, trusted: bool = False) -> bytes:
    """Write a store with one entry: the key with its certificate, or the certificate alone."""
    der = pair.certificate.public_bytes(Encoding.DER)
    certificate = _text("X.509") + struct.pack(">I", len(der)) + der
    head = _text("mine") + struct.pack(">Q", 0)
    if trusted:
        entry = struct.pack(">I", 2) + head + certificate
    else:
        hidden = _encrypted(pair.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), key_password)
        entry = struct.pack(">I", 1) + head + struct.pack(">I", len(hidden)) + hidden
        entry += struct.pack(">I", 1) + certificate
    body = b"\xfe\xed\xfe\xed" + struct.pack(">II", 2, 1) + entry
    return body + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def _encrypted(key: bytes, password: str) -> bytes:
    secret, salt = password.encode("utf-16-be"), bytes(range(20))
    stream, last = b"", salt
    while len(stream) < len(key):
        last = hashlib.sha1(secret + last).digest()
        stream += last
    octets = salt + bytes(a ^ b for a, b in zip(key, stream, strict=False)) + hashlib.sha1(secret + key).digest()
    content = b"\x30\x00" + _element(4, octets)
    return _element(0x30, content)


def _element(tag: int, data: bytes) -> bytes:
    return bytes((tag, 0x82)) + struct.pack(">H", len(data)) + data


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
