"""What a listener with TLS or SASL does with a new connection.

Contexts are made anew for the next connection when a store's settings or its file have changed. A store that does not
open, or whose certificate has other names than before without leave (`ssl.allow.dn.changes`, `ssl.allow.san.changes`),
is reported, and the one before stays.
"""

from __future__ import annotations

import os
import socket
import ssl
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.authentication.gate import Gate
from moldau.broker.authentication.mechanisms import check_listener, enabled
from moldau.broker.connection import Connection
from moldau.settings import SettingError, Settings

if TYPE_CHECKING:
    from moldau.broker.node import Node
    from moldau.broker.rim.listeners import Listener
    from moldau.broker.rim.server import Server
    from moldau.broker.rim.transport import Channel
    from moldau.tls import Get, Identity

log = logs.get(__name__)

STORE_SETTINGS = tuple(
    f"ssl.{name}"
    for name in [
        "cipher.suites",
        "client.auth",
        "enabled.protocols",
        "key.password",
        "keystore.certificate.chain",
        "keystore.key",
        "keystore.location",
        "keystore.password",
        "truststore.certificates",
        "truststore.location",
        "truststore.password",
    ]
)
FILES = ("ssl.keystore.location", "ssl.truststore.location")


def listener_setting(settings: Settings, listener: str, protocol: str, name: str) -> Any:
    """Return a setting of a listener. For SASL_SSL only the listener's own `ssl.client.auth` counts, as in Kafka."""
    if name == "ssl.client.auth" and protocol == "SASL_SSL":
        key = f"listener.name.{listener.lower()}.{name}"
        if not any(key in layer for layer in (settings.broker, settings.cluster, settings.static)):
            return "none"
    return settings.listener(listener, name)


class Entrance:
    """The way in through one listener."""

    def __init__(self, node: Node, name: str, protocol: str) -> None:
        self.node = node
        self.name = name
        self.uses_tls, self.uses_sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
        self._protocol = protocol
        self._stamp: tuple[Any, ...] = ()
        self._context: ssl.SSLContext | None = None
        self._identities: tuple[Identity, ...] = ()
        if self.uses_sasl:
            check_listener(node.settings, name)
        if self.uses_tls:
            from moldau.tls import MappingRules

            self._rules = MappingRules(self._get("ssl.principal.mapping.rules"))
            self._stamp = self._stamped()
            self._context, self._identities = self._made(self._get)

    def _get(self, name: str) -> Any:
        return listener_setting(self.node.settings, self.name, self._protocol, name)

    def check(self, settings: Settings) -> None:
        """Refuse settings with which nobody could come in any more; raises SettingError."""
        if self.uses_sasl:
            check_listener(settings, self.name)
        get = partial(listener_setting, settings, self.name, self._protocol)
        if self.uses_tls and any(get(name) != self._get(name) for name in STORE_SETTINGS):
            self._check_names(self._made(get)[1])

    def open(self, server: Server, sock: socket.socket, connection: Connection, address: str) -> Channel:
        """Make the channel of a new connection."""
        if self.uses_sasl:
            connection.gate = Gate(self.node, connection)
        if not self.uses_tls:
            from moldau.broker.rim.transport import Channel

            return Channel(server, sock, connection, address)
        from moldau.broker.rim.tls import TlsChannel

        return TlsChannel(self, server, sock, connection, address)

    def identify(self, shown: bytes | None, connection: Connection) -> str | None:
        """Say who comes by their certificate, after a handshake; returns why they may not."""
        if shown and not self.uses_sasl:
            from cryptography import x509

            from moldau.tls import java_name

            name = java_name(x509.load_der_x509_certificate(shown).subject)
            principal = self._rules.principal(name)
            if principal is None:
                return f"no rule of ssl.principal.mapping.rules fits {name}"
            connection.principal = f"User:{principal}"
        if connection.gate is None:
            connection.on_through(connection)
        return None

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection, made anew if its stores have changed."""
        assert self._context is not None
        stamp = self._stamped()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                context, identities = self._made(self._get)
                self._check_names(identities)
            except SettingError as error:
                log.error(
                    "the stores of a listener cannot be used; those before stay", listener=self.name, why=str(error)
                )
            else:
                self._context, self._identities = context, identities
                log.info("the stores of a listener were loaded again", listener=self.name)
        return self._context

    def _made(self, get: Get) -> tuple[ssl.SSLContext, tuple[Identity, ...]]:
        from moldau.tls.contexts import identities_of, server_context

        return server_context(get), identities_of(get)

    def _stamped(self) -> tuple[Any, ...]:
        """Return what changes whenever a store does."""
        return tuple(map(self._get, STORE_SETTINGS)) + tuple(map(_file_stamp, map(self._get, FILES)))

    def _check_names(self, identities: tuple[Identity, ...]) -> None:
        from moldau.tls.names import alternative_names, java_name

        for before, now in zip(self._identities, identities, strict=False):
            old, new = before.certificate, now.certificate
            if old.subject != new.subject and not self._get("ssl.allow.dn.changes"):
                names = f"{java_name(old.subject)} to {java_name(new.subject)}"
                raise SettingError("ssl.allow.dn.changes", "false", f"the certificate's name changes from {names}")
            if not alternative_names(old) <= alternative_names(new) and not self._get("ssl.allow.san.changes"):
                raise SettingError("ssl.allow.san.changes", "false", "the new certificate lacks names of the old one")


def _file_stamp(path: str | None) -> tuple[int, ...] | None:
    try:
        found = os.stat(path) if path else None
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def open_entrances(node: Node, listeners: list[Listener]) -> dict[str, Entrance]:
    """Make the entrances of the listeners that need one; raises SettingError."""
    made: dict[str, Entrance] = {}
    for listener in listeners:
        if listener.protocol != "PLAINTEXT":
            entrance = made[listener.name] = Entrance(node, listener.name, listener.protocol)
            if entrance.uses_sasl and "OAUTHBEARER" in enabled(node.settings, listener.name):
                from moldau.broker.authentication.tokens import make_validator

                now_s = partial(_seconds, node)
                node.validators[listener.name] = make_validator(node.settings, listener.name, listener.host, now_s)
    return made


def _seconds(node: Node) -> float:
    return node.clock.wall_ms() / 1000
