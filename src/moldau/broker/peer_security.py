"""How this node reaches others: the security of the listener between brokers, and of that of the controllers."""

from __future__ import annotations

import os
from base64 import b64encode
from functools import lru_cache
from typing import TYPE_CHECKING

from moldau.settings import Settings, endpoints, protocol_of

if TYPE_CHECKING:
    import ssl

    from moldau.broker.node import Node
    from moldau.broker.outbox import Login, Peer

NONCE_BYTES = 18
FILES = ("ssl.keystore.location", "ssl.truststore.location")


def reached_by(settings: Settings, is_controller: bool) -> tuple[str, str]:
    """Return the listener by which brokers or controllers are reached, and its protocol."""
    if is_controller:
        name = settings["controller.listener.names"][0]
    else:
        name = between_brokers(settings) or next((one.name for one in endpoints(settings)), "PLAINTEXT")
    return name.upper(), protocol_of(settings, name.upper())


def between_brokers(settings: Settings) -> str:
    """Return the listener that the settings name for brokers; empty if they name none."""
    if settings["inter.broker.listener.name"]:
        return settings["inter.broker.listener.name"].upper()
    is_given = "security.inter.broker.protocol" in settings.static
    return settings["security.inter.broker.protocol"] if is_given else ""


def check_peers(settings: Settings) -> None:
    """Refuse to start with credentials or stores with which nobody can be reached; raises SettingError."""
    for is_controller in (False, True):
        listener, protocol = reached_by(settings, is_controller)
        if protocol.endswith("SSL"):
            _context(settings, listener, ())
        if protocol.startswith("SASL"):
            from moldau.broker.authentication.mechanisms import client_exchange

            client_exchange(settings, listener, _mechanism(settings, is_controller), "")


def log_in(node: Node, peer: Peer) -> tuple[str, Login] | None:
    """Begin a login at a peer, if its listener has SASL."""
    listener, protocol = _security(node, peer.is_controller)
    if not protocol.startswith("SASL"):
        return None
    from moldau.broker.authentication.mechanisms import client_exchange

    mechanism = _mechanism(node.settings, peer.is_controller)
    nonce = b64encode(node.random.randbytes(NONCE_BYTES)).decode()
    return mechanism, client_exchange(node.settings, listener, mechanism, nonce, peer.host)


def waits_for_logins(settings: Settings) -> bool:
    """Say whether a login at a peer asks a third party first, as Kerberos does."""
    ways = {is_controller: reached_by(settings, is_controller)[1] for is_controller in (False, True)}
    return any(
        protocol.startswith("SASL") and _mechanism(settings, is_controller) == "GSSAPI"
        for is_controller, protocol in ways.items()
    )


def _mechanism(settings: Settings, is_controller: bool) -> str:
    return settings[f"sasl.mechanism.{'controller' if is_controller else 'inter.broker'}.protocol"]


def tls_for(node: Node, peer: Peer) -> ssl.SSLContext | None:
    """Return the context for a connection to a peer, if its listener has TLS."""
    listener, protocol = _security(node, peer.is_controller)
    if not protocol.endswith("SSL"):
        return None
    settings = node.settings
    stamps = tuple(_stamp(settings.listener(listener, name)) for name in FILES)
    return _context(settings, listener, stamps)


def _security(node: Node, is_controller: bool) -> tuple[str, str]:
    return _cached_security(node.settings, is_controller)


@lru_cache(maxsize=16)
def _cached_security(settings: Settings, is_controller: bool) -> tuple[str, str]:
    return reached_by(settings, is_controller)


@lru_cache(maxsize=16)
def _context(settings: Settings, listener: str, stamps: tuple[int, ...]) -> ssl.SSLContext:
    """Make a context; it is kept as long as settings and files are the same."""
    from moldau.tls import client_context

    return client_context(lambda name: settings.listener(listener, name))


def _stamp(path: str | None) -> int:
    return os.stat(path).st_mtime_ns if path else 0
