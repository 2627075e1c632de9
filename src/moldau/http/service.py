"""An ASGI application around a table of routes: who may come in, how much may be sent, how long and how many at once.

Whatever a handler raises becomes an answer here: an `HttpError` as it is, anything else a 500 that says nothing of the
inside, with the trace in the log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from moldau.http.auth import BasicAuth, read_users
from moldau.http.errors import HttpError, error_body, json_response
from moldau.http.routing import Routes
from moldau.settings import ServiceSettings

log = logging.getLogger(__name__)
JSON_DEPTH = 500  # what Python's own parser takes for granted is a thousand


class Service:
    """The application. `media_type` is of errors; `timed_out` is the answer where `request.timeout.ms` has passed.

    `rewrite` may change the raw path and query of a request before it is matched. A handler that lives longer than
    `request.timeout.ms` by its nature (a stream) is marked with `handler.unbounded = True`.
    """

    def __init__(
        self,
        routes: Routes,
        settings: ServiceSettings,
        media_type: str,
        *,
        timed_out: Callable[[], HttpError] = lambda: HttpError(503, "The request took too long."),
        rewrite: Callable[[Scope], None] | None = None,
    ) -> None:
        self._routes, self._media_type, self._timed_out, self._rewrite = routes, media_type, timed_out, rewrite
        self._timeout_s = settings["request.timeout.ms"] / 1000
        self._most_bytes = settings["size.limit.filter.max.request.body.size"]
        self._most_requests = settings["max.requests.in.flight"]
        self._auth = _auth(settings)
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            self._admit(request)
            if self._rewrite:
                self._rewrite(request.scope)
            handler, request.scope["path_params"] = self._routes.find(request.method, request.scope["raw_path"])
            request.state.most_bytes = self._most_bytes
            if getattr(handler, "unbounded", False):
                return await handler(request)
            return await self._in_time(handler(request))
        except HttpError as error:
            return self._refusal(error)
        except ClientDisconnect:
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return self._refusal(HttpError(500, "Internal Server Error"))

    async def _in_time(self, answer: Any) -> Response:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await answer
        except TimeoutError:
            raise self._timed_out() from None

    def _admit(self, request: Request) -> None:
        if self._auth and not self._auth.admits(request.headers.get("authorization")):
            raise HttpError(401, "Unauthorized", headers={"WWW-Authenticate": self._auth.challenge})
        if self._in_flight > self._most_requests:
            raise HttpError(429, "Too many requests are in flight; try again later.", headers={"Retry-After": "1"})

    def _refusal(self, error: HttpError) -> Response:
        return json_response(error_body(error), self._media_type, error.status, error.headers)


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
    depth = deepest(body)
    if depth > JSON_DEPTH:
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


def _auth(settings: ServiceSettings) -> BasicAuth | None:
    if settings["authentication.method"] == "NONE":
        return None
    users = read_users(settings["authentication.users.file"])
    return BasicAuth(users, frozenset(settings["authentication.roles"]), settings["authentication.realm"])
