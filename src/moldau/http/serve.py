"""A service as a process: bind, run its start, print `ready http://HOST:PORT`, serve, and end cleanly on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from moldau.settings import ServiceSettings, SettingError

_LISTEN = re.compile(r"(?:(https?)://)?(?:\[([0-9a-fA-F:.%]+)\]|([^:/\[\]\s]*)):(\d{1,5})/?")
BACKLOG = 1024


class ServeError(Exception):
    """A mistake of the user or of the surroundings: one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen. Port 0 takes any."""

    host: str
    port: int
    scheme: str = "http"

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def parse_listen(text: str, settings: ServiceSettings) -> Listen:
    """Read `HOST:PORT` or a URL. It is HTTPS if the URL says so, or if it says nothing and there is a certificate."""
    match = _LISTEN.fullmatch(text)
    if not match or int(match[4]) > 65535:
        raise SettingError("listeners", text, "a listener is written HOST:PORT or http://HOST:PORT")
    scheme = match[1] or ("https" if settings["ssl.keystore.location"] else "http")
    if scheme == "https" and not settings["ssl.keystore.location"]:
        raise SettingError("ssl.keystore.location", "", "HTTPS needs a PEM file with a key and its certificate")
    return Listen(match[2] or match[3] or "0.0.0.0", int(match[4]), scheme)


def bind(listen: Listen) -> tuple[socket.socket, Listen]:
    """Bind a socket, and return it with its address now that the port is known."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listen.host, listen.port))
    except OSError as error:
        bound.close()
        raise ServeError(f"Cannot listen on {listen.url}: {error.strerror or error}. Choose another port.") from None
    return bound, Listen(listen.host, bound.getsockname()[1], listen.scheme)


class Server(uvicorn.Server):
    """uvicorn on a socket that is bound already, with signals left to whoever runs it."""

    def __init__(self, app: ASGIApp, listen: Listen, settings: ServiceSettings, *, lifespan: bool = False) -> None:
        config = uvicorn.Config(
            app,
            lifespan="on" if lifespan else "off",
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=max(1, settings["idle.timeout.ms"] // 1000),
            timeout_graceful_shutdown=max(1, settings["shutdown.graceful.ms"] // 1000),
        )
        config.load()
        if listen.scheme == "https":
            config.ssl = tls(settings)
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


def tls(settings: ServiceSettings) -> ssl.SSLContext:
    """Make the server's side of TLS from PEM files."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    name = "ssl.keystore.location"
    try:
        made.load_cert_chain(settings[name], password=settings["ssl.key.password"] or "")
        demand = settings["ssl.client.authentication"]
        if demand != "NONE":
            name = "ssl.truststore.location"
            made.load_verify_locations(settings[name])
            made.verify_mode = ssl.CERT_REQUIRED if demand == "REQUIRED" else ssl.CERT_OPTIONAL
    except OSError as error:  # ssl.SSLError is one
        raise SettingError(name, settings[name], f"it cannot be used: {error.strerror or error}") from None
    return made


Build = Callable[[Listen], AbstractContextManager[ASGIApp]]


def run(
    listen: Listen, settings: ServiceSettings, build: Build, *, stop_with_stdin: bool = False, lifespan: bool = False
) -> None:
    """Serve until a signal, or until stdin ends where that was asked for.

    `build` gets the address with its port, and gives the application for as long as its context is open; what it
    raises on the way in comes out here. With `lifespan` the application itself is told of its start and its end too.
    """
    import uvloop

    bound, listen = bind(listen)
    with bound, build(listen) as app:
        server = Server(app, listen, settings, lifespan=lifespan)
        _stop_on(server, stop_with_stdin)
        uvloop.run(_live(server, bound, listen))


async def _live(server: Server, bound: socket.socket, listen: Listen) -> None:
    serving = asyncio.ensure_future(server.serve(sockets=[bound]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.001)
    if server.started:
        print(f"ready {listen.url}", flush=True)  # noqa: T201
    await serving


def _stop_on(server: Server, stop_with_stdin: bool) -> None:
    def stop(*_: Any) -> None:
        if server.should_exit:
            os._exit(1)
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if stop_with_stdin:
        threading.Thread(target=lambda: (os.read(0, 1), stop()), name="stdin", daemon=True).start()
