"""The server over HTTP: ksqlDB's endpoints, with its shapes and error codes.

| | |
|---|---|
| POST /ksql | statements; a list of entities |
| POST /query | a query or PRINT; a list of JSON documents, sent as rows come |
| POST /query-stream | a query or PRINT; a line with the columns, then a line for each row; or Arrow |
| POST /inserts-stream | a line that names a stream, then a line for each row; a line of acknowledgement for each |
| POST /close-query | ends a push query |
| POST /ksql/terminate | ends all queries, and the server |
| GET /ws/query | a query over a websocket |
| GET /info, /healthcheck, /clusterStatus, /status, /is_valid_property/{name}, /v1/metadata, /metrics | the server |
| POST /heartbeat, /lag | what other servers say of themselves |
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse, Response

from moldau.client import ClientError
from moldau.http import ADMIN, EDITOR, VIEWER, Caller, HttpError, Route, Routes
from moldau.sql.errors import SqlError
from moldau.sql.server import arrow, peers, terminating
from moldau.sql.server.access import Access, anything
from moldau.sql.server.commands import TERMINATE_CLUSTER
from moldau.sql.server.documents import answer, document, request_of, sequence_number
from moldau.sql.server.entities import current_status
from moldau.sql.server.errors import (
    BAD_REQUEST,
    NOT_ACCEPTABLE,
    NOT_FOUND,
    SERVER_ERROR,
    SHUTTING_DOWN,
    ServerError,
)
from moldau.sql.server.forms import DOCUMENTS, JSON, LINES, LIST, Form
from moldau.sql.server.inserting import DELIMITED_V1, Inserting
from moldau.sql.server.metrics import metrics
from moldau.sql.server.news import Reached, news_of
from moldau.sql.server.printing import Printing, prints, requested
from moldau.sql.server.property_names import is_property
from moldau.sql.server.results import Results
from moldau.sql.server.service import Request, Service
from moldau.sql.server.streamed import Streamed
from moldau.sql.server.together import Together

log = logging.getLogger(__name__)
VERSION = "8.0.0"  # the version of ksqlDB that clients take the server for
TEXT = "text/plain; charset=utf-8"
PORTION = 1_000  # rows that are sent at once
UNTIL, MOST_WAITING = "UNTIL", 32  # a word of queries that wait, and how many of them wait at once
IDLE_S = 0.05  # between two looks for records that PRINT shows
LOOK_S = 1.0  # between two looks for rows of a push query while there is nothing new

Handle = Callable[[HttpRequest], Awaitable[Response]]


class Endpoints:
    """The endpoints of one service. Whatever waits runs in a thread."""

    def __init__(
        self,
        service: Service,
        cluster_id: str,
        access_of: Callable[[Caller], Access] = lambda caller: anything,
    ) -> None:
        self.service, self.cluster_id, self.access_of = service, cluster_id, access_of
        self.peers = peers.Peers(service.address)
        self.waiting = ThreadPoolExecutor(MOST_WAITING, "sql waits")  # so that other requests find threads
        self.together, self.news = Together(service.pulls.answers, "sql lookups"), news_of(service.topics)

    def routes(self) -> Routes:
        # Of the statements to /ksql, those that change something need an editor: `READING` has the others.
        rows: list[tuple[str, str, Handle, bool, str]] = [
            ("POST", "/ksql", self.ksql, False, VIEWER),
            ("POST", "/query", self.query, True, VIEWER),
            ("POST", "/query-stream", self.query_stream, True, VIEWER),
            ("POST", "/inserts-stream", self.inserts_stream, True, EDITOR),
            ("POST", "/close-query", self.close_query, False, VIEWER),
            ("POST", "/ksql/terminate", self.terminate, False, ADMIN),
            ("POST", "/heartbeat", self.heartbeat, False, EDITOR),
            ("POST", "/lag", self.lag, False, EDITOR),
            ("GET", "/", self.root, False, VIEWER),
            ("GET", "/info", self.info, False, VIEWER),
            ("GET", "/healthcheck", self.healthcheck, False, VIEWER),
            ("GET", "/clusterStatus", self.cluster_status, False, VIEWER),
            ("GET", "/status", self.statuses, False, VIEWER),
            ("GET", "/status/{type}/{entity}/{action}", self.status, False, VIEWER),
            ("GET", "/is_valid_property/{name}", self.is_valid_property, False, VIEWER),
            ("GET", "/v1/metadata", self.metadata, False, VIEWER),
            ("GET", "/v1/metadata/id", self.metadata_id, False, VIEWER),
            ("GET", "/metrics", self.metrics, False, VIEWER),
            ("GET", "/chc/ready", self.alive, False, VIEWER),
            ("GET", "/chc/live", self.alive, False, VIEWER),
        ]
        return Routes(
            Route(method, path, self._guarded(handler, unbounded), role)
            for method, path, handler, unbounded, role in rows
        )

    def _guarded(self, handler: Handle, unbounded: bool) -> Handle:
        """Turn refusals into answers."""

        async def guarded(request: HttpRequest) -> Response:
            try:
                if self.service.terminated:
                    raise ServerError(SHUTTING_DOWN, "The server is shutting down")
                return await handler(request)
            except ServerError as error:
                return answer(error.body(), error.status)
            except HttpError as error:
                return answer(generic_error(error), error.status)

        guarded.unbounded = unbounded  # type: ignore[attr-defined]
        return guarded

    async def _asked(self, request: HttpRequest, text: str, properties: str) -> Request:
        """Read a request with its statements, and with what its caller may do."""
        body = await document(request)
        await self.reach(body)
        return self.on_behalf(request.state.caller, request_of(body, text, properties))

    async def reach(self, body: dict[str, Any]) -> None:
        """Wait for the command that a request names: a client's last one, which another server may have executed."""
        number = sequence_number(body)
        if number is not None and number >= 0:
            await asyncio.to_thread(self.service.commands.reach, number)

    def on_behalf(self, caller: Caller, asked: Request) -> Request:
        asked.may_change, asked.access = caller.may(EDITOR), self.access_of(caller)
        return asked

    # Statements

    async def ksql(self, request: HttpRequest) -> Response:
        asked = await self._asked(request, "ksql", "streamsProperties")
        return answer(await asyncio.to_thread(self.service.execute, asked))

    async def terminate(self, request: HttpRequest) -> Response:
        patterns = terminating.patterns_of(await document(request))
        access = self.access_of(request.state.caller)
        try:
            done = await asyncio.to_thread(self.service.terminate, patterns, access)
        except SqlError as error:
            raise ServerError(SERVER_ERROR, str(error)) from None
        return answer([current_status(terminating.TEXT, TERMINATE_CLUSTER, done)])

    # Queries

    async def query(self, request: HttpRequest) -> Response:
        asked = await self._asked(request, "ksql", "streamsProperties")
        printing = await asyncio.to_thread(requested, self.service, asked) if prints(asked) else None
        if printing is not None:
            return self._streamed(self.printed(printing), TEXT, str.encode)
        results = await self.begin(asked)
        return self._answer(request, results, DOCUMENTS)

    async def query_stream(self, request: HttpRequest) -> Response:
        asked = await self._asked(request, "sql", "properties")
        accepted = request.headers.get("accept", "")
        printing = await asyncio.to_thread(requested, self.service, asked) if prints(asked) else None
        if printing is not None:
            if JSON in accepted or arrow.MEDIA_TYPE in accepted:
                raise ServerError(NOT_ACCEPTABLE, f"PRINT is answered in lines of text: accept {DELIMITED_V1}.")
            return self._streamed(self.printed(printing), TEXT, str.encode)
        results = await self.begin(asked)
        if arrow.MEDIA_TYPE in accepted:
            parts = arrow.parts(results.columns, self.batches(results))
            return self._streamed(self._counted(results, parts), arrow.MEDIA_TYPE, lambda _: b"")
        return self._answer(request, results, LIST if JSON in accepted else LINES)

    def _answer(self, request: HttpRequest, results: Results, form: Form) -> Response:
        """Answer with rows: at once if all are there and they are few.

        Each row of a push query is a part of its own, and in HTTP/2 each row: some clients take a part for a row.
        """
        if not results.is_there or request.scope["http_version"] == "2":
            return self._in_parts(results, form, _one_by_one(self.batches(results)))
        rows = results.poll()
        if len(rows) > PORTION:
            return self._in_parts(results, form, _portions(rows))
        body = b"".join((form.head(results), *map(form.row, rows), form.tail(results)))
        self.service.admission.answered(len(body))
        return Response(body, media_type=form.media_type)

    def _in_parts(self, results: Results, form: Form, batches: AsyncGenerator[list[Any], None]) -> Response:
        async def parts() -> AsyncGenerator[bytes, None]:
            yield form.head(results)
            failed = False
            async with contextlib.aclosing(batches):
                async for rows in batches:
                    yield b"".join(map(form.row, rows))
                    failed = isinstance(rows[-1], ServerError)
            if tail := form.tail(results, failed):
                yield tail

        slow: Callable[[str], bytes] = lambda text: form.row(ServerError(SERVER_ERROR, text)) + form.end  # noqa: E731
        return self._streamed(self._counted(results, parts()), form.media_type, slow)

    def _streamed(self, parts: AsyncGenerator[bytes, None], media_type: str, slow: Callable[[str], bytes]) -> Response:
        return Streamed(parts, media_type, self.service.admission.limits.slow_reader_s, slow)

    async def _counted(self, results: Results, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Count the bytes of a pull query's answer."""
        size = 0
        try:
            async for part in parts:
                size += len(part)
                yield part
        finally:
            await parts.aclose()
            if results.query_id is None:
                self.service.admission.answered(size)

    async def begin(self, asked: Request) -> Results:
        lookup = self.service.pulls.known(asked) if asked.access is anything else None
        if lookup is not None and lookup.is_short and (found := await self.together.answer(lookup)) is not None:
            if isinstance(found, ServerError):
                raise found
            return found
        if UNTIL in asked.text.upper():
            return await asyncio.get_running_loop().run_in_executor(self.waiting, self.service.query, asked)
        return await asyncio.to_thread(self.service.query, asked)

    async def rows(self, results: Results) -> AsyncIterator[Any]:
        """Yield rows as they come; a failure is the last thing."""
        async for found in self.batches(results):
            for row in found:
                yield row

    async def batches(self, results: Results) -> AsyncGenerator[list[Any], None]:
        """Yield rows as they come, those together that are there at once. The query ends with the connection."""
        if results.is_there:
            if found := results.poll():
                yield found
            return
        try:
            while not results.done:
                try:
                    found, reached = await asyncio.to_thread(self._poll, results)
                    if not found:
                        await self._until_news(results, reached)
                except Exception as error:  # the answer has begun: the client is told in it
                    log.exception("query %s failed", results.query_id)
                    yield [ServerError(SERVER_ERROR, f"{type(error).__name__}: {error}")]
                    return
                if found:
                    yield found
        finally:
            await asyncio.to_thread(self._close, results)

    async def _until_news(self, results: Results, reached: Reached) -> None:
        """Wait until there are records that a query has not read, or it is over, or it should look again anyway."""
        again_at = time.monotonic() + LOOK_S
        while not results.done and time.monotonic() < again_at:
            if await self.news.answer(reached):
                return

    def _close(self, results: Results) -> None:
        with self.service.lock:
            results.close()

    def _poll(self, results: Results) -> tuple[list[Any], Reached]:
        """Return the rows that are there, and how far the query has read."""
        with self.service.lock:
            return [] if results.done else results.poll(), results.positions()

    async def printed(self, printing: Printing) -> AsyncGenerator[bytes, None]:
        """Yield the lines of PRINT."""
        while not printing.done:
            lines = await asyncio.to_thread(printing.poll)
            if lines:
                yield "".join(f"{line}\n" for line in lines).encode()
            elif not printing.done:
                await asyncio.sleep(IDLE_S)

    async def close_query(self, request: HttpRequest) -> Response:
        query_id = (await document(request)).get("queryId")
        results = self.service.pushes.get(str(query_id))
        if results is None:
            raise ServerError(BAD_REQUEST, f"No query with id {query_id}")
        results.done = True  # whoever sends its rows ends it
        return Response(status_code=200)

    # Inserts

    async def inserts_stream(self, request: HttpRequest) -> Response:
        return Inserting(self.service, request, self.access_of(request.state.caller))

    # The server

    async def root(self, request: HttpRequest) -> Response:
        return RedirectResponse("/info", 307)

    async def info(self, request: HttpRequest) -> Response:
        about = {
            "version": VERSION,
            "kafkaClusterId": self.cluster_id,
            "ksqlServiceId": self.service.service_id,
            "serverStatus": "RUNNING",
        }
        return answer({"KsqlServerInfo": about})

    async def healthcheck(self, request: HttpRequest) -> Response:
        try:
            await asyncio.to_thread(self.service.topics.names)
            healthy = True
        except ClientError as error:
            log.warning("Kafka does not answer: %s", error)
            healthy = False
        details = {name: {"isHealthy": healthy} for name in ("metastore", "kafka", "commandRunner")}
        return answer({"isHealthy": healthy, "details": details, "serverState": "READY"})

    async def alive(self, request: HttpRequest) -> Response:
        return answer({})

    async def cluster_status(self, request: HttpRequest) -> Response:
        return answer(await asyncio.to_thread(self.peers.status, self.service))

    async def heartbeat(self, request: HttpRequest) -> Response:
        self.peers.heard(await document(request))
        return answer({"isOk": True})

    async def lag(self, request: HttpRequest) -> Response:
        self.peers.lagged(await document(request))
        return answer({"isOk": True})

    async def metrics(self, request: HttpRequest) -> Response:
        return Response(await asyncio.to_thread(metrics, self.service), media_type="text/plain; version=0.0.4")

    async def statuses(self, request: HttpRequest) -> Response:
        known = dict(self.service.statuses.known)
        return answer({"commandStatuses": {name: status.word for name, status in known.items()}})

    async def status(self, request: HttpRequest) -> Response:
        path = request.path_params
        found = self.service.statuses.of(path["type"], path["entity"], path["action"])
        if found is None:
            raise ServerError(NOT_FOUND, "Command not found")
        return answer(await asyncio.to_thread(found.document))

    async def is_valid_property(self, request: HttpRequest) -> Response:
        name = request.path_params["name"]
        if not is_property(name):
            raise ServerError(
                BAD_REQUEST, f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'"
            )
        self.service.admission.check_properties([name])
        return answer(True)

    async def metadata(self, request: HttpRequest) -> Response:
        return answer({"version": VERSION, "clusterId": self._cluster()})

    async def metadata_id(self, request: HttpRequest) -> Response:
        return answer(self._cluster())

    def _cluster(self) -> dict[str, Any]:
        clusters = {"kafka-cluster": self.cluster_id, "ksql-cluster": self.service.service_id}
        return {"id": "", "scope": {"path": [], "clusters": clusters}}


def generic_error(error: HttpError) -> dict[str, Any]:
    """Return the body of a refusal that has nothing to do with a statement."""
    return {"@type": "generic_error", "error_code": error.status * 100, "message": str(error)}


async def _one_by_one(batches: AsyncGenerator[list[Any], None]) -> AsyncGenerator[list[Any], None]:
    async with contextlib.aclosing(batches):
        async for rows in batches:
            for row in rows:
                yield [row]


async def _portions(rows: list[Any]) -> AsyncGenerator[list[Any], None]:
    for first in range(0, len(rows), PORTION):
        yield rows[first : first + PORTION]
