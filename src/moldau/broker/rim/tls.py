"""TLS at the rim: a socket that behaves as a plain one does, and a channel that performs the handshake first.

OpenSSL never touches the socket: the socket here reads from it many records at a time, and OpenSSL takes them from
memory. On the socket itself it would make two calls for each record, and those of librdkafka hold 2 KB. When the room
is short, or the connection has had its share, something is left inside, of which the loop does not know: the channel
asks.

A handshake costs a millisecond, and some 50 KB while it lasts. OpenSSL has nothing to do with a connection before its
whole hello has arrived, so who stops in the midst of it costs no more than a plain connection. Handshakes have a share
of each round of the loop, and few are half done at a time: those that have begun go on before others begin. So a storm
of new connections neither holds up those that are in nor needs much memory.

A peer may send records that hold next to nothing, without end. Those with some data have a number in each round; what
holds none (updates of keys, renegotiations that are refused) is counted, and too much of it is the end.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from contextlib import suppress
from socket import MSG_PEEK, SO_RCVLOWAT, SOL_SOCKET, socket
from time import monotonic
from typing import TYPE_CHECKING, Any

from moldau.broker.rim.transport import Channel, LargeFrame

if TYPE_CHECKING:
    from moldau.broker.rim.entrances import Entrance

MOST_RECORDS = 128  # that are read by one call; with those of librdkafka the room is short before
RECORD = 16 * 1024  # the largest record; with this much room nothing decrypted stays behind
PORTION = 64 * 1024  # that is read from a socket, or encrypted, at a time; a connection keeps a third more
MOST_WITHOUT_DATA = 2 * PORTION  # bytes in a row: a record that arrives slowly is a fraction of that
MOST_ANSWERS = 64 * 1024  # bytes that OpenSSL has to say by itself to a peer that does not read
HANDSHAKE_READS = 4  # by one call; a handshake has no more
MOST_ASLEEP = 128 * 1024  # bytes of a large frame for which a channel sleeps
HEADER = 5  # bytes of a record's header, the last two of which are its length
HANDSHAKE_RECORD = 0x16
SLICE = 128 * 1024  # that is read from a log by one call
TURN_S = 0.002  # that handshakes have in each round of the loop
HALF_DONE = 32  # the most handshakes that have begun and are not over; holes of what many take stay in the heap
HALF_DONE_S = 10.0  # after which one does not count among them: its peer may never go on
IN_VAIN_S = 1.0  # instead, if no handshake has ended for as long
ENDLESS = "records without data, and no end of them"


class TlsSocket:
    """A non-blocking socket with TLS that raises BlockingIOError as a plain one does."""

    __slots__ = ("_incoming", "_is_over", "_outgoing", "_owed", "_plain", "_room", "_tls", "_unsent", "_without_data")

    def __init__(self, plain: socket, context: ssl.SSLContext, room: memoryview) -> None:
        """Take over a connected socket, before the handshake; the room is what all of them read into."""
        self._plain, self._room = plain, room
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._unsent = memoryview(b"")  # that is encrypted, and that the socket did not take
        self._owed = 0  # bytes that are in it: they will be offered again, and are sent when it is
        self._without_data = 0  # bytes that were read since there was something in them
        self._is_over = False  # the peer has said goodbye

    def fileno(self) -> int:
        return self._plain.fileno()

    def setsockopt(self, level: int, name: int, value: int) -> None:
        self._plain.setsockopt(level, name, value)

    def certificate(self) -> bytes | None:
        """Return the peer's, if it has shown one."""
        return self._tls.getpeercert(binary_form=True)

    def pending(self) -> bool:
        """Tell whether there is more to read, though nothing may arrive any more."""
        return bool(self._incoming.pending or self._is_over or self._tls.pending())

    def do_handshake(self) -> None:
        """Go on with the handshake; raises SSLWantReadError or SSLWantWriteError when the peer is to go on first."""
        for _ in range(HANDSHAKE_READS):
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                if not self._push():
                    raise ssl.SSLWantWriteError from None
                if not self._fill():
                    raise
            except ssl.SSLError:
                with suppress(OSError):
                    self._push()  # the alert that says why
                raise
            else:
                self._without_data = 0
                self._push()
                return
        raise ssl.SSLWantReadError

    def recv_into(self, buffer: memoryview) -> int:
        """Read as many records as there are, as there is room for, and as are one connection's share."""
        room, count = len(buffer), 0
        read: Any = self._tls.read  # into a buffer it returns a number
        try:
            for _ in range(MOST_RECORDS):
                try:
                    got = read(room - count, buffer[count:])
                except ssl.SSLWantReadError:
                    if not self._fill():
                        break
                    continue
                self._without_data = 0
                count += got
                self._is_over = not got
                if self._is_over or room - count < RECORD:
                    break
        except ssl.SSLEOFError:  # the peer has left without a goodbye
            self._is_over = True
        except ConnectionError:
            if not count:
                raise
        finally:
            if self._outgoing.pending:
                self._answer()
        if not count and not self._is_over:
            raise BlockingIOError
        return count

    def send(self, data: Any, flags: int = 0) -> int:
        """Write as far as the socket takes it; what is left must be offered again from there on."""
        view, sent = memoryview(data), 0
        if self._push():
            sent, self._owed = self._owed, 0
            while sent < len(view):
                piece = view[sent : sent + PORTION]
                self._tls.write(piece)
                if not self._push():
                    self._owed = len(piece)
                    break
                sent += len(piece)
        if not sent:
            raise BlockingIOError
        return sent

    def shutdown(self, how: int) -> None:
        """Say goodbye as TLS wants it, and do not wait for the same."""
        with suppress(ssl.SSLError, ValueError):  # no handshake was done, or the peer has yet to say so
            self._tls.unwrap()
        self._push()
        self._plain.shutdown(how)

    def close(self) -> None:
        """Close the socket, and let go of OpenSSL's memory at once: whoever holds us may be in a cycle for long."""
        self._plain.close()
        if hasattr(self, "_tls"):
            del self._tls, self._incoming, self._outgoing

    def _fill(self) -> bool:
        """Hand what has arrived to OpenSSL, which has taken all before, or the end; False if there is nothing."""
        if self._without_data > MOST_WITHOUT_DATA:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, ENDLESS)
        try:
            count = self._plain.recv_into(self._room)
        except BlockingIOError:
            return False
        if count:
            self._incoming.write(self._room[:count])
            self._without_data += count
        else:
            self._incoming.write_eof()
        return True

    def _push(self) -> bool:
        """Write what is encrypted; returns whether the socket has taken all of it."""
        rest = self._unsent or memoryview(self._outgoing.read())
        while rest:
            try:
                sent = self._plain.send(rest)
            except BlockingIOError:
                sent = 0
            if sent < len(rest):
                self._unsent = rest[sent:]
                return False
            rest = memoryview(self._outgoing.read())
        self._unsent = rest
        return True

    def _answer(self) -> None:
        """Write what OpenSSL has to say by itself: alerts and keys."""
        with suppress(ConnectionError):  # who reads will hear of it
            self._push()
        if self._outgoing.pending > MOST_ANSWERS:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, ENDLESS)


def asleep_for(frame: LargeFrame) -> int:
    """Return for how many bytes of a large frame to sleep; none near its end.

    Clients send it record by record, and each would wake us. What has yet to come is longer encrypted; but OpenSSL may
    have taken a part of a record already, or a whole one for which there was no room.
    """
    return max(0, min(frame.size - frame.filled - 2 * RECORD, MOST_ASLEEP))


class TlsChannel(Channel):
    """A channel over TLS: a plain socket until the hello is there, and no frames before the handshake is done."""

    __slots__ = ("_awaited", "_entrance", "_is_open", "_is_queued", "has_begun")

    def __init__(self, entrance: Entrance, *arguments: Any) -> None:
        self._entrance = entrance
        self._awaited = 0  # bytes of the hello, or of a large frame, before which we are not woken
        self._is_open = False
        self._is_queued = False
        self.has_begun = False
        super().__init__(*arguments)

    @property
    def socket(self) -> TlsSocket:
        assert isinstance(self._socket, TlsSocket)
        return self._socket

    def _read(self) -> None:
        if not self._is_open:
            if not self._is_queued and (self.has_begun or self._has_hello()):
                self._queue()
            return
        super()._read()
        if self._closed:
            return
        if (wanted := 0 if self._large is None else asleep_for(self._large)) != self._awaited:
            self._await(wanted)
        if not self._paused and self.socket.pending():
            self._server.loop.call_soon(self._read_rest)

    def _read_rest(self) -> None:
        if not self._closed and not self._paused:
            self.readable()

    def _unpause(self) -> None:
        was_paused = self._paused
        super()._unpause()
        if was_paused and not self._paused and self._is_open and self.socket.pending():
            self._server.loop.call_soon(self._read_rest)

    def _has_hello(self) -> bool:
        """Tell whether the first record has arrived, or OpenSSL is to say what is wrong; otherwise sleep until then."""
        start = self._server.buffer[: HEADER + RECORD]
        try:
            count = self._socket.recv_into(start, 0, MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError as error:
            self.close(error.strerror or "connection lost")
            return False
        if not count:
            self.close("closed by the client")
            return False
        wanted = HEADER
        if count >= HEADER:
            length = int.from_bytes(start[3:HEADER])
            wanted += length if start[0] == HANDSHAKE_RECORD and length <= RECORD else 0
        if count >= wanted or wanted == self._awaited:  # it was to wake us when they are there: nothing more comes
            return True
        self._await(wanted)
        return False

    def _await(self, count: int) -> None:
        self._awaited = count
        self._socket.setsockopt(SOL_SOCKET, SO_RCVLOWAT, count or 1)

    def _queue(self) -> None:
        self._is_queued = True
        self._pause()
        self._server.handshakes.add(self)

    def shake(self) -> None:
        """Go on with the handshake; it is our turn."""
        self._is_queued = False
        if self._closed or self._finishing:
            return
        try:
            if not self.has_begun:
                self._begin()
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            self._unpause()
            return
        except ssl.SSLWantWriteError:
            self._blocked = True
            self._server.loop.add_writer(self._socket, self._shake_on)
            return
        except OSError as error:
            self._lose(error)
            return
        self._server.handshakes.end(self)
        refusal = self._entrance.identify(self.socket.certificate(), self.connection)
        if refusal is not None:
            self.refuse(refusal)
            return
        self._is_open = True
        self._unpause()
        self._read_rest()  # the first request may have come with the end of the handshake

    def _begin(self) -> None:
        self.has_begun = True
        self._server.handshakes.begin(self)
        if self._awaited:
            self._await(0)
        self._socket = TlsSocket(self._socket, self._entrance.context(), self._server.handshakes.room)

    def _shake_on(self) -> None:
        self._blocked = False
        self._server.loop.remove_writer(self._socket)
        self._queue()

    def _lose(self, error: OSError) -> None:
        if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            super()._lose(error)
            return
        from moldau.tls import words

        reason = words(error)
        plain = reason in ("wrong version number", "http request", "unknown protocol") and not self._is_open
        looks = "this looks like plain text; the listener speaks TLS" if plain else ""
        self._server.report_refusal(self, f"{'TLS' if self._is_open else 'the TLS handshake'} failed: {reason}", looks)
        self.close(reason)

    def close(self, reason: str) -> None:
        super().close(reason)
        self._server.handshakes.end(self)

    def _send_file(self, out: list[Any]) -> tuple[int, int]:
        span = out[0]
        wanted = min(len(span), SLICE)
        data = os.pread(span.file.fileno(), wanted, span.position)
        if len(data) < wanted:
            raise OSError(0, "a log file is shorter than it was")
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            return 0, wanted
        if sent == len(span):
            del out[0]
        else:
            out[0] = type(span)(span.file, span.position + sent, len(span) - sent)
        return sent, wanted


class Handshakes:
    """The channels whose handshake can go on; those that have begun come first."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.room = memoryview(bytearray(PORTION))
        self._loop = loop
        self._new: deque[TlsChannel] = deque()
        self._begun: deque[TlsChannel] = deque()
        self._half_done: dict[TlsChannel, float] = {}  # when they began; the oldest is the first
        self._ended = 0.0  # when the last one did
        self._is_due = False
        self._timer: asyncio.Handle | None = None

    def add(self, channel: TlsChannel) -> None:
        (self._begun if channel.has_begun else self._new).append(channel)
        self._schedule()

    def begin(self, channel: TlsChannel) -> None:
        self._half_done[channel] = monotonic()

    def end(self, channel: TlsChannel) -> None:
        """Forget a channel whose handshake is over, or which is closed."""
        if self._half_done.pop(channel, None) is not None:
            self._ended = monotonic()
            if self._new:
                self._schedule()

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        end = monotonic() + TURN_S
        while (channel := self._take()) is not None:
            channel.shake()
            if monotonic() > end:
                break
        if self._begun or (self._new and self._has_room()):
            self._schedule()
        elif self._new and self._timer is None:
            self._timer = self._loop.call_later(IN_VAIN_S, self._try_again)

    def _try_again(self) -> None:
        self._timer = None
        self._schedule()

    def _take(self) -> TlsChannel | None:
        if self._begun:
            return self._begun.popleft()
        return self._new.popleft() if self._new and self._has_room() else None

    def _has_room(self) -> bool:
        if len(self._half_done) < HALF_DONE:
            return True
        now = monotonic()
        long_ago = now - (IN_VAIN_S if now - self._ended > IN_VAIN_S else HALF_DONE_S)
        while self._half_done:
            oldest = next(iter(self._half_done))
            if self._half_done[oldest] > long_ago:
                break
            del self._half_done[oldest]
        return len(self._half_done) < HALF_DONE
