"""An authority of one's own, and the certificates that it signs: ECDSA P-256, half the handshake of RSA."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from moldau.tls.stores import Identity, StoreError

AUTHORITY_DAYS, CERTIFICATE_DAYS = 3650, 365
EARLIER = datetime.timedelta(hours=1)  # clocks differ


def make_authority(name: str) -> Identity:
    """Make an authority that signs certificates, and no other authorities."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    builder = _builder(subject, subject, key.public_key(), AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs=True), critical=True)
    return Identity(key, (builder.sign(key, hashes.SHA256()),))


def issue(authority: Identity, name: str, hosts: Sequence[str]) -> Identity:
    """Sign a certificate for hosts and addresses, good for both sides of TLS."""
    signer = authority.key
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise StoreError("the authority's key is not of an elliptic curve")
    key, issuer = ec.generate_private_key(ec.SECP256R1()), authority.certificate
    builder = _builder(_name(name), issuer.subject, key.public_key(), CERTIFICATE_DAYS)
    of_signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = builder.add_extension(of_signer, critical=False)  # from 3.13 on Python refuses a certificate without it
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs=False), critical=True)
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
    return Identity(key, (builder.sign(signer, hashes.SHA256()), issuer))


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - EARLIER,
        not_valid_after=now + datetime.timedelta(days=days),
    )
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
