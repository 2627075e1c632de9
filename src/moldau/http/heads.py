"""Bounds for what a client sends before it is known: the head of a request, and all else that is not its body.

uvicorn's parser has none. Headers without end, in one or in many, took sixteen times their size in memory, and half a
head could wait for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

MOST_HEAD = 128 * 1024
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def bounded(protocol: Any, idle_s: float) -> Any:
    """Return uvicorn's protocol over httptools with bounds; that over h11 has its own."""
    if not hasattr(protocol, "on_headers_complete"):
        return protocol

    class Bounded(protocol):
        def connection_made(self, transport: Any) -> None:
            self._unheard = 0  # bytes since the parser last had a whole head, or a part of a body
            self._timer: asyncio.TimerHandle | None = None
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            self._unheard += len(data)
            super().data_received(data)
            if self._unheard > MOST_HEAD:
                if not self.transport.is_closing() and self._is_between():
                    self.transport.write(TOO_LARGE)
                self.transport.close()
            elif self._unheard and self._timer is None:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._heard()
            super().connection_lost(exc)

        def on_headers_complete(self) -> None:
            self._heard()
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._heard()
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._heard()
            super().on_message_complete()

        def _is_between(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self) -> None:
            self._timer = self.loop.call_later(idle_s, self._give_up)

        def _give_up(self) -> None:
            if self._is_between():  # the time of a request that is being served is `request.timeout.ms`
                self.transport.close()

        def _heard(self) -> None:
            self._unheard = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Bounded
