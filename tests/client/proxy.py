"""Something between a client and a broker: it passes bytes on, perhaps out of TLS, until it is told to cut."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import Self


class Proxy:
    """Listens on a port of its own and passes everything on to the broker."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self._target = port
        self._context = context
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.connections = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """End all connections, in the middle of whatever they do."""
        while self._open:
            one = self._open.pop()
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError):
            if self._context is not None:
                client = self._context.wrap_socket(client, server_side=True)
            broker = socket.create_connection(("127.0.0.1", self._target))
            self._open += [client, broker]
            self.connections += 1
            threading.Thread(target=_pass_on, args=(broker, client), daemon=True).start()
            _pass_on(client, broker)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
