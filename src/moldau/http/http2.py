"""HTTP/2 on the port of HTTP/1.1: by prior knowledge without TLS, by ALPN with it.

A connection that begins with the preface of HTTP/2 is hypercorn's, every other one uvicorn's, which is twice as fast
with HTTP/1.1. Both call the same application.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from h2.events import DataReceived
from h2.exceptions import ProtocolError
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.protocol.h2 import H2Protocol
from starlette.types import ASGIApp

from moldau.http.callers import with_certificate

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MOST_READ = 1 << 16


class Either(asyncio.Protocol):
    """The first bytes of a connection; they decide whose it is."""

    def __init__(self, http1: Callable[..., Any], app: ASGIApp, idle_s: float, **given: Any) -> None:
        self._http1, self._app, self._idle_s, self._given = http1, app, idle_s, given
        self._begun = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport  # uvloop's is not a subclass of asyncio's
        self._timer = asyncio.get_running_loop().call_later(self._idle_s, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._begun += data
        if len(self._begun) >= len(PREFACE) or not PREFACE.startswith(self._begun):
            self._timer.cancel()
        if self._begun[: len(PREFACE)] == PREFACE:
            _Connection(self._transport, self._app, self._idle_s, self._given["server_state"]).start(self._begun)
        elif not PREFACE.startswith(self._begun):
            protocol = self._http1(**self._given)
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            protocol.data_received(self._begun)


class _Patient(TCPServer):
    """hypercorn's connection, which does not mind a body whose request has been answered already, say with 401.

    As it is, such bytes end the connection, and with it all other requests on it.
    """

    async def _read_data(self) -> None:
        wrapped = self.protocol
        if not isinstance(wrapped.protocol, H2Protocol):  # without TLS nothing has said yet which version it is
            parts = (wrapped.app, wrapped.config, wrapped.context, wrapped.task_group, wrapped.state, wrapped.ssl)
            wrapped.protocol = H2Protocol(*parts, wrapped.client, wrapped.server, wrapped.send)
            await wrapped.protocol.initiate()
        protocol: Any = wrapped.protocol
        protocol._handle_events = partial(_handle, protocol, protocol._handle_events)
        await super()._read_data()


async def _handle(protocol: H2Protocol, handle: Callable[[list[Any]], Awaitable[None]], events: list[Any]) -> None:
    for event in events:
        if isinstance(event, DataReceived) and event.stream_id not in protocol.streams:
            with contextlib.suppress(ProtocolError):  # the stream may be gone altogether
                protocol.connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
        else:
            await handle([event])


class _Connection:
    """A connection of HTTP/2, among the connections that uvicorn waits for when it stops."""

    def __init__(self, transport: asyncio.Transport, app: ASGIApp, idle_s: float, state: Any) -> None:
        self._transport, self._app, self._state = transport, app, state
        self._context = WorkerContext(None)
        self._config = Config()
        self._config.accesslog = None
        self._config.keep_alive_timeout = idle_s
        self._config.include_server_header = False

    def start(self, begun: bytes) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MOST_READ, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        reader.feed_data(begun)
        writer = asyncio.StreamWriter(self._transport, protocol, reader, loop)
        app: Any = with_certificate(self._app, self._transport)
        server = _Patient(ASGIWrapper(app), loop, self._config, self._context, {}, reader, writer)
        self._state.connections.add(self)
        self._task = loop.create_task(server.run())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._state.connections.discard(self)
        if not task.cancelled() and task.exception() is not None:
            task.get_loop().call_exception_handler({"message": "HTTP/2 failed", "exception": task.exception()})

    def shutdown(self) -> None:
        """Take no more requests; the answers that have begun are sent to their ends."""
        self._closing = asyncio.get_running_loop().create_task(self._context.terminated.set())
