"""One request to a broker over a plain socket, for scripts and tests that must not need a client library."""

from __future__ import annotations

import socket
import struct
from typing import Any

from moldau.wire import codec, frames, messages
from moldau.wire.errors import WireError

TIMEOUT_S = 30.0


def call(address: tuple[str, int], request: Any, version: int, timeout_s: float = TIMEOUT_S) -> Any:
    """Send the request in this version on a connection of its own and return the response."""
    key = request.SCHEMA.key
    with socket.create_connection(address, timeout_s) as sock:
        sock.sendall(frames.request_frame(request, version, 1, "moldau"))
        (size,) = struct.unpack(">i", _exactly(sock, 4))
        data = _exactly(sock, size)
    _, position = frames.response_header(key, version, data)
    return codec.decode(messages.response_class(key), version, data, position)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise WireError("the broker closed the connection")
        data += piece
    return bytes(data)
