"""Contexts: what the settings allow is what a handshake agrees on, and what cannot be done is refused."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from moldau.settings import SettingError
from moldau.tls import client_context, server_context
from tests.tls.keystores import AUTHORITY, FOR_CLIENTS, FOR_SERVERS, issue, jks, self_signed

PAIR, OTHER = self_signed(), self_signed("other")
OURS = {"ssl.keystore.certificate.chain": PAIR.pem.decode()}
TRUST = {"ssl.truststore.certificates": PAIR.pem.decode(), "ssl.endpoint.identification.algorithm": "https"}
ALL_OF_1_3 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
OLD_SUITE = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


def shake(server: dict[str, Any], client: dict[str, Any]) -> tuple[str | None, str]:
    """Perform a handshake in memory; returns version and cipher."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = server_context(server.get).wrap_bio(to_server, to_client, server_side=True)
    two = client_context(client.get).wrap_bio(to_client, to_server, server_hostname="localhost")
    done: set[ssl.SSLObject] = set()
    for _ in range(10):
        for side in (two, one):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
        if len(done) == 2:
            break
    with suppress(ssl.SSLWantReadError):
        two.read(1)  # a refusal of the client's certificate comes after its handshake
    cipher = one.cipher()
    assert cipher is not None
    return one.version(), cipher[0]


def test_the_newest_version_is_taken() -> None:
    assert shake(OURS, TRUST)[0] == "TLSv1.3"


def test_versions_and_suites_can_be_limited() -> None:
    assert shake(OURS | {"ssl.enabled.protocols": ("TLSv1.2",)}, TRUST)[0] == "TLSv1.2"
    assert shake(OURS | {"ssl.cipher.suites": (OLD_SUITE,)}, TRUST) == ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256")
    assert shake(OURS | {"ssl.cipher.suites": ALL_OF_1_3}, TRUST)[0] == "TLSv1.3"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ssl.enabled.protocols", ("TLSv1.1",), "is not offered"),
        ("ssl.cipher.suites", ("TLS_RSA_WITH_RC4_128_MD5",), "no longer safe"),
        ("ssl.cipher.suites", (*ALL_OF_1_3[:2], OLD_SUITE), "it lacks TLS_CHACHA20"),
        ("ssl.client.auth", "required", "needs a trust store"),
        ("ssl.keystore.certificate.chain", "", "TLS needs a key"),
        ("ssl.keystore.certificate.chain", "nonsense", "neither PEM"),
        ("ssl.truststore.location", "/no/such/file", "No such file"),
    ],
)
def test_what_cannot_be_done_is_refused(name: str, value: Any, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        server_context((OURS | {name: value}).get)


def test_suites_of_another_version_than_the_enabled_one_are_refused() -> None:
    with pytest.raises(SettingError, match="no suite of it"):
        server_context((OURS | {"ssl.enabled.protocols": ("TLSv1.3",), "ssl.cipher.suites": (OLD_SUITE,)}).get)


def test_a_certificate_of_a_stranger_is_refused() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(OURS, TRUST | {"ssl.truststore.certificates": OTHER.pem.decode()})


def test_a_client_must_show_a_certificate_where_it_is_required(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(jks(OTHER, "pw", "", trusted=True))
    demand = {"ssl.client.auth": "required", "ssl.truststore.location": str(store), "ssl.truststore.password": "pw"}
    assert shake(OURS | demand, TRUST | {"ssl.keystore.certificate.chain": OTHER.pem.decode()})[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        shake(OURS | demand, TRUST)
    with pytest.raises(ssl.SSLError):
        shake(OURS | demand, TRUST | {"ssl.keystore.certificate.chain": self_signed().pem.decode()})


ROOT = issue("root", extensions=(AUTHORITY,))
BAD = {
    "expired": (issue("x", ROOT, days=(-2, -1)), "expired"),
    "not yet valid": (issue("x", ROOT, days=(1, 2)), "not yet valid"),
    "self-signed": (self_signed("x"), "self-signed"),
    "of a stranger": (issue("x", issue("root", extensions=(AUTHORITY,))), "signature failure"),
    "signed by no authority": (issue("x", issue("y", ROOT)), "unable to get local issuer"),
}
OF_SERVERS = BAD | {
    "of another host": (issue("x", ROOT, hosts=("else.example",)), "Hostname mismatch"),
    "of a client": (issue("x", ROOT, extensions=(FOR_CLIENTS,)), "certificate purpose"),
}
OF_CLIENTS = BAD | {"of a server": (issue("x", ROOT, extensions=(FOR_SERVERS,)), "certificate purpose")}
TRUSTED = {"ssl.truststore.certificates": ROOT.certificate.public_bytes(Encoding.PEM).decode()}
GOOD = {"ssl.keystore.certificate.chain": issue("x", ROOT).pem.decode()}


def test_a_certificate_of_the_authority_counts() -> None:
    demand = {"ssl.client.auth": "required"}
    assert shake(GOOD | TRUSTED | demand, TRUST | TRUSTED | GOOD)[0] == "TLSv1.3"


@pytest.mark.parametrize("name", OF_SERVERS)
def test_a_client_refuses_a_servers_certificate(name: str) -> None:
    pair, reason = OF_SERVERS[name]
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        shake({"ssl.keystore.certificate.chain": pair.pem.decode()}, TRUST | TRUSTED)


@pytest.mark.parametrize("name", OF_CLIENTS)
def test_a_server_refuses_a_clients_certificate(name: str) -> None:
    pair, reason = OF_CLIENTS[name]
    own = {"ssl.keystore.certificate.chain": pair.pem.decode()}
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        shake(GOOD | TRUSTED | {"ssl.client.auth": "required"}, TRUST | TRUSTED | own)


def test_no_key_touches_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a temporary file")

    monkeypatch.setattr(tempfile, "mkstemp", never)
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", never)
    server_context(OURS.get)
