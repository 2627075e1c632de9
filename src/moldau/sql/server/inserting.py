"""POST /inserts-stream: rows that are acknowledged one by one while more of them come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from moldau.sql import formats
from moldau.sql.catalogue import Format, Source
from moldau.sql.errors import SqlError
from moldau.sql.server.access import WRITE, Access
from moldau.sql.server.documents import answer, dumps, read_object
from moldau.sql.server.errors import BAD_REQUEST, BAD_STATEMENT, ServerError, reason
from moldau.sql.server.service import Service
from moldau.sql.transient.inserts import insertable, row_of
from moldau.sql.tree import BIGINT

DELIMITED_V1 = "application/vnd.ksqlapi.delimited.v1"
JSON = "application/json"
MOST_LINE = 1 << 20


class Inserting(Response):
    """Reads rows and acknowledges each when it is written, while more rows come."""

    def __init__(self, service: Service, request: HttpRequest, access: Access) -> None:
        super().__init__()
        self._service, self._request, self._access = service, request, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        listed = JSON in self._request.headers.get("accept", "")
        begun = 0

        async def say(document: Any) -> None:
            nonlocal begun
            text = dumps(document)
            line = (b",\n" if begun else b"[") + text if listed else text + b"\n"
            if not begun:
                await start()
            begun += 1
            await send({"type": "http.response.body", "body": line, "more_body": True})

        async def start() -> None:
            headers = [(b"content-type", (JSON if listed else DELIMITED_V1).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})

        source: Source | None = None
        number = 0
        try:
            async for line in _lines(self._request):
                if source is None:
                    source = self._target(line)
                    await asyncio.to_thread(self._access, {source.topic: {WRITE}})
                    continue
                try:
                    await asyncio.to_thread(self._insert, source, line)
                except SqlError as error:
                    await say({"status": "error", "seq": number, "error_code": BAD_REQUEST, "message": str(error)})
                    break
                await say({"status": "ok", "seq": number})
                number += 1
            if source is None:
                raise ServerError(BAD_REQUEST, "The first line of the body must name the target.")
        except ServerError as error:
            if not begun:
                await answer(error.body(), error.status)(scope, receive, send)
                return
            await say({"status": "error", "seq": number, "error_code": error.code, "message": error.message})
        if not begun:
            await start()
        end = (b"]\n" if begun else b"[]\n") if listed else b""
        await send({"type": "http.response.body", "body": end, "more_body": False})

    def _target(self, line: bytes) -> Source:
        try:
            name = str(read_object(line).get("target") or "")
            known = name[1:-1] if name[:1] == "`" else name.upper()
            return insertable(known, self._service.engine.catalogue)
        except SqlError as error:
            raise ServerError(BAD_STATEMENT, reason(error)) from None

    def _insert(self, source: Source, line: bytes) -> None:
        self._service.insert(row_of(source, _values(source, line), self._service.clock()))


def _values(source: Source, line: bytes) -> dict[str, Any]:
    """Read a row of a stream of inserts: a JSON object with the names of columns, in any case."""
    given = {str(name): value for name, value in read_object(line).items()}
    columns = (*source.schema.key, *source.stored_value, ("ROWTIME", BIGINT))
    names = {name: name for name, _ in columns} | {name.upper(): name for name, _ in columns}
    found = {}
    for name, value in given.items():
        known = names.get(name) or names.get(name[1:-1] if name[:1] == "`" else name.upper())
        if known is None:
            raise SqlError(f"There is no column {name} in {source.name}.")
        found[known] = value
    serde = formats.serde(Format("JSON"), columns, key=False)
    try:
        row = serde.loads(dumps(found))
    except formats.SerdeError as error:
        raise SqlError(f"The row does not fit {source.name}: {error}") from None
    assert row is not None
    return {name: value for (name, _), value in zip(columns, row, strict=True) if name in found}


async def _lines(request: HttpRequest) -> AsyncIterator[bytes]:
    """Yield the lines of a body as they arrive."""
    rest = b""
    async for chunk in request.stream():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                yield line
        if len(rest) > MOST_LINE:
            raise ServerError(BAD_REQUEST, f"A line is longer than {MOST_LINE} bytes.")
    if rest.strip():
        yield rest
