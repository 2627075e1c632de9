"""A client of a SQL server, ours or ksqlDB's: `with connect("http://localhost:8088") as sql: sql.rows("SELECT ...")`.

`execute` runs statements, `rows`, `arrow` and `pandas` return what a query answers, `stream` yields rows as they come,
and `inserts` writes rows as an async stream. Refusals are `QueryError`, with ksqlDB's code.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import httpx

from moldau.sql.errors import SqlError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"


class QueryError(SqlError):
    """A refusal of the server. `code` begins with the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Row(dict[str, Any]):
    """A row: its values by the names of columns."""


@dataclass(slots=True)
class Connection:
    """A server. Close it, or use it in a `with`."""

    url: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    auth: tuple[str, str] | None = None
    timeout_s: float = 60.0
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.url, auth=self.auth, timeout=self.timeout_s)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    def execute(self, text: str, **variables: str) -> list[dict[str, Any]]:
        """Execute statements, and return the server's answer to each. `variables` stand for ${name}."""
        body = {"ksql": text, "streamsProperties": dict(self.properties), "sessionVariables": variables}
        return _checked(self.http.post("/ksql", json=body)).json()

    def rows(self, text: str) -> list[Row]:
        """Return all rows of a pull query, or of a push query with a LIMIT."""
        answer = _checked(self.http.post("/query-stream", json=self._query(text), headers={"accept": DELIMITED}))
        lines = [_read(line) for line in answer.text.splitlines() if line]
        return list(_named(lines[0]["columnNames"], lines[1:]))

    def arrow(self, text: str) -> pa.Table:
        """Return all rows of a query as an Arrow table. A server of ksqlDB itself cannot do this."""
        import pyarrow as pa

        answer = _checked(self.http.post("/query-stream", json=self._query(text), headers={"accept": ARROW}))
        if ARROW not in answer.headers.get("content-type", ""):
            raise QueryError(40600, "The server does not answer in Arrow; use `rows`.")
        return pa.ipc.open_stream(answer.content).read_all()

    def pandas(self, text: str) -> pd.DataFrame:
        """Return all rows of a query as a DataFrame."""
        return self.arrow(text).to_pandas()

    async def stream(self, text: str) -> AsyncIterator[Row]:
        """Yield the rows of a query as they come. To leave the loop ends the query."""
        async with (
            self._async() as client,
            client.stream("POST", "/query-stream", json=self._query(text), headers={"accept": DELIMITED}) as answer,
        ):
            await _checked_async(answer)
            names: list[str] | None = None
            async for line in answer.aiter_lines():
                if not line:
                    continue
                found = _read(line)
                if names is None:
                    names = found["columnNames"]
                    continue
                for row in _named(names, [found]):
                    yield row

    async def inserts(
        self, target: str, rows: AsyncIterable[Mapping[str, Any]] | Iterable[Mapping[str, Any]]
    ) -> AsyncIterator[int]:
        """Write rows to a stream, and yield the number of each when it is written."""

        async def body() -> AsyncIterator[bytes]:
            yield json.dumps({"target": target}).encode() + b"\n"
            async for row in _each(rows):
                yield json.dumps(row, default=_plain).encode() + b"\n"

        async with (
            self._async() as client,
            client.stream("POST", "/inserts-stream", content=body(), headers={"accept": DELIMITED}) as answer,
        ):
            await _checked_async(answer)
            async for line in answer.aiter_lines():
                found = _read(line) if line else None
                if found is not None and found.get("status") != "ok":
                    raise QueryError(int(found.get("error_code", 0)), str(found.get("message")))
                if found is not None:
                    yield int(found["seq"])

    def _async(self) -> httpx.AsyncClient:
        auth = self.auth
        plain = self.url.startswith("http:")
        limits = httpx.Timeout(self.timeout_s, read=None)  # a push query may have no rows for long
        return httpx.AsyncClient(http1=not plain, http2=True, base_url=self.url, auth=auth, timeout=limits)

    def _query(self, text: str) -> dict[str, Any]:
        return {"sql": text, "properties": dict(self.properties)}


def connect(
    url: str,
    *,
    properties: Mapping[str, Any] | None = None,
    auth: tuple[str, str] | None = None,
    timeout_s: float = 60.0,
) -> Connection:
    """Return a connection. `properties` go with each request, such as {"auto.offset.reset": "earliest"}."""
    return Connection(url.rstrip("/"), properties or {}, auth, timeout_s)


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.status_code == 200:
        return answer
    try:
        document = answer.json()
        raise QueryError(int(document["error_code"]), str(document["message"]))
    except (ValueError, KeyError, TypeError):
        raise QueryError(answer.status_code * 100, answer.text[:1000] or answer.reason_phrase) from None


async def _checked_async(answer: httpx.Response) -> None:
    if answer.status_code != 200:
        await answer.aread()
        _checked(answer)


def _read(line: str) -> Any:
    found = json.loads(line)
    if isinstance(found, dict) and "error_code" in found and found.get("status") is None:
        raise QueryError(int(found["error_code"]), str(found.get("message")))
    return found


def _named(names: list[str], rows: Iterable[Any]) -> Iterable[Row]:
    return (Row(zip(names, row, strict=True)) for row in rows)


async def _each(rows: Any) -> AsyncIterator[Any]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row


def _plain(value: Any) -> Any:
    """Return what JSON has for a value: a text, which keeps all digits of a decimal."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
