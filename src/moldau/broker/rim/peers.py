"""The network side of the node: connections that it opens to others, over asyncio. The lines of outbox.py decide."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.wire.errors import WireError

if TYPE_CHECKING:
    from moldau.broker.outbox import Line, Peer

log = logs.get(__name__)

FIRST_SIZE = 16 * 1024
"""Bytes of a connection's buffer; it grows for a larger response, and shrinks afterwards."""
_LENGTH = Struct(">i").unpack_from


class Peers:
    """Opens a connection for each line that asks for one. All its methods run on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settle: Callable[[], None],
        max_frame: int,
        context_for: Callable[[Peer], ssl.SSLContext | None] = lambda _: None,
    ) -> None:
        self.loop = loop
        self.settle = settle
        self.max_frame = max_frame
        self.context_for = context_for
        self._attempts: dict[Line, asyncio.Task[None]] = {}
        self._links: dict[Line, Link] = {}

    def connect(self, line: Line) -> None:
        self._attempts[line] = self.loop.create_task(self._connect(line))

    async def _connect(self, line: Line) -> None:
        host, port = line.peer.host, line.peer.port
        try:
            context = self.context_for(line.peer)
            await self.loop.create_connection(lambda: Link(self, line), host, port, ssl=context)
        except OSError as error:
            del self._attempts[line]
            self.end(line, error.strerror or str(error), is_refused=isinstance(error, ConnectionRefusedError))

    def opened(self, line: Line, link: Link) -> None:
        """A connection is there."""
        del self._attempts[line]
        self._links[line] = link
        line.open()

    def write(self, line: Line) -> None:
        if line.out:
            self._links[line].transport.write(b"".join(line.out))
            line.out.clear()

    def close(self, line: Line) -> None:
        if (attempt := self._attempts.pop(line, None)) is not None:
            attempt.cancel()
        if (link := self._links.pop(line, None)) is not None:
            link.transport.abort()

    def lost(self, line: Line, link: Link, reason: str) -> None:
        """A connection ended, by the peer or for its fault."""
        if self._links.get(line) is link:
            self.close(line)
            self.end(line, reason)

    def end(self, line: Line, reason: str, *, is_refused: bool = False) -> None:
        log.debug("lost", peer=str(line.peer), reason=reason)
        line.lose(reason, is_refused=is_refused)
        self.settle()


class Link(asyncio.BufferedProtocol):
    """One connection to a peer: cuts what arrives into frames."""

    def __init__(self, peers: Peers, line: Line) -> None:
        self.transport: Any = None
        self._peers = peers
        self._line = line
        self._buffer = memoryview(bytearray(FIRST_SIZE))
        self._end = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._peers.opened(self._line, self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        try:
            heard = self._hand_over()
        except WireError as error:
            log.warning("hung up on a peer that answers nonsense", peer=str(self._line.peer), reason=str(error))
            self._peers.lost(self._line, self, str(error))
        else:
            if heard:
                self._peers.settle()

    def _hand_over(self) -> bool:
        """Give whole responses to the line, each in memory of its own, and make room for the rest.

        Tells whether there were any. A large response comes in many pieces, and fills a buffer that is given away as it
        is: it is never copied.
        """
        position, missing = 0, 4
        while self._end - position >= 4:
            (size,) = _LENGTH(self._buffer, position)
            if not 4 <= size <= self._peers.max_frame:
                raise WireError(f"a response of {size} bytes; socket.request.max.bytes is {self._peers.max_frame}")
            missing = 4 + size
            if position + missing > self._end:
                break
            if missing > FIRST_SIZE and missing == len(self._buffer):
                frame = self._buffer[4:]
                self._buffer, self._end, position = memoryview(bytearray(FIRST_SIZE)), 0, 0
                self._line.receive(frame)
                return True
            frame = bytes(self._buffer[position + 4 : position + missing])
            position, missing = position + missing, 4
            self._line.receive(memoryview(frame))
            if self.transport.is_closing():  # whoever was answered hung up
                return True
        if position or missing > len(self._buffer):
            self._keep(self._buffer[position : self._end], missing)
        return position > 0

    def _keep(self, rest: memoryview, needed: int) -> None:
        """Put the start of the next response at the front of a buffer that has room for all of it."""
        size = max(needed, FIRST_SIZE)
        buffer = self._buffer if len(self._buffer) == size else memoryview(bytearray(size))
        buffer[: len(rest)] = bytes(rest)
        self._buffer, self._end = buffer, len(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        self._peers.lost(self._line, self, str(exc) if exc else "closed by the peer")
