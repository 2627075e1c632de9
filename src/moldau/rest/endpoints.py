"""An endpoint as a row, and what happens around its function: media types, parameters, the body, the answer.

A plain function is put into a thread, because it waits for Kafka; a coroutine function is awaited.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jsonschema import Draft202012Validator
from jsonschema.validators import extend
from starlette.requests import Request
from starlette.responses import Response

from moldau.http import HttpError, Route, json_response, read_body, read_json
from moldau.rest import media
from moldau.rest.errors import NO_DATA, WRONG_PAYLOAD, not_found, refusal
from moldau.rest.schemas import components, ref
from moldau.rest.shapes import KNOWN

if TYPE_CHECKING:
    from moldau.rest.kafka import Kafka
    from moldau.rest.proxy import Proxy

NUMBERS = ("broker_id", "partition_id")  # names in paths that stand for numbers
UNPROCESSABLE = ("required", "additionalProperties", "minItems")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One row. `takes` and `gives` are rows of schemas.py; `answers` are more statuses of success."""

    method: str
    path: str
    run: Callable[[Call], Any]
    doc: str
    gives: str | None = None
    takes: str | None = None
    status: int = 200
    answers: tuple[int, ...] = ()
    query: tuple[str, ...] = ()
    accepts: media.Types = media.JSON
    produces: media.Types = media.JSON
    body_needed: bool = True
    unbounded: bool = False


@dataclass(slots=True)
class Call:
    """A request to an endpoint."""

    proxy: Proxy
    request: Request
    media_type: str
    accepted: str
    body: Any = None

    def __getitem__(self, name: str) -> Any:
        """What a name in the path stands for here."""
        value = self.request.path_params[name]
        if "\0" in value:
            raise HttpError(400, f"{name} has a character that no name has.")
        if name not in NUMBERS:
            return value
        if not value.isascii() or not value.isdecimal() or int(value) >= 2**31:
            raise HttpError(404)
        return int(value)

    @property
    def kafka(self) -> Kafka:
        return self.proxy.kafka

    def query(self, name: str, default: str | None = None) -> str | None:
        return self.request.query_params.get(name, default)

    @property
    def base(self) -> str:
        return str(self.request.base_url).rstrip("/")

    def url(self, *segments: Any) -> str:
        """Where a part of the cluster is found in version 3."""
        return "/".join([f"{self.base}/v3/clusters/{quoted(self.kafka.cluster_id)}", *map(quoted, segments)])

    def name(self, **parts: Any) -> str:
        """The name of a part of the cluster, whoever serves it."""
        authority = self.proxy.settings["confluent.resource.name.authority"]
        rows = [f"kafka={quoted(self.kafka.cluster_id)}"]
        rows += [
            f"{key.replace('_', '-')}{'' if value is None else '=' + quoted(value)}" for key, value in parts.items()
        ]
        return f"crn://{authority}/{'/'.join(rows)}"

    def link(self, *segments: Any) -> dict[str, str]:
        return {"related": self.url(*segments)}

    def resource(self, kind: str, where: tuple[Any, ...], names: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """A part of the cluster as version 3 shows it."""
        metadata = {"self": self.url(*where), "resource_name": self.name(**names)}
        return {"kind": kind, "metadata": metadata, "cluster_id": self.kafka.cluster_id, **fields}

    def listing(self, kind: str, data: list[dict[str, Any]]) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"self": str(self.request.url), "next": None}, "data": data}


def quoted(value: Any) -> str:
    return quote(str(value), safe="-._~:*")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with another status than the row's, or with headers."""

    status: int
    body: Any = None
    headers: dict[str, str] | None = None


def route(endpoint: Endpoint, proxy: Proxy) -> Route:
    """The endpoint as the HTTP part wants it."""
    run: Callable[[Call], Awaitable[Any]] = _threaded(endpoint.run)
    checks_cluster = "{cluster_id}" in endpoint.path

    async def handler(request: Request) -> Response:
        accepted = endpoint.produces.accepted(request.headers.get("accept"))
        media_type = accepted
        if endpoint.takes:
            media_type = endpoint.accepts.content(request.headers.get("content-type"))
        call = Call(proxy, request, media_type, accepted)
        if endpoint.takes and not endpoint.unbounded:
            call.body = await _body(endpoint, request)
        if checks_cluster:
            await _check_cluster(call)
        return _response(endpoint, await run(call), accepted)

    if endpoint.unbounded:
        handler.unbounded = True  # type: ignore[attr-defined]
    return Route(endpoint.method, endpoint.path, handler)


def _threaded(run: Callable[[Call], Any]) -> Callable[[Call], Awaitable[Any]]:
    return run if inspect.iscoroutinefunction(run) else lambda call: call.kafka.run(run, call)


async def _check_cluster(call: Call) -> None:
    known = call.proxy.cluster_id or await call.kafka.run(lambda: call.kafka.cluster_id)
    call.proxy.cluster_id = known
    if call["cluster_id"] != known:
        raise not_found(f"Cluster {call['cluster_id']}")


def _response(endpoint: Endpoint, found: Any, accepted: str) -> Response:
    if isinstance(found, Response):
        return found
    answer = found if isinstance(found, Answer) else Answer(endpoint.status, found)
    if answer.body is None:
        return Response(status_code=answer.status, headers=answer.headers)
    return json_response(answer.body, accepted, answer.status, answer.headers)


async def _body(endpoint: Endpoint, request: Request) -> Any:
    body = await read_body(request)
    if not body.strip():
        if endpoint.body_needed:
            raise refusal(WRONG_PAYLOAD, NO_DATA)
        return None
    return checked(endpoint.takes or "", document(body))


def document(body: bytes, read: Callable[[bytes], Any] = read_json) -> Any:
    """JSON that can be written again: a lone half of a surrogate pair cannot."""
    try:
        found = read(body)
        if b"\\u" in body:
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise HttpError(400, "The document has half of a surrogate pair, which is no character.") from None
    except ValueError as error:
        raise HttpError(400, f"Invalid JSON: {error}") from None
    return found


def checked(name: str, body: Any) -> Any:
    """The body, if it has the shape of a row; what is missing or unknown is 422, what is wrong is 400."""
    if body is None:
        raise refusal(WRONG_PAYLOAD, NO_DATA)
    if name in KNOWN and KNOWN[name](body):
        return body
    for error in _validator(name).iter_errors(body):
        where = error.json_path.removeprefix("$").removeprefix(".")
        status = 422 if error.validator in UNPROCESSABLE else 400
        raise HttpError(status, f"{where or 'body'}: {_short(error.message)}")
    return body


@cache
def _validator(name: str) -> Any:
    return _Strict({**ref(name), "components": {"schemas": components()}})


def _is_integer(_: Any, value: Any) -> bool:
    """JSON Schema takes 1.0 for an integer; Kafka's messages do not."""
    return isinstance(value, int) and not isinstance(value, bool)


_Strict: Any = extend(
    Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
)


def _short(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:120]} ... {message[-70:]}"
