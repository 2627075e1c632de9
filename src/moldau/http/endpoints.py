"""An endpoint as a row, and what happens around its function: media types, the body, where it runs, the answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from moldau.http.callers import Caller
from moldau.http.errors import HttpError, json_response
from moldau.http.media import JSON, Types
from moldau.http.routing import Route, Routes

READ, THREAD, LEADER = "read", "thread", "leader"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One row. `takes` and `gives` are documents (`documents.py`); `answers` are more statuses of success.

    `role` is the least that a caller must be (`callers.py`); without one it is a viewer for GET, an editor otherwise.
    `kind` says where the function runs. READ answers from memory, on the loop; with a query parameter of `heavy` it
    needs a thread after all. THREAD waits for somebody or computes for long. LEADER changes something: the process that
    leads answers it. A coroutine function is awaited, whatever its kind.
    """

    method: str
    path: str
    run: Callable[[Any], Any]
    doc: str = ""
    gives: str | None = None
    takes: str | None = None
    status: int = 200
    answers: tuple[int, ...] = ()
    query: tuple[str, ...] = ()
    accepts: Types = JSON
    produces: Types = JSON
    body_needed: bool = True
    unbounded: bool = False
    kind: str = THREAD
    heavy: frozenset[str] = frozenset()
    role: str = ""


@dataclass(slots=True)
class Call:
    """A request to an endpoint. `media_type` is that of the body, `accepted` that of the answer."""

    request: Request
    media_type: str
    accepted: str
    body: Any = None

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path_params

    @property
    def query(self) -> QueryParams:
        return self.request.query_params

    @property
    def caller(self) -> Caller:
        return self.request.state.caller

    @property
    def base(self) -> str:
        return str(self.request.base_url).rstrip("/")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with another status than the row's, or with headers."""

    status: int
    body: Any = None
    headers: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """What a service brings to its endpoints.

    `open_call` makes the call from endpoint, request and both media types, with its body read and checked. `in_thread`
    runs a function in a thread and turns errors into refusals. `by_leader` answers rows of kind LEADER.
    """

    open_call: Callable[[Endpoint, Request, str, str], Awaitable[Any]]
    in_thread: Callable[..., Awaitable[Any]]
    by_leader: Callable[[Endpoint, Any], Awaitable[Any]] | None = None


def routes(endpoints: Iterable[Endpoint], host: Host) -> Routes:
    return Routes([_route(endpoint, host) for endpoint in endpoints])


def _route(endpoint: Endpoint, host: Host) -> Route:
    run = _runner(endpoint, host)

    async def handler(request: Request) -> Response:
        sent = request.headers.get("content-type")
        accepted = endpoint.produces.accepted(request.headers.get("accept"), sent)
        media_type = endpoint.accepts.content(sent) if endpoint.takes else accepted
        call = await host.open_call(endpoint, request, media_type, accepted)
        return _response(endpoint, await run(call), accepted)

    if endpoint.unbounded:
        handler.unbounded = True  # type: ignore[attr-defined]
    return Route(endpoint.method, endpoint.path, handler, endpoint.role)


def _runner(endpoint: Endpoint, host: Host) -> Callable[[Any], Awaitable[Any]]:
    if inspect.iscoroutinefunction(endpoint.run):
        return endpoint.run
    if endpoint.kind == LEADER:
        assert host.by_leader is not None, f"{endpoint.path} needs a leader"
        return partial(host.by_leader, endpoint)
    if endpoint.kind == THREAD:
        return partial(host.in_thread, endpoint.run)

    async def read(call: Any) -> Any:
        if endpoint.heavy.isdisjoint(call.query):
            return endpoint.run(call)
        return await host.in_thread(endpoint.run, call)

    return read


def _response(endpoint: Endpoint, found: Any, accepted: str) -> Response:
    if isinstance(found, Response):
        return found
    answer = found if isinstance(found, Answer) else Answer(endpoint.status, found)
    if answer.body is None:
        return Response(status_code=answer.status, headers=answer.headers)
    return json_response(answer.body, accepted, answer.status, answer.headers)


def path_number(text: str) -> int:
    """Return a number of 31 bits in a path; HttpError 404 for anything else."""
    if not text.isascii() or not text.isdecimal() or int(text) >= 2**31:
        raise HttpError(404)
    return int(text)
