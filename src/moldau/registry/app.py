"""The registry over HTTP: the table of endpoints, and how each kind of them is run.

What only reads memory runs on the loop. What parses schemas runs in a thread. What changes something runs in the
leader, under one lock; another registry sends it there.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from moldau.http import HttpError, Route, Routes, Service, json_response, read_body, read_json
from moldau.registry import changes, queries
from moldau.registry.calls import Call
from moldau.registry.commands import Change, Registry
from moldau.registry.election import Election
from moldau.registry.errors import refuse, unprocessable
from moldau.registry.forwarding import FORWARDED, Forwarder
from moldau.registry.media import JSON, V1, check_content_type, negotiated
from moldau.registry.rewriting import rewrite
from moldau.registry.topic import Topic
from moldau.settings import ServiceSettings

READ, FORMAT, WORK, WRITE = "read", "format", "work", "write"  # FORMAT parses only what must be understood
PARSED = {"format", "findTags"}
THREADS = 16


class Endpoint(NamedTuple):
    """A row: a method and path, what answers it, and how that is run. `status` is that of a success."""

    method: str
    path: str
    handler: Callable[[Call], Any]
    kind: str = READ
    status: int = 200


ENDPOINTS = (
    Endpoint("GET", "/", queries.root),
    Endpoint("POST", "/", queries.root),
    Endpoint("GET", "/subjects", queries.list_subjects),
    Endpoint("POST", "/subjects/{subject}", queries.look_up, WORK),
    Endpoint("DELETE", "/subjects/{subject}", changes.delete_subject, WRITE),
    Endpoint("GET", "/subjects/{subject}/versions", queries.list_versions),
    Endpoint("POST", "/subjects/{subject}/versions", changes.register, WRITE),
    Endpoint("GET", "/subjects/{subject}/versions/{version}", queries.show_version, FORMAT),
    Endpoint("DELETE", "/subjects/{subject}/versions/{version}", changes.delete_version, WRITE),
    Endpoint("GET", "/subjects/{subject}/versions/{version}/schema", queries.show_version_schema, FORMAT),
    Endpoint("GET", "/subjects/{subject}/versions/{version}/referencedby", queries.list_referrers),
    Endpoint("POST", "/subjects/{subject}/versions/{version}/tags", changes.tag, WRITE),
    Endpoint("GET", "/subjects/{subject}/metadata", queries.latest_with_metadata, FORMAT),
    Endpoint("GET", "/schemas", queries.list_schemas),
    Endpoint("GET", "/schemas/types", queries.schema_types),
    Endpoint("GET", "/schemas/ids/{id}", queries.show_schema, FORMAT),
    Endpoint("GET", "/schemas/ids/{id}/schema", queries.show_schema_text, FORMAT),
    Endpoint("GET", "/schemas/ids/{id}/subjects", queries.list_subjects_of_id),
    Endpoint("GET", "/schemas/ids/{id}/versions", queries.list_versions_of_id),
    Endpoint("GET", "/schemas/guids/{guid}", queries.show_guid, FORMAT),
    Endpoint("GET", "/schemas/guids/{guid}/ids", queries.list_ids_of_guid),
    Endpoint("POST", "/compatibility/subjects/{subject}/versions", queries.check_compatibility, WORK),
    Endpoint("POST", "/compatibility/subjects/{subject}/versions/{version}", queries.check_compatibility, WORK),
    Endpoint("GET", "/config", queries.show_config),
    Endpoint("PUT", "/config", changes.set_config, WRITE),
    Endpoint("DELETE", "/config", changes.delete_config, WRITE),
    Endpoint("GET", "/config/{subject}", queries.show_config),
    Endpoint("PUT", "/config/{subject}", changes.set_config, WRITE),
    Endpoint("DELETE", "/config/{subject}", changes.delete_config, WRITE),
    Endpoint("GET", "/mode", queries.show_mode),
    Endpoint("PUT", "/mode", changes.set_mode, WRITE),
    Endpoint("DELETE", "/mode", changes.delete_mode, WRITE),
    Endpoint("GET", "/mode/{subject}", queries.show_mode),
    Endpoint("PUT", "/mode/{subject}", changes.set_mode, WRITE),
    Endpoint("DELETE", "/mode/{subject}", changes.delete_mode, WRITE),
    Endpoint("GET", "/contexts", queries.list_contexts),
    Endpoint("DELETE", "/contexts/{context}", changes.delete_context, WRITE, 204),
    Endpoint("GET", "/master_available", queries.show_leader),
    Endpoint("GET", "/v1/metadata/id", queries.show_cluster),
    Endpoint("GET", "/v1/metadata/version", queries.show_version_of_server),
    Endpoint("GET", "/v1/metadata/deployment", queries.show_deployment),
)
PLAIN = (queries.show_version_schema, queries.show_schema_text)  # the schema itself, not a text in JSON
PROBES = (queries.show_leader,)  # answered whatever the client accepts
ONCE = (changes.register,)  # a request that may turn out to change nothing, so that any registry can answer it


@dataclass(slots=True)
class Parts:
    """What the endpoints work with."""

    registry: Registry
    topic: Topic
    election: Election
    forwarder: Forwarder
    settings: ServiceSettings
    threads: ThreadPoolExecutor
    lock: threading.Lock
    cluster_id: str = ""


def application(parts: Parts) -> Service:
    """The ASGI application."""
    rows = [Route(row.method, row.path, functools.partial(answer, parts, row)) for row in ENDPOINTS]
    return Service(
        Routes(rows),
        parts.settings,
        V1,
        timed_out=lambda: refuse(50002, "The request"),
        rewrite=lambda scope: rewrite(parts.registry.store, scope),
    )


async def answer(parts: Parts, row: Endpoint, request: Request) -> Response:
    media_type = JSON if row.handler in PROBES else negotiated(request.headers.get("accept"))
    body = await _body(request) if row.method in ("POST", "PUT") else None
    call = Call(
        parts.registry,
        parts.settings,
        dict(request.path_params),
        request.query_params,
        body,
        parts.cluster_id,
        parts.election.leads or parts.election.leader is not None,
    )
    if row.kind == WRITE:
        return await _write(parts, row, request, call, media_type)
    parses = row.kind == WORK or (row.kind == FORMAT and not PARSED.isdisjoint(request.query_params))
    found = await _work(parts, row.handler, call) if parses else row.handler(call)
    if row.handler in PLAIN:
        return Response(found.encode("utf-8", "surrogatepass"), media_type=media_type)
    return json_response(found, media_type)


async def _body(request: Request) -> Any:
    check_content_type(request.headers.get("content-type"))
    data = await read_body(request)
    request.state.body = data
    if not data.strip():
        raise unprocessable("The request has no body.")
    try:
        return await asyncio.to_thread(read_json, data) if len(data) > 100_000 else read_json(data)
    except ValueError as error:
        raise HttpError(400, str(error)) from None


async def _work(parts: Parts, function: Callable[..., Any], *given: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(parts.threads, function, *given)


async def _write(parts: Parts, row: Endpoint, request: Request, call: Call, media_type: str) -> Response:
    if not parts.election.leads:
        if row.handler in ONCE and (known := await _work(parts, _unchanged, row, call)) is not None:
            return json_response(known, media_type)
        leader = parts.election.leader or await _work(parts, parts.election.wait, parts.settings.seconds(TIMEOUT))
        if leader is None or (not parts.election.leads and FORWARDED in request.headers):
            raise refuse(50004)
        if not parts.election.leads:
            return await parts.forwarder.send(leader.url, request)
    done = await _work(parts, _apply, parts, row, call)
    return Response(status_code=204) if row.status == 204 else json_response(done, media_type, row.status)


TIMEOUT = "kafkastore.timeout.ms"


def _unchanged(row: Endpoint, call: Call) -> Any:
    """The answer to a request that changes nothing; None if it changes something, or is refused here."""
    try:
        change: Change = row.handler(call)
    except HttpError:
        return None
    return None if change.records else change.answer


def _apply(parts: Parts, row: Endpoint, call: Call) -> Any:
    """Decide, write, and wait until that is read back. One at a time: the next must see what this one did."""
    timeout_s = parts.settings.seconds(TIMEOUT)
    began = time.monotonic()
    if not parts.lock.acquire(timeout=timeout_s):
        raise refuse(50002, "Waiting for earlier writes")
    try:
        if not parts.election.leads:
            raise refuse(50004)  # it was lost while this waited
        change: Change = row.handler(call)
        if change.records:
            parts.topic.write(change.records)
        return change.answer
    except HttpError as error:
        if error.code == 50002 and "config" in row.path:
            raise refuse(50001, f"no answer in {time.monotonic() - began:.1f} s") from None  # as Confluent has it
        raise
    finally:
        parts.lock.release()
