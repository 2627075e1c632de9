"""One connection at the rim: bytes in, frames to the node, bytes out.

Reading. All connections read into one shared buffer, and the node gets frames as writable views of it. What remains
(the start of the next frame, or frames that must wait) is copied aside, so an idle connection owns no buffer at all.
A frame that is larger than the shared buffer is collected in a buffer of its own, which grows with the bytes that
really arrive: a length that is only claimed costs nothing.

Order. Answers leave in the order of the requests. While a request waits, only frames that `connection.takes` allows
are handed over, and while the socket takes no more bytes none; past a bound nothing more is read. So a client that
sends without reading is held up by TCP and costs a bounded amount of memory.

Writing. All answers of one wake-up leave in one `send`, straight to the socket: a round through the loop would cost
more than the call. Large pieces of a log go by `sendfile`. `Channel._send` is the only place that knows how.
"""

from __future__ import annotations

import os
from socket import MSG_MORE, SHUT_WR, socket
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from moldau.broker.connection import PRODUCE, Connection
from moldau.wire.errors import WireError

if TYPE_CHECKING:
    from moldau.broker.rim.server import Server

SMALLEST_FRAME = 8  # key, version and correlation id
SHARED_SIZE = 128 * 1024
# Past this much input that must wait, reading stops. Below the shared buffer's size, so there is always room.
HELD_LIMIT = SHARED_SIZE // 2
WORK_LIMIT = 256 * 1024  # bytes in and out that one connection may have served in one wake-up, before others' turn
FRAME_WORK = 1024  # what a frame counts besides its bytes: a small request costs the time of copying some kilobytes
SENDFILE_FROM = 32 * 1024  # a shorter piece of a file is cheaper to read and send with its neighbours
FIRST_SIZE = 16 * 1024  # the least that is set aside for a frame of more than the shared buffer
# How much is written in one wake-up, so that one fast reader does not hold up the others. A fetch of 1 MB, which
# consumers like to ask for, is within it; what little follows the last file of an answer always goes with it.
SEND_LIMIT = 2 * 1024 * 1024
LINGER_S = 0.2  # how long a connection that we end may take to see it

_LENGTH = Struct(">i").unpack_from
_PREFIXES = (
    (b"\x16\x03", "this looks like TLS; the listener speaks plaintext"),
    *((verb, "this looks like HTTP") for verb in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"CONN")),
    (b"PRI ", "this looks like HTTP/2"),
    (b"SSH-", "this looks like SSH"),
)


class LargeFrame:
    """A frame that does not fit in the shared buffer, while it arrives."""

    __slots__ = ("filled", "size", "view")

    def __init__(self, size: int, start: memoryview, spare: list[bytearray]) -> None:
        self.size = size
        self.filled = 0
        self.view = start
        filled = len(start)
        self._move(spare, filled)
        self.filled = filled

    def room(self, spare: list[bytearray]) -> memoryview:
        """Return where the next bytes go: never more than the frame, never more than twice of what has arrived."""
        if self.filled == len(self.view):
            self._move(spare, self.filled)
        return self.view[self.filled : self.size]

    def _move(self, spare: list[bytearray], filled: int) -> None:
        grown = min(self.size, max(2 * filled, FIRST_SIZE))
        if spare and len(spare[-1]) >= grown:
            target = spare.pop()
        else:
            target = bytearray(grown)
        view = memoryview(target)
        view[:filled] = self.view[:filled]
        self.view = view


class Channel:
    """A socket and the node's connection behind it."""

    __slots__ = (
        "_blocked",
        "_closed",
        "_finishing",
        "_held",
        "_large",
        "_next",
        "_paused",
        "_server",
        "_socket",
        "active",
        "address",
        "connection",
        "queued",
    )

    def __init__(self, server: Server, sock: socket, connection: Connection, address: str) -> None:
        self._server = server
        self._socket: Any = sock  # or what behaves as one, see rim/tls.py
        self.connection = connection
        self.address = address
        self.active = server.sweeps
        self.queued = False
        self._held: bytes | memoryview = b""
        self._large: LargeFrame | None = None
        self._next = PRODUCE  # the key of a frame that must wait
        self._blocked = False
        self._paused = False
        self._closed = False
        self._finishing = False
        server.loop.add_reader(sock, self.readable)

    # Reading.

    def readable(self) -> None:
        """Read from the socket: it has bytes, or its end."""
        self._read()
        if self._server.ready:
            self._server.settle()

    def _read(self) -> None:
        server = self._server
        held, large = self._held, self._large
        have = len(held)
        if large is not None:
            room = large.room(server.spare)
        elif have:
            room = server.buffer
            room[:have] = held
            room = room[have:]
        else:
            room = server.buffer
        try:
            count = self._socket.recv_into(room)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(error)
            return
        if not count:
            self.close("closed by the client")
            return
        self.active = server.sweeps
        server.counters.bytes_in += count
        if large is not None:
            large.filled += count
            self._serve_large(large)
        elif self._is_held_up():
            self._hold(server.buffer[: have + count])
        else:
            self._serve(have + count)

    def _is_held_up(self) -> bool:
        connection = self.connection
        if self._blocked or connection.closing is not None:
            return True
        return bool(connection.pending) and not connection.takes(self._next)

    def _takes(self, view: memoryview, position: int) -> bool:
        """Tell whether the node takes the frame there now; if not, remember what it is."""
        self._next = bytes(view[position + 4 : position + 6])
        return self.connection.takes(self._next)

    def _serve(self, end: int) -> None:
        """Serve the frames at the start of the shared buffer, keep what must wait, write the answers."""
        self._held = b""
        view = self._server.buffer
        position = self._hand_over(view, end)
        if self._closed:
            return
        if position < end:
            self._keep(view[position:end])
        self.flush()

    def _hand_over(self, view: memoryview, end: int) -> int:
        """Give whole frames to the node until one must wait or the others' turn has come. Where it stopped."""
        server = self._server
        connection, receive = self.connection, server.node.receive
        least, limit, out, pending = SMALLEST_FRAME, server.max_frame, connection.out, connection.pending
        if connection.gate is not None:
            receive = connection.gate.receive
            least, limit = connection.gate.bounds
        self._next = PRODUCE
        position, work, count = 0, WORK_LIMIT, 0
        begin = perf_counter_ns()
        try:
            while end - position >= 4:
                (size,) = _LENGTH(view, position)
                stop = position + 4 + size
                if stop > end or not least <= size <= limit:
                    break
                if pending and not self._takes(view, position):
                    break
                receive(connection, view[position + 4 : stop])
                position = stop
                count += 1
                work -= size + FRAME_WORK
                if out:
                    work -= len(out[-1])
                if work < 0 or connection.closing is not None:
                    break
        except WireError as error:
            self.refuse(str(error))
        except BaseException:
            self.close("internal error")
            raise
        if count:
            server.counters.add_time(perf_counter_ns() - begin, count)
        if pending:
            server.wake_by(connection.next_deadline_ms())
        return position

    def _keep(self, rest: memoryview) -> None:
        """Keep what was not served: the start of a frame, or frames that wait for their turn."""
        if len(rest) >= 4 and not self._is_held_up():
            (size,) = _LENGTH(rest)
            gate = self.connection.gate
            least, limit = (SMALLEST_FRAME, self._server.max_frame) if gate is None else gate.bounds
            if not least <= size <= limit:
                self.refuse(*self._describe(rest, size, limit))
                return
            if size + 4 > SHARED_SIZE:
                self._large = LargeFrame(size + 4, rest, self._server.spare)
                return
            if len(rest) >= size + 4:
                self._server.turn_later(self)
        self._hold(rest)

    def _hold(self, rest: memoryview) -> None:
        self._held = bytes(rest)
        if len(rest) >= HELD_LIMIT and not self._paused and self._is_held_up():
            self._pause()

    def _serve_large(self, large: LargeFrame) -> None:
        if large.filled < large.size:
            return
        if self._is_held_up() or not self._takes(large.view, 0):
            self._pause()
            return
        self._large = None
        self._hand_over(large.view, large.size)
        if self._closed:
            return
        self._server.recycle(large.view)
        self.flush()

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._server.loop.remove_reader(self._socket)

    def _unpause(self) -> None:
        if self._paused and not self._closed and not self._is_held_up():
            self._paused = False
            self._server.loop.add_reader(self._socket, self.readable)

    def go_on(self) -> None:
        """Something outside happened: an answer is there, a wait ended, or it is this connection's turn again."""
        self.queued = False
        if self._closed:
            return
        if self._is_held_up():
            self.flush()
            return
        if self._large is not None:
            self._serve_large(self._large)
        elif self._held:
            have = len(self._held)
            self._server.buffer[:have] = self._held
            self._serve(have)
        if not self._closed:
            self.flush()
            self._unpause()

    def ready(self, connection: Connection) -> None:
        """Queue the connection: `out` grew, or more can be taken, outside of `receive`."""
        if not self.queued:
            self.queued = True
            self._server.ready.append(self)

    # Writing.

    def flush(self) -> None:
        """Write what is there; when the socket is full, go on when it says so."""
        if self._blocked or self._closed:
            return
        self._write()

    def _write(self) -> None:
        connection = self.connection
        try:
            drained = not connection.out or self._send(connection.out)
        except OSError as error:
            self._lose(error)
            return
        if not drained:
            if not self._blocked:
                self._blocked = True
                self._server.loop.add_writer(self._socket, self._writable)
        elif connection.closing is not None and not connection.pending:
            self.finish()

    def _writable(self) -> None:
        self._write()
        if self._closed or self.connection.out:
            return
        self._blocked = False
        self._server.loop.remove_writer(self._socket)
        self.go_on()
        if self._server.ready:
            self._server.settle()

    def _send(self, out: list[Any]) -> bool:
        """Write `out` as far as the socket takes it within the bound. True when nothing is left."""
        budget = SEND_LIMIT
        while out:
            if len(out[0]) > SENDFILE_FROM and out[0].__class__ not in _MEMORY:
                sent, wanted = self._send_file(out)
            else:
                sent, wanted = self._send_memory(out)
            if sent:
                self.active = self._server.sweeps
                self._server.counters.bytes_out += sent
            budget -= sent
            if sent < wanted or (budget <= 0 and sum(map(len, out)) > SENDFILE_FROM):
                return not out
        return True

    def _send_memory(self, out: list[Any]) -> tuple[int, int]:
        """Write all that comes before the next large piece of a file by one `send`, up to the bound."""
        data, count = (out[0], 1) if len(out) == 1 and out[0].__class__ is bytes else _gather(out)
        size = len(data)
        try:
            sent = self._socket.send(data, MSG_MORE if count < len(out) else 0)
        except BlockingIOError:
            sent = 0
        if sent == size:
            del out[:count]
        else:
            out[:count] = [memoryview(data)[sent:]]
        return sent, size

    def _send_file(self, out: list[Any]) -> tuple[int, int]:
        span = out[0]
        wanted = min(len(span), SEND_LIMIT)
        try:
            sent = os.sendfile(self._socket.fileno(), span.file.fileno(), span.position, wanted)
        except BlockingIOError:
            return 0, wanted
        if not sent:
            raise OSError(0, "a log file is shorter than it was")
        if sent == len(span):
            del out[0]
        else:
            out[0] = type(span)(span.file, span.position + sent, len(span) - sent)
        return sent, wanted

    # The end.

    def _describe(self, rest: memoryview, size: int, limit: int) -> tuple[str, str]:
        start = bytes(rest[:4])
        looks = next((text for prefix, text in _PREFIXES if start.startswith(prefix)), "")
        name = "socket.request.max.bytes" if limit == self._server.max_frame else "sasl.server.max.receive.size"
        return f"frame of {size} bytes; {name} is {limit}", looks

    def refuse(self, reason: str, looks: str = "") -> None:
        """Log a fault of the peer in one line, and close the connection when it has the answers before."""
        self._server.report_refusal(self, reason, looks)
        if self.connection.pending:
            self.connection.closing = reason
            return
        self.flush()
        self.close(reason)

    def _lose(self, error: OSError) -> None:
        self.close(error.strerror or "connection lost")

    def finish(self) -> None:
        """Everything is written: say so, and close when the peer has, or soon.

        To close a socket with unread input would reset the connection, and the peer could lose the last answers.
        """
        if self._finishing or self._closed:
            return
        self._finishing = True
        try:
            self._socket.shutdown(SHUT_WR)
        except OSError:
            self.close("connection lost")
            return
        loop, reason = self._server.loop, self.connection.closing or ""
        self._pause()
        self._paused = False
        loop.add_reader(self._socket, self._discard)
        loop.call_later(LINGER_S, self.close, reason)

    def _discard(self) -> None:
        try:
            count = self._socket.recv_into(self._server.buffer)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self.close(self.connection.closing or "")

    def close(self, reason: str) -> None:
        """Close at once; what was not written is lost."""
        if self._closed:
            return
        self._closed = True
        loop = self._server.loop
        if not self._paused:
            loop.remove_reader(self._socket)
        if self._blocked:
            loop.remove_writer(self._socket)
        self._socket.close()
        self.connection.out.clear()
        self._held, self._large = b"", None
        self._server.forget(self, reason)


_MEMORY = frozenset((bytes, bytearray, memoryview))


def _gather(out: list[Any]) -> tuple[Any, int]:
    """Join the first pieces, up to a large one of a file or to the bound; returns the bytes and the count."""
    parts: list[Any] = []
    size = 0
    for part in out:
        if part.__class__ not in _MEMORY:
            if len(part) > SENDFILE_FROM:
                break
            part = part.read()
        parts.append(part)
        size += len(part)
        if size > SEND_LIMIT:
            break
    return parts[0] if len(parts) == 1 else b"".join(parts), len(parts)
