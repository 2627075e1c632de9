"""A refusal over HTTP: a status, a code that says more, and one sentence. Never a stack trace."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from starlette.responses import Response


class HttpError(Exception):
    """An answer that is not a success. The code is the status, or that with two digits more."""

    def __init__(self, code: int, message: str = "", *, headers: dict[str, str] | None = None) -> None:
        status = code if code < 1000 else code // 100
        super().__init__(message or f"HTTP {status} {HTTPStatus(status).phrase}")
        self.code, self.status, self.headers = code, status, headers or {}


def error_body(error: HttpError) -> dict[str, Any]:
    """Return the body that errors of Confluent's services have."""
    return {"error_code": error.code, "message": str(error)}


def json_response(content: Any, media_type: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with any document, as compact as Confluent's."""
    body = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return Response(body, status, headers, media_type)
