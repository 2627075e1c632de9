"""An answer that is sent as it comes. A reader that takes nothing for too long loses its query, and is told so.

Sending waits while the reader's buffers are full, so a query never runs far ahead of its reader.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

TOO_SLOW = "The reader took no rows for {:g} s, so the query has ended (ksql.query.push.slow.reader.timeout.ms)."


class Streamed(Response):
    """`parts` are the body. `slow` makes the last part for a reader that was too slow, of a message."""

    def __init__(
        self, parts: AsyncGenerator[bytes, None], media_type: str, slow_s: float, slow: Callable[[str], bytes]
    ) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._parts, self._slow_s, self._slow = parts, slow_s, slow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        left = asyncio.ensure_future(_until_left(receive))
        try:
            await self._send_all(left, send)
        finally:
            left.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await left
            await self._parts.aclose()

    async def _send_all(self, left: asyncio.Future[None], send: Send) -> None:
        part: Any = asyncio.ensure_future(anext(self._parts, None))
        while True:
            await asyncio.wait({part, left}, return_when=asyncio.FIRST_COMPLETED)
            if not part.done():
                part.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await part
                return
            body = part.result()
            if body is None:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            sending = asyncio.ensure_future(send({"type": "http.response.body", "body": body, "more_body": True}))
            await asyncio.wait({sending, left}, timeout=self._slow_s, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                await self._give_up(sending, left, send)
                return
            sending.result()
            if left.done():
                return
            part = asyncio.ensure_future(anext(self._parts, None))

    async def _give_up(self, sending: asyncio.Future[None], left: asyncio.Future[None], send: Send) -> None:
        """End the query now; the message waits behind what the reader has not taken yet."""
        await self._parts.aclose()
        await asyncio.wait({sending, left}, return_when=asyncio.FIRST_COMPLETED)
        if left.done():
            sending.cancel()
            return
        body = self._slow(TOO_SLOW.format(self._slow_s))
        await send({"type": "http.response.body", "body": body, "more_body": False})


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
