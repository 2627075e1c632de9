"""TLS at the rim: a socket that behaves as a plain one does, and a channel that performs the handshake first.

OpenSSL hands out one record at a time. The socket here reads on until nothing is left or the room is short, so that a
wake-up serves as much as on a plain connection; in the tail of a large frame something decrypted may be left inside,
of which the loop does not know: the channel asks. Handshakes cost a millisecond each, so a few of them have their turn
in each round of the loop: a storm of new connections does not hold up those that are in.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moldau.broker.rim.transport import Channel

if TYPE_CHECKING:
    from moldau.broker.rim.entrances import Entrance

RECORD = 16 * 1024  # the largest record; with this much room nothing decrypted stays behind
SLICE = 128 * 1024  # that is encrypted by one call
HANDSHAKES = 4  # steps in each round of the loop


class TlsSocket(ssl.SSLSocket):
    """A non-blocking socket with TLS that raises BlockingIOError as a plain one does."""

    def recv_into(self, buffer: memoryview, nbytes: int | None = None, flags: int = 0) -> int:  # pyright: ignore
        """Read as many records as there are, and as there is room for."""
        count = 0
        try:
            while got := super().recv_into(buffer[count:]):
                count += got
                if len(buffer) - count < RECORD:
                    break
        except ssl.SSLWantReadError:
            if not count:
                raise BlockingIOError from None
        return count

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
        with suppress(ssl.SSLError, ValueError):  # the peer has yet to say it, or the handshake was not done
            self.unwrap()
        super().shutdown(how)


class TlsChannel(Channel):
    """A channel over TLS: it has no frames before the handshake is done."""

    __slots__ = ("_entrance", "_is_open", "_shaking")

    def __init__(self, entrance: Entrance, *arguments: Any) -> None:
        self._entrance = entrance
        self._is_open = False
        self._shaking = False
        super().__init__(*arguments)

    @property
    def socket(self) -> TlsSocket:
        assert isinstance(self._socket, TlsSocket)
        return self._socket

    def _read(self) -> None:
        if not self._is_open:
            if not self._shaking:
                self._shaking = True
                self._pause()
                self._server.handshakes.add(self)
            return
        super()._read()
        if not self._closed and not self._paused and self.socket.pending():
            self._server.loop.call_soon(self._read_rest)

    def _read_rest(self) -> None:
        if not self._closed and not self._paused:
            self.readable()

    def shake(self) -> None:
        """Go on with the handshake; it is our turn."""
        self._shaking = False
        if self._closed:
            return
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            self._unpause()
            return
        except ssl.SSLWantWriteError:
            self._server.loop.add_writer(self._socket, self._shake_on)
            return
        except OSError as error:
            self._fail(error)
            return
        refusal = self._entrance.identify(self.socket, self.connection)
        if refusal is not None:
            self.refuse(refusal)
            return
        self._is_open = True
        self._unpause()
        self._read_rest()  # the first request may have come with the end of the handshake

    def _shake_on(self) -> None:
        self._server.loop.remove_writer(self._socket)
        self._shaking = True
        self._server.handshakes.add(self)

    def _fail(self, error: OSError) -> None:
        if not isinstance(error, ssl.SSLError):
            self.close(error.strerror or "connection lost")
            return
        reason = (error.reason or str(error)).lower().replace("_", " ")
        plain = error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
        looks = "this looks like plain text; the listener speaks TLS" if plain else ""
        self._server.report_refusal(self, f"the TLS handshake failed: {reason}", looks)
        self.close(reason)

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
    """The channels whose handshake can go on, a few at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[TlsChannel] = deque()

    def add(self, channel: TlsChannel) -> None:
        if not self._waiting:
            self._loop.call_soon(self._turn)
        self._waiting.append(channel)

    def _turn(self) -> None:
        for _ in range(min(HANDSHAKES, len(self._waiting))):
            self._waiting.popleft().shake()
        if self._waiting:
            self._loop.call_soon(self._turn)
