"""The listener with TLS that a warm broker has beside its plain one: certificates, and settings of both sides."""

import ssl
from pathlib import Path

from benchmarks.client import Options
from moldau.tls.issuing import issue, make_authority
from moldau.tls.stores import pem

STEP = 5  # from a broker's port to that of its listener with TLS


def broker_settings(home: Path, port: int) -> dict[str, str]:
    """Make certificates (ECDSA P-256), and return the settings for a broker whose plain listener is at a port."""
    authority = make_authority("benchmarks")
    broker = issue(authority, "broker", ["127.0.0.1"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "ca.pem").write_bytes(pem(authority.chain))
    (home / "broker.pem").write_bytes(broker.key_pem() + pem(broker.chain))
    listeners = {"PLAINTEXT": port, "SSL": port + STEP}
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(home / "broker.pem"),
    }


def client_settings(home: Path, port: int) -> Options:
    address = f"127.0.0.1:{port + STEP}"
    return {"brokers": address, "rd.security.protocol": "ssl", "rd.ssl.ca.location": str(home / "ca.pem")}


def client_context(home: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(home / "ca.pem"))
