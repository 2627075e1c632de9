"""GET /ws/query: a query, or PRINT, over a websocket.

The request is in the URL: `?request={"ksql": ..., "streamsProperties": {...}}`. The first message has the columns, each
further one a row; the last is `{"error": "done"}`, or says what went wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from moldau.http import Caller, HttpError
from moldau.sql.errors import SqlError
from moldau.sql.server.app import Endpoints
from moldau.sql.server.documents import dumps, read_object, request_of
from moldau.sql.server.entities import schema
from moldau.sql.server.errors import BAD_REQUEST, SHUTTING_DOWN, ServerError
from moldau.sql.server.printing import requested
from moldau.sql.server.service import Request

PATH = "/ws/query"
NORMAL, REFUSED, TRY_LATER = 1000, 1008, 1013


class Conversation:
    """Answers websockets. A reader that takes no messages for too long is disconnected."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    async def __call__(self, socket: WebSocket) -> None:
        await socket.accept()
        left = asyncio.ensure_future(_until_left(socket))
        telling = asyncio.ensure_future(self._tell(socket))
        await asyncio.wait({left, telling}, return_when=asyncio.FIRST_COMPLETED)
        for task in (left, telling):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, WebSocketDisconnect):
                await task

    async def _tell(self, socket: WebSocket) -> None:
        slow_s = self._endpoints.service.admission.limits.slow_reader_s
        code, last = NORMAL, {"error": "done"}
        messages = self._messages(socket.query_params.get("request", ""), socket.state.caller)
        try:
            async for message in messages:
                async with asyncio.timeout(slow_s):
                    await socket.send_text(message)
        except ServerError as error:
            code, last = (TRY_LATER if error.code == SHUTTING_DOWN else REFUSED), {"error": error.message}
        except TimeoutError:
            code, last = REFUSED, {"error": "The reader is too slow."}
        finally:
            await messages.aclose()  # type: ignore[attr-defined]
        if socket.application_state is WebSocketState.CONNECTED:
            await socket.send_text(dumps(last).decode())
            await socket.close(code)

    async def _messages(self, text: str, caller: Caller) -> AsyncIterator[str]:
        endpoints = self._endpoints
        if endpoints.service.terminated:
            raise ServerError(SHUTTING_DOWN, "The server is shutting down")
        body, asked = _asked(text)
        await endpoints.reach(body)
        asked = endpoints.on_behalf(caller, asked)
        printing = await asyncio.to_thread(requested, endpoints.service, asked)
        if printing is not None:
            async for lines in endpoints.printed(printing):
                for line in lines.decode().splitlines():
                    yield line
            return
        results = await endpoints.begin(asked)
        yield dumps([{"name": name, "schema": schema(kind)} for name, kind, _ in results.columns]).decode()
        async for row in endpoints.rows(results):
            if isinstance(row, ServerError):
                raise row
            yield dumps({"row": {"columns": row.columns}}).decode()


def _asked(text: str) -> tuple[dict[str, Any], Request]:
    try:
        body = read_object(text.encode())
        return body, request_of(body, "ksql", "streamsProperties")
    except (SqlError, HttpError) as error:
        raise ServerError(BAD_REQUEST, f"The parameter 'request' cannot be read: {error}") from None


async def _until_left(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
