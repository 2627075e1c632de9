"""A server of ksqlDB's kind, over HTTP/1.1: `/info`, `/ksql` and `/query`, which ksqlDB's servers have, too."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

CONNECT_S = 10.0
JSON_V1 = "application/vnd.ksql.v1+json"
DEFAULT_URL = "http://localhost:8088"
SERVER_VARIABLE = "MOLDAU_SQL_SERVER"  # of the environment
SEPARATORS = "[], \r\n"


class RemoteError(Exception):
    """A refusal of the server, or a server that cannot be reached (code 0). `entities` were answered before it."""

    def __init__(self, message: str, code: int = 0, entities: tuple[dict[str, Any], ...] = ()) -> None:
        super().__init__(message)
        self.message, self.code, self.entities = message, code, entities


@dataclass(slots=True)
class Scope:
    """What SET and DEFINE have set, and the last command that a request waits for: sent with each request."""

    properties: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    sequence: int | None = None

    def body(self, text: str) -> dict[str, Any]:
        body = {"ksql": text, "streamsProperties": self.properties, "sessionVariables": self.variables}
        return body if self.sequence is None else {**body, "commandSequenceNumber": self.sequence}


class Server:
    """A server and the connection to it. `options` are those of httpx: certificates, for example."""

    def __init__(self, url: str = DEFAULT_URL, auth: tuple[str, str] | None = None, **options: Any) -> None:
        self.url, self.auth, self.options = url.rstrip("/"), auth, options
        timeout = httpx.Timeout(None, connect=CONNECT_S)  # ASSERT waits for as long as it says
        self._http = httpx.Client(base_url=self.url, auth=auth, timeout=timeout, **options)
        self._limit: _Limit | None = None  # of the query that runs

    def at(self, url: str) -> Server:
        """Return another server with the same credentials."""
        return Server(url, self.auth, **self.options)

    def close(self) -> None:
        self._http.close()

    def interrupt(self) -> None:
        """End the query that another thread runs, also while it waits for rows."""
        if self._limit is not None:
            self._limit.end()

    def info(self) -> dict[str, Any]:
        """Return what the server says about itself: version, kafkaClusterId, ksqlServiceId, serverStatus."""
        answer = self._send("GET", "/info")
        found = answer.get("KsqlServerInfo") if isinstance(answer, dict) else None
        if not isinstance(found, dict):
            raise RemoteError(f"{self.url} is not a SQL server: its /info is not that of one.")
        return found

    def execute(self, text: str, scope: Scope | None = None) -> list[dict[str, Any]]:
        """Execute statements that are not queries, and return their entities."""
        return self._send("POST", "/ksql", json=(scope or Scope()).body(text), headers={"Accept": JSON_V1})

    def knows_property(self, name: str) -> bool:
        """Return whether a property may be SET."""
        try:
            return bool(self._send("GET", f"/is_valid_property/{quote(name, safe='')}"))
        except RemoteError as error:
            if error.code:
                return False
            raise

    @contextlib.contextmanager
    def query(self, text: str, scope: Scope | None = None, limit_s: float | None = None) -> Iterator[Iterator[Any]]:
        """Run a query, or PRINT. The parts are dicts (header, row, finalMessage, errorMessage), or lines of PRINT.

        After `limit_s` the parts end. Leaving the context ends the query.
        """
        body = (scope or Scope()).body(text)
        with self._reaching(), self._http.stream("POST", "/query", json=body) as answer:
            if answer.status_code != httpx.codes.OK:
                answer.read()
                raise _refusal(answer)
            with _Limit(answer, limit_s) as limit:
                self._limit = limit
                documents = "json" in answer.headers.get("content-type", "json")
                yield limit.guard(_documents(answer) if documents else filter(None, answer.iter_lines()))

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as error:
            raise RemoteError(f"The server at {self.url} does not answer: {error}") from None

    def _send(self, method: str, path: str, **more: Any) -> Any:
        with self._reaching():
            answer = self._http.request(method, path, **more)
        if answer.is_error:
            raise _refusal(answer)
        try:
            return answer.json()
        except ValueError:
            raise RemoteError(f"{self.url}{path} does not answer with JSON: it is not a SQL server.") from None


class _Limit:
    """A limit of time: when it is over the connection is shut down, which ends the wait for more."""

    def __init__(self, answer: httpx.Response, limit_s: float | None) -> None:
        self._stream = answer.extensions.get("network_stream")
        self._timer = None if limit_s is None else threading.Timer(limit_s, self.end)
        self._over = False

    def end(self) -> None:
        self._over = True
        connection = None if self._stream is None else self._stream.get_extra_info("socket")
        if connection is not None:
            with contextlib.suppress(OSError):  # the server was faster
                connection.shutdown(socket.SHUT_RDWR)

    def guard(self, parts: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from parts
        except httpx.HTTPError:
            if not self._over:
                raise

    def __enter__(self) -> _Limit:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _documents(answer: httpx.Response) -> Iterator[Any]:
    """Yield the elements of a JSON list, or of lines, as they arrive."""
    decoder, rest = json.JSONDecoder(), ""
    for text in answer.iter_text():
        rest = (rest + text).lstrip(SEPARATORS)
        while rest:
            try:
                document, end = decoder.raw_decode(rest)
            except ValueError:
                break  # the rest of it is on its way
            rest = rest[end:].lstrip(SEPARATORS)
            yield document


def _refusal(answer: httpx.Response) -> RemoteError:
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, Mapping) or "message" not in body:
        return RemoteError(f"The server answers with status {answer.status_code}.", answer.status_code * 100)
    code = int(body.get("error_code", answer.status_code * 100))
    return RemoteError(str(body["message"]), code, tuple(body.get("entities", ())))
