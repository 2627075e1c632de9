"""Clients whose handshake with a service fails: each is closed, at a bounded cost, and a line says why."""

from __future__ import annotations

import logging
import resource
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from moldau import logs
from moldau.http.serve import Reporting
from tests.certificates import Certificates
from tests.http.test_service import serving
from tests.tls.keystores import AUTHORITY, Pair, chain, issue, self_signed, shown

ROOT = issue("root", extensions=(AUTHORITY,))
CHAINS = {
    "as deep as it may be": chain(ROOT, 50),
    "too deep": chain(ROOT, 130),
    "too large": chain(ROOT, 4, 350_000),
    "expired": [ROOT, issue("c", ROOT, days=(-2, -1))],
    "not yet valid": [ROOT, issue("c", ROOT, days=(1, 2))],
    "self-signed": [ROOT, self_signed("c")],
}
MOST_KB = 32 * 1024


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Certificates]]:
    folder = tmp_path_factory.mktemp("tls")
    known, trusted = Certificates.within(folder), folder / "roots.pem"
    trusted.write_bytes(ROOT.certificate.public_bytes(Encoding.PEM))
    stores = (f"ssl.keystore.location={known.server}", f"ssl.truststore.location={trusted}")
    with serving(*stores, "ssl.client.authentication=REQUIRED") as url:
        yield url, known


def ask(secured: tuple[str, Certificates], folder: Path, pairs: list[Pair]) -> int:
    """Ask for something with a chain of certificates; returns the status."""
    url, known = secured
    own = folder / "own.pem"
    own.write_bytes(shown(pairs))
    return httpx.get(f"{url}/things/x", verify=known.trusting(own)).status_code


def test_a_chain_of_certificates_may_be_long(secured: tuple[str, Certificates], tmp_path: Path) -> None:
    assert ask(secured, tmp_path, CHAINS["as deep as it may be"]) == 200


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("too deep", "certificate chain too long"),
        ("too large", "excessive message size"),
        ("expired", "certificate has expired"),
        ("not yet valid", "certificate is not yet valid"),
        ("self-signed", "self-signed certificate"),
    ],
)
def test_a_certificate_that_does_not_count_is_refused_with_a_line(
    secured: tuple[str, Certificates], tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, reason: str
) -> None:
    Reporting.quota = logs.Quota()
    with caplog.at_level(logging.WARNING, "moldau.http"):
        for _ in range(3):
            with pytest.raises(httpx.TransportError):
                ask(secured, tmp_path, CHAINS[name])
    assert [record.getMessage() for record in caplog.records] == [f"a TLS handshake failed: {reason}"] * 3


def test_large_certificates_cost_no_memory(secured: tuple[str, Certificates], tmp_path: Path) -> None:
    ask(secured, tmp_path, CHAINS["as deep as it may be"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20):
        with pytest.raises(httpx.TransportError):
            ask(secured, tmp_path, CHAINS["too large"])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KB  # 20 MB were sent


def test_a_flood_of_failed_handshakes_is_a_few_lines(
    secured: tuple[str, Certificates], caplog: pytest.LogCaptureFixture
) -> None:
    Reporting.quota = logs.Quota()
    host, _, port = secured[0].removeprefix("https://").partition(":")
    for _ in range(3 * logs.LINES):
        with socket.create_connection((host, int(port)), timeout=20) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert sock.recv(100) == b""
    said = [record.getMessage() for record in caplog.records if "TLS" in record.getMessage()]
    assert said == ["a TLS handshake failed: http request"] * logs.LINES


def test_a_hello_on_a_plain_port_is_answered_as_plain_text() -> None:
    with serving() as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as sock, pytest.raises(ssl.SSLError):
            ssl.create_default_context().wrap_socket(sock, server_hostname="localhost")
        assert httpx.get(f"{url}/things/x").status_code == 200
