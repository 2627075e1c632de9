"""Listeners: bound sockets, and the addresses that clients are told.

`listeners` says where to bind, `advertised.listeners` what to tell; both are written as in Kafka, NAME://HOST:PORT.
Port 0 takes any free port, and the real one is advertised. Without settings only this machine can connect.

A wildcard address is never advertised. Where `listeners` has one (0.0.0.0, [::] or no host) and
`advertised.listeners` is silent, clients are told this machine's host name if it resolves here, as Kafka does for an
empty host, and the loopback address otherwise. Clients on machines that do not know the name need
`advertised.listeners`.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import NamedTuple

from moldau.settings import Endpoint, SettingError, Settings, endpoints

WILDCARDS = ("", "0.0.0.0", "::", "0:0:0:0:0:0:0:0")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class ListenError(Exception):
    """A listener cannot be opened: a sentence for the user."""


class Listener(NamedTuple):
    """A bound socket, its name and protocol, where it listens and what clients are told."""

    name: str
    protocol: str
    socket: socket.socket
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    is_controller: bool

    @property
    def address(self) -> str:
        return join(self.host, self.port)

    @property
    def advertised(self) -> str:
        """As in `advertised.listeners`."""
        return f"{self.name}://{join(self.advertised_host, self.advertised_port)}"


def join(host: str, port: int) -> str:
    """Write `host:port`, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split(address: str) -> tuple[str, int]:
    """Read `host:port` or `[v6]:port`."""
    host, colon, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdigit() or int(port) > 65535 or (":" in bare and bare == host):
        raise SettingError("--listen", address, "an address is written HOST:PORT, an IPv6 one [HOST]:PORT")
    return bare, int(port)


def open_listeners(settings: Settings) -> list[Listener]:
    """Bind all listeners of this process's roles, or none: raises SettingError or ListenError."""
    told, roles = _advertised(settings), settings["process.roles"]
    opened: list[Listener] = []
    try:
        for of_controller in (False, True):
            if ("controller" if of_controller else "broker") in roles:
                for endpoint in endpoints(settings, of_controller=of_controller):
                    opened.append(_open(endpoint, told.get(endpoint.name), of_controller))
    except BaseException:
        for listener in opened:
            listener.socket.close()
        raise
    return opened


def _advertised(settings: Settings) -> dict[str, Endpoint]:
    if "advertised.listeners" not in settings.static:
        return {}
    names = {one.name for kind in (False, True) for one in endpoints(settings, of_controller=kind)}
    named = (one for kind in (False, True) for one in endpoints(settings, "advertised.listeners", of_controller=kind))
    told = {endpoint.name: endpoint for endpoint in named}
    for name, endpoint in told.items():
        address = f"{name}://{join(endpoint.host, endpoint.port)}"
        if name not in names:
            raise SettingError("advertised.listeners", address, f"listeners has no {name}")
        if endpoint.host in WILDCARDS[1:]:
            raise SettingError("advertised.listeners", address, "clients cannot connect to a wildcard; name a host")
    return told


def _open(endpoint: Endpoint, told: Endpoint | None, is_controller: bool) -> Listener:
    if endpoint.protocol not in PROTOCOLS:
        reason = f"{endpoint.protocol} is not a security protocol; those are {', '.join(PROTOCOLS)}"
        raise SettingError("listeners", f"{endpoint.name}://{join(endpoint.host, endpoint.port)}", reason)
    bound = _bind(endpoint.host, endpoint.port)
    port = bound.getsockname()[1]
    told_host = told.host if told and told.host else ("" if endpoint.host in WILDCARDS else endpoint.host)
    return Listener(
        name=endpoint.name,
        protocol=endpoint.protocol,
        socket=bound,
        host=endpoint.host or "0.0.0.0",
        port=port,
        advertised_host=told_host or own_name(),
        advertised_port=told.port if told and told.port else port,
        is_controller=is_controller,
    )


def _bind(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ListenError(f"Cannot listen on {join(host, port)}: the host is unknown ({error.strerror}).") from None
    # A name that has both gets IPv4, as with Java: clients try both, and most know only the one.
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host not in WILDCARDS)
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise ListenError(f"Cannot listen on {join(host, port)}: {_advice(error)}") from None
    return sock


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "the port is taken. Stop the other program, or choose another port (0 takes any free one)."
        case errno.EACCES:
            return "this user may not use the port. Choose one above 1023."
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address. Listen on one it has, 127.0.0.1 or 0.0.0.0."
        case _:
            return f"{os.strerror(error.errno or 0)}."


def own_name() -> str:
    """Return this machine's name where it resolves, otherwise the loopback address."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "127.0.0.1"
    return name
