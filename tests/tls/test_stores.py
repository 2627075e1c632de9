"""Stores: each format is recognized by its content, opens with its password, and refuses what is damaged."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.tls import StoreError, open_store
from moldau.tls.stores import read_store
from tests.tls.keystores import jks, self_signed

PAIR = self_signed()
SECRET = "storepw"


def as_pkcs12(password: bytes | None = SECRET.encode()) -> bytes:
    how = BestAvailableEncryption(password) if password else NoEncryption()
    return pkcs12.serialize_key_and_certificates(b"me", PAIR.key, PAIR.certificate, None, how)


def as_encrypted_pem() -> bytes:
    key = PAIR.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(SECRET.encode()))
    return PAIR.certificate.public_bytes(Encoding.PEM) + key


STORES = {
    "pem": PAIR.pem,
    "encrypted pem": as_encrypted_pem(),
    "pkcs12": as_pkcs12(),
    "jks": jks(PAIR, SECRET, SECRET),
}


@pytest.mark.parametrize("form", STORES)
def test_a_key_store_is_recognized_by_its_content(form: str) -> None:
    (identity,) = open_store(STORES[form], SECRET).identities
    assert identity.certificate == PAIR.certificate
    assert identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) == PAIR.key_pem


@pytest.mark.parametrize("form", ["encrypted pem", "pkcs12", "jks"])
@pytest.mark.parametrize("password", ["wrong", "", None])
def test_a_wrong_password_is_told(form: str, password: str | None) -> None:
    with pytest.raises(StoreError, match="password"):
        open_store(STORES[form], password)


def test_the_key_of_a_jks_may_have_a_password_of_its_own() -> None:
    data = jks(PAIR, SECRET, "another")
    assert open_store(data, SECRET, "another").identities
    with pytest.raises(StoreError, match="password of its key is wrong"):
        open_store(data, SECRET)


def test_trust_stores_have_certificates_alone() -> None:
    for data in (PAIR.certificate.public_bytes(Encoding.PEM), jks(PAIR, SECRET, "", trusted=True)):
        store = open_store(data, SECRET)
        assert (store.identities, store.certificates) == ((), (PAIR.certificate,))


@pytest.mark.parametrize("data", [b"", b"hello", b"\x30\x03abc", b"\xfe\xed\xfe\xed", PAIR.key_pem])
def test_what_is_no_store_is_refused(data: bytes) -> None:
    with pytest.raises(StoreError):
        open_store(data, SECRET)


def test_a_certificate_of_an_unknown_version_is_refused() -> None:
    version = b"\xa0\x03\x02\x01"  # the field of a certificate, before its value
    der = PAIR.certificate.public_bytes(Encoding.DER).replace(version + b"\x02", version + b"\x07")
    with pytest.raises(StoreError, match=r"damaged.*version"):
        open_store(ssl.DER_cert_to_PEM_cert(der).encode())


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        read_store(str(tmp_path / "none"))


def test_no_key_shows_in_a_repr() -> None:
    assert "EllipticCurvePrivateKey" not in repr(open_store(PAIR.pem)) and "PRIVATE" not in repr(open_store(PAIR.pem))


@settings(max_examples=40)
@given(st.sampled_from(sorted(STORES)), st.data())
def test_damaged_stores_open_or_are_refused_with_a_reason(form: str, draw: st.DataObject) -> None:
    data = bytearray(STORES[form])
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    end = draw.draw(st.integers(0, len(data)))
    try:
        open_store(bytes(data[:end]), SECRET)
    except StoreError as error:
        assert str(error)


@pytest.mark.needs("java")
def test_stores_of_keytool_open(tmp_path: Path) -> None:
    common = ["keytool", "-genkeypair", "-alias", "b", "-dname", "CN=b", "-keyalg", "EC", "-storepass", "storepw"]
    for kind, key_password in (("JKS", "keypass1"), ("PKCS12", "storepw")):
        path = str(tmp_path / kind)
        subprocess.run(
            [*common, "-storetype", kind, "-keystore", path, "-keypass", key_password],
            check=True,
            capture_output=True,
            timeout=60,
        )
        (identity,) = read_store(path, "storepw", key_password).identities
        assert identity.certificate.subject.rfc4514_string() == "CN=b"
