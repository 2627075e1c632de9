"""TLS at the rim: a socket that behaves as a plain one does, and a channel that performs the handshake first.

OpenSSL hands out one record at a time. The socket here reads on until nothing is left or the room is short, so that a
wake-up serves as much as on a plain connection; in the tail of a large frame something decrypted may be left inside,
of which the loop does not know: the channel asks.

A handshake costs a millisecond, and some 50 KB while it lasts. OpenSSL has nothing to do with a connection before its
whole hello has arrived, so who stops in the midst of it costs no more than a plain connection. Handshakes have a share
of each round of the loop, and few are half done at a time: those that have begun go on before others begin. So a storm
of new connections neither holds up those that are in nor needs much memory.

A peer may send records that hold next to nothing, without end. Those with some data have a number in each round; those
without are read by OpenSSL within one call, which the watch (`rim/watch.py`) ends.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from contextlib import suppress
from socket import MSG_PEEK, SO_RCVLOWAT, SOL_SOCKET
from time import monotonic
from typing import TYPE_CHECKING, Any

from moldau.broker.rim.transport import Channel, LargeFrame
from moldau.broker.rim.watch import Watch

if TYPE_CHECKING:
    from moldau.broker.rim.entrances import Entrance

MOST_RECORDS = 128  # that are read by one call; with those of librdkafka the room is short before
RECORD = 16 * 1024  # the largest record; with this much room nothing decrypted stays behind
MOST_ASLEEP = 128 * 1024  # bytes of a large frame for which a channel sleeps
HEADER = 5  # bytes of a record's header, the last two of which are its length
HANDSHAKE_RECORD = 0x16
SLICE = 128 * 1024  # that is encrypted by one call
TURN_S = 0.002  # that handshakes have in each round of the loop
HALF_DONE = 32  # the most handshakes that have begun and are not over; holes of what many take stay in the heap
HALF_DONE_S = 10.0  # after which one does not count among them: its peer may never go on
IN_VAIN_S = 1.0  # instead, if no handshake has ended for as long


class TlsSocket(ssl.SSLSocket):
    """A non-blocking socket with TLS that raises BlockingIOError as a plain one does."""

    watch: Watch

    def recv_into(self, buffer: memoryview, nbytes: int | None = None, flags: int = 0) -> int:  # pyright: ignore
        """Read as many records as there are, as there is room for, and as are one connection's share.

        What SSLSocket has around `read` takes a microsecond, a fifth of the whole for a record of 2 KB.
        """
        records: Any = self._sslobj  # pyright: ignore[reportAttributeAccessIssue]
        if records is None:  # both have said goodbye
            return super().recv_into(buffer)
        count, read = 0, records.read
        with self.watch(self):
            try:
                for _ in range(MOST_RECORDS):
                    got = read(len(buffer) - count, buffer[count:])
                    count += got
                    if not got or len(buffer) - count < RECORD:
                        break
            except ssl.SSLEOFError:  # the peer has left without a goodbye
                return count
            except ssl.SSLWantReadError:
                if not count:
                    raise BlockingIOError from None
        return count

    def do_handshake(self, block: bool = False) -> None:
        with self.watch(self):
            super().do_handshake()

    def send(self, data: Any, flags: int = 0) -> int:
        """Write as far as the socket takes it; what is left must be offered again from there on."""
        view, sent = memoryview(data), 0
        try:
            while sent < len(view):
                sent += super().send(view[sent : sent + SLICE])
        except ssl.SSLWantWriteError:
            if not sent:
                raise BlockingIOError from None
        return sent

    def shutdown(self, how: int) -> None:
        """Say goodbye as TLS wants it, and do not wait for the same."""
        with suppress(ssl.SSLError, ValueError), self.watch(self):  # no handshake was done, or it has yet to say so
            self.unwrap()
        super().shutdown(how)


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
        refusal = self._entrance.identify(self.socket, self.connection)
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
        self._socket = self._entrance.wrap(self._socket)
        self.socket.watch = self._server.handshakes.watch

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
        self.watch = Watch(loop.is_closed)
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
