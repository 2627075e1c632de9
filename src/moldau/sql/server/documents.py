"""Bodies of requests and answers: JSON whose decimals keep their digits, and the fields of a request."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from moldau.http import read_body, read_json
from moldau.java.numbers import plain_text
from moldau.sql.errors import SqlError
from moldau.sql.server.errors import BAD_REQUEST, ServerError
from moldau.sql.server.service import Request


def read_object(data: bytes) -> dict[str, Any]:
    try:
        found = read_json(data)
    except ValueError as error:
        raise SqlError(f"Invalid JSON: {error}") from None
    if not isinstance(found, dict):
        raise SqlError("A JSON object is expected.")
    return found


async def document(request: HttpRequest) -> dict[str, Any]:
    try:
        return read_object(await read_body(request))
    except SqlError as error:
        raise ServerError(BAD_REQUEST, str(error)) from None


def request_of(body: dict[str, Any], text: str, properties: str) -> Request:
    """Read a request; both spellings of its fields are accepted."""
    other = {"ksql": "sql", "sql": "ksql"}[text]
    statement = body.get(text, body.get(other))
    if not isinstance(statement, str):
        raise ServerError(BAD_REQUEST, f"The request has no '{text}'.")
    given = body.get(properties) or body.get("streamsProperties") or body.get("properties") or {}
    variables = body.get("sessionVariables") or {}
    if not isinstance(given, dict) or not isinstance(variables, dict):
        raise ServerError(BAD_REQUEST, "Properties and variables must be objects.")
    known = {name.removeprefix("ksql.streams."): value for name, value in given.items()}
    return Request(statement, known, {str(name): str(value) for name, value in variables.items()})


def sequence_number(body: dict[str, Any]) -> int | None:
    """Return the number of the command that must be executed before the request is answered."""
    number = body.get("commandSequenceNumber")
    if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
        raise ServerError(BAD_REQUEST, "commandSequenceNumber must be a number.")
    return number


def answer(body: Any, status: int = 200) -> Response:
    return Response(dumps(body), status, media_type="application/json")


class _Number(float):
    """A decimal that is written with all its digits."""

    def __new__(cls, value: Decimal) -> _Number:
        made = super().__new__(cls, value)
        made.text = plain_text(value)  # type: ignore[attr-defined]
        return made

    def __repr__(self) -> str:
        return self.text  # type: ignore[attr-defined]


def dumps(document: Any) -> bytes:
    return json.dumps(_exact(document), ensure_ascii=False, separators=(",", ":")).encode()


def _exact(value: Any) -> Any:
    """Replace decimals by numbers that keep their digits."""
    if isinstance(value, Decimal):
        return _Number(value)
    if isinstance(value, dict):
        return {name: _exact(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return value
