"""A broker made of a function: request in, response out. It tells what no real broker can be made to tell."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from moldau.wire import codec, frames, messages, schema
from moldau.wire import messages as m

# A message, raw bytes that stand for the whole answer, or None: no answer, ever.
Answer = Callable[[Any], Any]


class Fake:
    """Listens until the `with` ends. `seen` has the requests, but for ApiVersions, which it answers itself."""

    def __init__(self, answer: Answer, versions: dict[int, tuple[int, int]] | None = None) -> None:
        self.answer = answer
        self.seen: list[Any] = []
        self.versions = versions or {}
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []

    @property
    def port(self) -> int:
        return self._server.getsockname()[1]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        for one in (self._server, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, EOFError):
            while True:
                frame = _exactly(connection, struct.unpack(">i", _exactly(connection, 4))[0])
                self._reply(connection, frame)

    def _reply(self, connection: socket.socket, frame: bytes) -> None:
        key, version, correlation_id, _, at = frames.request_header(frame)
        request = codec.decode(messages.request_class(key), version, frame, at)
        if key == frames.API_VERSIONS:
            answer = self._spoken()
        else:
            self.seen.append(request)
            answer = self.answer(request)
        if isinstance(answer, bytes):
            connection.sendall(answer)
            connection.close()
        elif answer is not None:
            connection.sendall(b"".join(frames.response_frame(key, version, correlation_id, answer)))

    def _spoken(self) -> Any:
        every = {head.key: head.versions for (kind, _), head in schema.by_key().items() if kind == "request"}
        rows = [m.ApiVersionsResponse_ApiVersion(key, *span) for key, span in {**every, **self.versions}.items()]
        return m.ApiVersionsResponse(api_keys=rows)

    def metadata(
        self, topic: str = "", leader: int = 1, epoch: int = 0, *, others: dict[int, int] | None = None
    ) -> Any:
        """A Metadata response: this is broker 1; the others have the ports given."""
        ports = {1: self.port, **(others or {})}
        brokers = [m.MetadataResponse_MetadataResponseBroker(node, "127.0.0.1", port) for node, port in ports.items()]
        parts = [m.MetadataResponse_MetadataResponsePartition(0, 0, leader, epoch)]
        topics = [m.MetadataResponse_MetadataResponseTopic(0, topic, b"i" * 16, False, parts)] if topic else []
        return m.MetadataResponse(brokers=brokers, cluster_id="fake", controller_id=1, topics=topics)

    def coordinator(self, key: str, port: int | None = None) -> Any:
        row = m.FindCoordinatorResponse_Coordinator(key, 1, "127.0.0.1", port or self.port)
        return m.FindCoordinatorResponse(coordinators=[row])


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (piece := connection.recv(size - len(data))):
            raise EOFError
        data += piece
    return data
