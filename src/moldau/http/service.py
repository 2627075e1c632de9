"""An ASGI application around a table of routes: who may come in, how much may be sent, how long and how many at once.

Whatever a handler raises becomes an answer here: an `HttpError` as it is, anything else a 500 that says nothing of the
inside, with the trace in the log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from moldau import logs
from moldau.http import audit
from moldau.http.callers import SIGNED, VIEWER, Caller, Callers
from moldau.http.errors import HttpError, error_body, json_response
from moldau.http.routing import Handler, Routes
from moldau.settings import ServiceSettings

log = logging.getLogger(__name__)
JSON_DEPTH = 500  # what Python's own parser takes for granted is a thousand


class Service:
    """The application. `media_type` is of errors; `timed_out` is the answer where `request.timeout.ms` has passed.

    `rewrite` may change the raw path and query of a request before it is matched. A handler that lives longer than
    `request.timeout.ms` by its nature (a stream) is marked with `handler.unbounded = True`. A request that `is_signed`
    proves by itself who sends it: its handler checks that, and no password is asked for. `denied` is the refusal of a
    caller whose role is too low, `body_of` the body of a refusal. Handlers find the caller in `request.state.caller`.
    `sockets` are the handlers of websockets, by path: any caller may open one, and they find it in `state.caller`.
    """

    def __init__(
        self,
        routes: Routes,
        settings: ServiceSettings,
        media_type: str,
        *,
        timed_out: Callable[[], HttpError] = lambda: HttpError(503, "The request took too long."),
        rewrite: Callable[[Scope], None] | None = None,
        is_signed: Callable[[Request], bool] = lambda _: False,
        denied: Callable[[Caller, str], HttpError] = lambda caller, role: HttpError(403, needs(caller, role)),
        body_of: Callable[[HttpError], dict[str, Any]] = error_body,
        sockets: Mapping[str, Callable[[WebSocket], Awaitable[None]]] | None = None,
    ) -> None:
        self._sockets = sockets or {}
        self._routes, self._media_type, self._timed_out, self._rewrite = routes, media_type, timed_out, rewrite
        self._timeout_s = settings["request.timeout.ms"] / 1000
        self._most_bytes = settings["size.limit.filter.max.request.body.size"]
        self._most_requests = settings["max.requests.in.flight"]
        self._callers, self._is_signed = Callers(settings), is_signed
        self._denied, self._body_of = denied, body_of
        if settings["moldau.audit.file"]:
            logs.to_file(audit.NAME, settings["moldau.audit.file"])
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._converse(WebSocket(scope, receive, send))
            return
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        self._in_flight += 1
        try:
            response = await self._answer(request)
        except ClientDisconnect:
            return  # there is nobody to tell
        finally:
            self._in_flight -= 1
        response.headers["x-content-type-options"] = "nosniff"  # a browser is not to take data for a page
        await response(scope, receive, send)

    async def _converse(self, socket: WebSocket) -> None:
        """Serve a websocket; one that is refused is closed before it opens, which the client sees as a 403."""
        handler = self._sockets.get(socket.url.path)
        self._in_flight += 1
        try:
            caller = socket.state.caller = await self._admit(socket)
            if handler is None or not caller.may(VIEWER):
                await socket.close()
            else:
                await handler(socket)
        except HttpError as error:
            log.debug("a websocket is refused: %s", error)
            await socket.close()
        except WebSocketDisconnect:
            log.debug("the client has left %s", socket.url.path)
        finally:
            self._in_flight -= 1

    async def _answer(self, request: Request) -> Response:
        try:
            caller = request.state.caller = await self._admit(request)
            if self._rewrite:
                self._rewrite(request.scope)
            found = self._routes.find(request.method, request.scope["raw_path"])
            if not caller.may(found.role):
                audit.refused(request, caller, f"needs {found.role}")
                raise self._denied(caller, found.role)
            request.scope["path_params"], request.state.most_bytes = found.names, self._most_bytes
            response = await self._handled(found.handler, request)
            if found.role != VIEWER and self._callers.is_closed:
                audit.changed(request, caller, response.status_code)
            return response
        except HttpError as error:
            return self._refusal(error)
        except ClientDisconnect:
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return self._refusal(HttpError(500, "Internal Server Error"))

    async def _handled(self, handler: Handler, request: Request) -> Response:
        is_unbounded = getattr(handler, "unbounded", False)
        return await (handler(request) if is_unbounded else self._in_time(handler(request)))

    async def _in_time(self, answer: Any) -> Response:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await answer
        except TimeoutError:
            raise self._timed_out() from None

    async def _admit(self, request: Request | WebSocket) -> Caller:
        """Return who calls; HttpError for somebody who is not known, or if there are too many at once."""
        if self._in_flight > self._most_requests:
            raise HttpError(429, "Too many requests are in flight; try again later.", headers={"Retry-After": "1"})
        caller = await self._callers.identify(request)
        if caller is None and isinstance(request, Request) and self._is_signed(request):
            return SIGNED
        if caller is None:
            audit.refused(request, None, "not authenticated")
            raise HttpError(401, "Unauthorized", headers={"WWW-Authenticate": self._callers.challenge})
        return caller

    def _refusal(self, error: HttpError) -> Response:
        return json_response(self._body_of(error), self._media_type, error.status, error.headers)


async def read_body(request: Request) -> bytes:
    """Read the body, at most as long as the settings allow."""
    most = request.state.most_bytes
    if int(request.headers.get("content-length") or 0) > most:
        raise HttpError(413, f"The body is larger than {most} bytes.")
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise HttpError(413, f"The body is larger than {most} bytes.")
        chunks.append(chunk)
    return b"".join(chunks)


def read_json(body: bytes) -> Any:
    """Read a JSON document; ValueError with a sentence if it is not one, or nests too deeply."""
    brackets = body.count(b"[") + body.count(b"{")
    if brackets > JSON_DEPTH and (depth := deepest(body)) > JSON_DEPTH:
        raise ValueError(f"The document is nested {depth} deep, at most {JSON_DEPTH} are allowed.")
    try:
        return json.loads(body)
    except UnicodeDecodeError:
        raise ValueError("The document is not valid UTF-8.") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"Line {error.lineno}, column {error.colno}: {error.msg}.") from None


def deepest(body: bytes) -> int:
    """Return how deep brackets are nested outside of strings."""
    depth = most = 0
    for token in _BRACKETS.finditer(body):
        if token[0] in (b"{", b"["):
            depth += 1
            most = max(most, depth)
        elif token[0] in (b"}", b"]"):
            depth -= 1
    return most


_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def needs(caller: Caller, role: str) -> str:
    """Say what a caller lacks."""
    return f"{caller.name} may not do this: it needs the role {role}."
