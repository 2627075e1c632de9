"""A service as a process: bind, run its start, print `ready http://HOST:PORT`, serve, and end cleanly on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import select
import signal
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from moldau import logs
from moldau.http.callers import with_certificate
from moldau.http.heads import bounded
from moldau.settings import ServiceSettings, SettingError

log = logging.getLogger(__name__)
_LISTEN = re.compile(r"(?:(https?)://)?(?:\[([0-9a-fA-F:.%]+)\]|([^:/\[\]\s]*)):(\d{1,5})/?")
BACKLOG = 1024
LOOK_EVERY_S = 0.5  # for another certificate
STORES = (
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.truststore.location",
    "ssl.truststore.password",
)


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
        raise SettingError("ssl.keystore.location", "", "HTTPS needs a store with a key and its certificate")
    return Listen(match[2] or match[3] or "0.0.0.0", int(match[4]), scheme)


def bind(listen: Listen) -> tuple[socket.socket, Listen]:
    """Listen on a socket, and return it with its address now that the port is known."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listen.host, listen.port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise ServeError(f"Cannot listen on {listen.url}: {error.strerror or error}. Choose another port.") from None
    return bound, Listen(listen.host, bound.getsockname()[1], listen.scheme)


class Server(uvicorn.Server):
    """uvicorn on a socket that is bound already, with signals left to whoever runs it.

    With `http2` the port speaks HTTP/2, too, and websockets are accepted.
    """

    def __init__(
        self,
        app: ASGIApp,
        listen: Listen,
        settings: ServiceSettings,
        *,
        lifespan: bool = False,
        http2: bool = False,
    ) -> None:
        idle_s = max(1, settings["idle.timeout.ms"] // 1000)
        config = uvicorn.Config(
            app,
            lifespan="on" if lifespan else "off",
            ws="wsproto" if http2 else "auto" if lifespan else "none",  # others need not load their code
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=idle_s,
            timeout_graceful_shutdown=max(1, settings["shutdown.graceful.ms"] // 1000),
        )
        config.load()
        config.http_protocol_class = bounded(config.http_protocol_class, idle_s)
        self.reload_tls: Callable[[], None] = lambda: None
        if listen.scheme == "https":
            config.ssl = tls(settings)
            config.http_protocol_class = with_certificates(config.http_protocol_class)
            config.ws_protocol_class = config.ws_protocol_class and with_certificates(config.ws_protocol_class)
            self.reload_tls = Reload(settings, config.ssl)
        if http2:
            from moldau.http.http2 import Either  # loads hypercorn, for which other services do not wait

            config.http_protocol_class = partial(Either, config.http_protocol_class, app, idle_s)  # type: ignore
            if config.ssl is not None:
                config.ssl.set_alpn_protocols(["h2", "http/1.1"])
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


def tls(settings: ServiceSettings) -> ssl.SSLContext:
    """Make the server's side of TLS; client certificates are asked for under Confluent's name of the setting."""
    from moldau.tls import server_context  # loads cryptography, for which a service without TLS does not wait

    given = {name: settings[name] for name in STORES}
    made = server_context((given | {"ssl.client.auth": settings["ssl.client.authentication"].lower()}).get)
    made.sslobject_class = Reporting
    return made


class Reporting(ssl.SSLObject):
    """A connection's TLS that reports why its handshake failed: event loops close such a connection and say nothing."""

    quota = logs.Quota()

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            from moldau.tls import words

            if (kept := self.quota.admit("")) is not None:
                log.warning("a TLS handshake failed: %s%s", words(error), f" ({kept} more before)" if kept else "")
            raise


def with_certificates(protocol: Any) -> Any:
    """Return uvicorn's protocol with the client's certificate in the scope of its requests."""

    class Knowing(protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.app = with_certificate(self.app, transport)

    return Knowing


class Reload:
    """Loads the key and certificate of a context again when their file changes; those that cannot be used stay out."""

    def __init__(self, settings: ServiceSettings, context: ssl.SSLContext) -> None:
        self._settings, self._context = settings, context
        self._stamp = self._seen()

    def __call__(self) -> None:
        if (stamp := self._seen()) == self._stamp:
            return
        from moldau.tls.contexts import identities_of

        self._stamp = stamp
        try:
            for identity in identities_of({name: self._settings[name] for name in STORES}.get):
                identity.load_into(self._context)
            log.info("the certificate was loaded again")
        except (SettingError, ssl.SSLError) as error:
            log.warning("the certificate stays as it is: %s", error)

    def _seen(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._settings["ssl.keystore.location"])
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


Build = Callable[[Listen], AbstractContextManager[ASGIApp]]
AwaitUse = Callable[[Callable[[float], bool]], object]  # gets what waits so many seconds, and tells of a connection


def run(
    listen: Listen,
    settings: ServiceSettings,
    build: Build,
    *,
    await_use: AwaitUse | None = None,
    start_with_stdin: bool = False,
    stop_with_stdin: bool = False,
    lifespan: bool = False,
    http2: bool = False,
) -> None:
    """Serve until a signal, or until stdin ends where that was asked for.

    Whoever connects before the service is ready waits for it. With `start_with_stdin` it begins when something is
    written to stdin, and not at all if stdin ends before. With `await_use` it prints `idle http://HOST:PORT` and begins
    when somebody connects, or when `await_use` returns.

    `build` gets the address with its port, and gives the application for as long as its context is open; what it
    raises on the way in comes out here. With `lifespan` the application itself is told of its start and its end too.
    """
    import uvloop

    bound, listen = bind(listen)
    if start_with_stdin and not os.read(0, 1):
        bound.close()
        return
    if stop_with_stdin:
        end_with_stdin()
    if await_use is not None:
        print(f"idle {listen.url}", flush=True)  # noqa: T201
        await_use(lambda seconds: bool(select.select([bound], [], [], seconds)[0]))
    with bound, build(listen) as app:
        server = Server(app, listen, settings, lifespan=lifespan, http2=http2)
        _stop_on_signals(server)
        uvloop.run(_live(server, bound, listen))


async def _live(server: Server, bound: socket.socket, listen: Listen) -> None:
    serving = asyncio.ensure_future(server.serve(sockets=[bound]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.001)
    if server.started:
        print(f"ready {listen.url}", flush=True)  # noqa: T201
    while not (await asyncio.wait([serving], timeout=LOOK_EVERY_S))[0]:
        server.reload_tls()
    await serving


def _stop_on_signals(server: Server) -> None:
    def stop(*_: Any) -> None:
        if server.should_exit:
            os._exit(1)
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def end_with_stdin() -> None:
    """Watch stdin in a thread, and end as with SIGTERM when it ends: at once, if the service is still starting."""
    watch = lambda: (os.read(0, 1), os.kill(os.getpid(), signal.SIGTERM))  # noqa: E731
    threading.Thread(target=watch, name="stdin", daemon=True).start()
