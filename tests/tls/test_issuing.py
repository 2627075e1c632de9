"""Certificates of an authority of one's own, before clients that take the standard at its word."""

from __future__ import annotations

import ssl

import pytest
from cryptography.x509 import AuthorityKeyIdentifier, SubjectKeyIdentifier

from moldau.tls.issuing import issue, make_authority
from moldau.tls.stores import pem


def shaken_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> bool:
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(5):
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass
    return not ends


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_strict_client_takes_them(host: str) -> None:
    """As Python's are by default from 3.13 on."""
    authority = make_authority("Moldau")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issue(authority, "broker", ["localhost", "127.0.0.1"]).load_into(server)
    client = ssl.create_default_context(cadata=pem(authority.chain).decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    assert shaken_hands(server, client, host)


def test_a_certificate_names_the_key_of_its_authority() -> None:
    authority = make_authority("Moldau")
    of_authority = authority.certificate.extensions.get_extension_for_class(SubjectKeyIdentifier).value
    signed = issue(authority, "broker", []).certificate.extensions
    assert signed.get_extension_for_class(AuthorityKeyIdentifier).value.key_identifier == of_authority.key_identifier
