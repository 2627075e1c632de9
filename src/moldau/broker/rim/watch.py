"""A watch over calls into OpenSSL, which a peer can keep from returning.

OpenSSL reads on within one call while records come that hold no data: updates of keys, renegotiations that it refuses.
The loop waits for that call, and every connection with it, for as long as the peer likes. A thread looks at the call
that is going on; one that it meets again and again, while the process works, loses its socket, and fails.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress

LOOK_S = 0.1
LOOKS = 3  # at the same call; one that ends by itself takes a millisecond
ENDLESS = "records without data, and no end of them"


class Watch:
    """What is called now, and the thread that looks at it from the first call on until `is_over`."""

    def __init__(self, is_over: Callable[[], bool], look_s: float = LOOK_S) -> None:
        self._socket: socket.socket | None = None
        self._calls = 0
        self._ended = 0  # the number of the last call that lost its socket
        self._is_over, self._look_s = is_over, look_s
        self._looks_on = False

    def __call__(self, sock: socket.socket) -> Watch:
        """Watch over a call on this socket, which is the body of a `with`; it raises SSLError if it was ended."""
        self._calls += 1
        self._socket = sock
        if not self._looks_on:
            self._looks_on = True
            threading.Thread(target=self._look, name="tls-watch", daemon=True).start()
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._socket = None
        if self._ended == self._calls:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, ENDLESS)

    def _look(self) -> None:
        seen, times, worked = 0, 0, time.process_time()
        while not self._is_over():
            time.sleep(self._look_s)
            sock, call, before, worked = self._socket, self._calls, worked, time.process_time()
            if sock is None or call != seen:
                seen, times = call, 0
            elif worked - before > self._look_s / 2:  # a call that waits for a processor has done nothing wrong
                times += 1
            if sock is not None and times == LOOKS:
                self._ended = call
                with suppress(OSError):  # it has just been closed
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of TLS, which would read as well
