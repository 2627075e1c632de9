"""Certificates for tests of HTTPS, in files as the services want them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority, and what it has signed: one for 127.0.0.1, one for a client; and one that a stranger has signed."""

    authority: Path
    server: Path
    client: Path
    stranger: Path

    @classmethod
    def within(cls, folder: Path) -> Certificates:
        ca, other = trustme.CA(), trustme.CA()
        made = cls(*(folder / f"{name}.pem" for name in ("authority", "server", "client", "stranger")))
        ca.cert_pem.write_to_path(made.authority)
        for path, issuer, name in ((made.server, ca, "127.0.0.1"), (made.client, ca, "c"), (made.stranger, other, "c")):
            issuer.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(path)
        return made

    @property
    def settings(self) -> tuple[str, ...]:
        """Of a service that speaks HTTPS, and wants to know who comes."""
        demand = ("ssl.client.authentication=REQUIRED", f"ssl.truststore.location={self.authority}")
        return (f"ssl.keystore.location={self.server}", *demand)

    def trusting(self, own: Path | None = None) -> ssl.SSLContext:
        """A client's side, with a certificate of its own or without."""
        made = ssl.create_default_context(cafile=str(self.authority))
        if own:
            made.load_cert_chain(own)
        return made
