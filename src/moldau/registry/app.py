"""The registry over HTTP: the table of endpoints, and how a change is decided, written and answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request

from moldau import http
from moldau.client import ClientError, Error
from moldau.http import LEADER, READ, THREAD, Endpoint, HttpError, Types, media
from moldau.http.forwarding import Forwarder
from moldau.registry import changes, queries
from moldau.registry.calls import Call
from moldau.registry.commands import Change, Registry
from moldau.registry.errors import refuse, unprocessable
from moldau.registry.records import Record
from moldau.registry.rewriting import rewrite
from moldau.settings import ServiceSettings
from moldau.topicstore import FENCED, TOO_LARGE, Election
from moldau.topicstore import Store as TopicStore

V1 = "application/vnd.schemaregistry.v1+json"
OURS = (V1, "application/vnd.schemaregistry+json", "application/json")
ANSWERS = Types(OURS)
BODIES = Types(OURS, ("application/octet-stream",))  # what a client sends that says nothing
FORMAT = frozenset({"format", "findTags"})  # parameters with which a schema is parsed
TIMEOUT = "kafkastore.timeout.ms"
THREADS = 16


def _row(
    method: str, path: str, run: Callable[[Call], Any], kind: str = READ, *, produces: Types = ANSWERS, **more: Any
) -> Endpoint:
    takes = "Body" if method in ("POST", "PUT") else None
    return Endpoint(method, path, run, takes=takes, accepts=BODIES, produces=produces, kind=kind, **more)


ENDPOINTS = (
    _row("GET", "/", queries.root),
    _row("POST", "/", queries.root),
    _row("GET", "/subjects", queries.list_subjects),
    _row("POST", "/subjects/{subject}", queries.look_up, THREAD),
    _row("DELETE", "/subjects/{subject}", changes.delete_subject, LEADER),
    _row("GET", "/subjects/{subject}/versions", queries.list_versions),
    _row("POST", "/subjects/{subject}/versions", changes.register, LEADER),
    _row("GET", "/subjects/{subject}/versions/{version}", queries.show_version, heavy=FORMAT),
    _row("DELETE", "/subjects/{subject}/versions/{version}", changes.delete_version, LEADER),
    _row("GET", "/subjects/{subject}/versions/{version}/schema", queries.show_version_schema, heavy=FORMAT),
    _row("GET", "/subjects/{subject}/versions/{version}/referencedby", queries.list_referrers),
    _row("POST", "/subjects/{subject}/versions/{version}/tags", changes.tag, LEADER),
    _row("GET", "/subjects/{subject}/metadata", queries.latest_with_metadata, heavy=FORMAT),
    _row("GET", "/schemas", queries.list_schemas),
    _row("GET", "/schemas/types", queries.schema_types),
    _row("GET", "/schemas/ids/{id}", queries.show_schema, heavy=FORMAT),
    _row("GET", "/schemas/ids/{id}/schema", queries.show_schema_text, heavy=FORMAT),
    _row("GET", "/schemas/ids/{id}/subjects", queries.list_subjects_of_id),
    _row("GET", "/schemas/ids/{id}/versions", queries.list_versions_of_id),
    _row("GET", "/schemas/guids/{guid}", queries.show_guid, heavy=FORMAT),
    _row("GET", "/schemas/guids/{guid}/ids", queries.list_ids_of_guid),
    _row("POST", "/compatibility/subjects/{subject}/versions", queries.check_compatibility, THREAD),
    _row("POST", "/compatibility/subjects/{subject}/versions/{version}", queries.check_compatibility, THREAD),
    _row("GET", "/config", queries.show_config),
    _row("PUT", "/config", changes.set_config, LEADER),
    _row("DELETE", "/config", changes.delete_config, LEADER),
    _row("GET", "/config/{subject}", queries.show_config),
    _row("PUT", "/config/{subject}", changes.set_config, LEADER),
    _row("DELETE", "/config/{subject}", changes.delete_config, LEADER),
    _row("GET", "/mode", queries.show_mode),
    _row("PUT", "/mode", changes.set_mode, LEADER),
    _row("DELETE", "/mode", changes.delete_mode, LEADER),
    _row("GET", "/mode/{subject}", queries.show_mode),
    _row("PUT", "/mode/{subject}", changes.set_mode, LEADER),
    _row("DELETE", "/mode/{subject}", changes.delete_mode, LEADER),
    _row("GET", "/contexts", queries.list_contexts),
    _row("DELETE", "/contexts/{context}", changes.delete_context, LEADER, status=204),
    _row("GET", "/master_available", queries.show_leader, produces=media.ANY),
    _row("GET", "/v1/metadata/id", queries.show_cluster),
    _row("GET", "/v1/metadata/version", queries.show_version_of_server),
    _row("GET", "/v1/metadata/deployment", queries.show_deployment),
)
ONCE = (changes.register,)  # a request that may turn out to change nothing, so that any registry can answer it


@dataclass(slots=True)
class Parts:
    """What the endpoints work with."""

    registry: Registry
    topic: TopicStore[Record]
    election: Election
    settings: ServiceSettings
    threads: ThreadPoolExecutor
    cluster_id: str = ""


def application(parts: Parts) -> http.Service:
    """Return the ASGI application."""
    work = partial(_work, parts)
    forwarder = Forwarder(
        parts.settings,
        parts.election,
        parts.topic,
        work,
        unreachable=partial(refuse, 50003),
        no_leader=partial(refuse, 50004),
        timeout_s=parts.settings.seconds(TIMEOUT),
    )
    host = http.Host(partial(_open_call, parts), work, partial(_write, parts, forwarder))
    return http.Service(
        http.routes(ENDPOINTS, host),
        parts.settings,
        V1,
        timed_out=lambda: refuse(50002, "The request"),
        rewrite=lambda scope: rewrite(parts.registry.store, scope),
    )


async def _open_call(parts: Parts, endpoint: Endpoint, request: Request, media_type: str, accepted: str) -> Call:
    is_led = parts.election.leads or parts.election.leader is not None
    body = await _body(request) if endpoint.takes else None
    return Call(
        request,
        media_type,
        accepted,
        body,
        registry=parts.registry,
        settings=parts.settings,
        cluster_id=parts.cluster_id,
        is_led=is_led,
    )


async def _body(request: Request) -> Any:
    data = await http.read_body(request)
    request.state.body = data
    if not data.strip():
        raise unprocessable("The request has no body.")
    try:
        return await asyncio.to_thread(http.read_json, data) if len(data) > 100_000 else http.read_json(data)
    except ValueError as error:
        raise HttpError(400, str(error)) from None


async def _work(parts: Parts, function: Callable[..., Any], *given: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(parts.threads, function, *given)


async def _write(parts: Parts, forwarder: Forwarder, endpoint: Endpoint, call: Call) -> Any:
    if endpoint.run in ONCE and not parts.election.leads:
        known = await _work(parts, _unchanged, endpoint, call)
        if known is not None:
            return known
    return await forwarder.answer(call.request, endpoint.status, lambda: _work(parts, _apply, parts, endpoint, call))


def _unchanged(endpoint: Endpoint, call: Call) -> Any:
    """Return the answer to a request that changes nothing; None if it changes something, or is refused here."""
    try:
        change: Change = endpoint.run(call)
    except HttpError:
        return None
    return None if change.records else change.answer


def _apply(parts: Parts, endpoint: Endpoint, call: Call) -> Any:
    """Decide, write, and wait until that is read back."""

    def decide() -> tuple[Sequence[Record], Any]:
        if not parts.election.leads:
            raise refuse(50004)  # it was lost while this waited
        change: Change = endpoint.run(call)
        return change.records, change.answer

    began = time.monotonic()
    try:
        return parts.topic.update(decide)
    except ClientError as error:
        if error.error is Error.REQUEST_TIMED_OUT and "config" in endpoint.path:
            raise refuse(50001, f"no answer in {time.monotonic() - began:.1f} s") from None  # as Confluent has it
        raise _refusal(parts, error) from None


def _refusal(parts: Parts, error: ClientError) -> HttpError:
    if error.error in FENCED:
        parts.election.renew()
        return refuse(50004)
    if error.error in TOO_LARGE:
        return refuse(42209, error)
    return HttpError(50002, str(error)) if error.error is Error.REQUEST_TIMED_OUT else refuse(50001, error)
