"""The registry over HTTP: the table of endpoints, and how a change is decided, written and answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.requests import Request

from moldau import http
from moldau.client import ClientError, Error
from moldau.http import ADMIN, EDITOR, LEADER, READ, THREAD, VIEWER, Caller, Endpoint, HttpError, Types, media
from moldau.http.forwarding import Forwarder
from moldau.registry import changes, queries
from moldau.registry.calls import Call
from moldau.registry.commands import Change, Registry
from moldau.registry.errors import refuse, unprocessable
from moldau.registry.keys import handlers as keys
from moldau.registry.keys.commands import Keys
from moldau.registry.keys.topic import KeyTopic
from moldau.registry.records import Record
from moldau.registry.rewriting import rewrite
from moldau.registry.subject_rules import READ as READ_SUBJECT
from moldau.registry.subject_rules import WRITE as WRITE_SUBJECT
from moldau.registry.subject_rules import SubjectRules
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
KEYS = "/dek-registry/v1/keks"


BODILESS = (keys.undelete_kek, keys.undelete_deks, keys.try_kek)


def _row(
    method: str, path: str, run: Callable[[Any], Any], kind: str = READ, *, produces: Types = ANSWERS, **more: Any
) -> Endpoint:
    takes = "Body" if method in ("POST", "PUT") and run not in BODILESS else None
    more.setdefault("role", EDITOR if kind == LEADER else VIEWER)  # what is not decided by the leader changes nothing
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
    _row("PUT", "/config", changes.set_config, LEADER, role=ADMIN),
    _row("DELETE", "/config", changes.delete_config, LEADER, role=ADMIN),
    _row("GET", "/config/{subject}", queries.show_config),
    _row("PUT", "/config/{subject}", changes.set_config, LEADER),
    _row("DELETE", "/config/{subject}", changes.delete_config, LEADER),
    _row("GET", "/mode", queries.show_mode),
    _row("PUT", "/mode", changes.set_mode, LEADER, role=ADMIN),
    _row("DELETE", "/mode", changes.delete_mode, LEADER, role=ADMIN),
    _row("GET", "/mode/{subject}", queries.show_mode),
    _row("PUT", "/mode/{subject}", changes.set_mode, LEADER, role=ADMIN),
    _row("DELETE", "/mode/{subject}", changes.delete_mode, LEADER, role=ADMIN),
    _row("GET", "/contexts", queries.list_contexts),
    _row("DELETE", "/contexts/{context}", changes.delete_context, LEADER, status=204, role=ADMIN),
    _row("GET", "/master_available", queries.show_leader, produces=media.ANY),
    _row("GET", "/v1/metadata/id", queries.show_cluster),
    _row("GET", "/v1/metadata/version", queries.show_version_of_server),
    _row("GET", "/v1/metadata/deployment", queries.show_deployment),
)
# Keys for the encryption of fields. A key of a shared KEK asks its service: hence threads.
KEY_ENDPOINTS = (
    _row("GET", KEYS, keys.list_keks),
    _row("POST", KEYS, keys.create_kek, LEADER),
    _row("GET", KEYS + "/{name}", keys.show_kek),
    _row("PUT", KEYS + "/{name}", keys.update_kek, LEADER),
    _row("DELETE", KEYS + "/{name}", keys.delete_kek, LEADER, status=204),
    _row("POST", KEYS + "/{name}/undelete", keys.undelete_kek, LEADER, status=204),
    _row("POST", KEYS + "/{name}/test", keys.try_kek, THREAD),
    _row("GET", KEYS + "/{name}/deks", keys.list_subjects),
    _row("POST", KEYS + "/{name}/deks", keys.create_dek, LEADER),
    _row("GET", KEYS + "/{name}/deks/{subject}", keys.show_dek, THREAD),
    _row("POST", KEYS + "/{name}/deks/{subject}", keys.create_dek, LEADER),
    _row("DELETE", KEYS + "/{name}/deks/{subject}", keys.delete_deks, LEADER, status=204),
    _row("POST", KEYS + "/{name}/deks/{subject}/undelete", keys.undelete_deks, LEADER, status=204),
    _row("GET", KEYS + "/{name}/deks/{subject}/versions", keys.list_versions),
    _row("GET", KEYS + "/{name}/deks/{subject}/versions/{version}", keys.show_dek, THREAD),
    _row("DELETE", KEYS + "/{name}/deks/{subject}/versions/{version}", keys.delete_deks, LEADER, status=204),
    _row("POST", KEYS + "/{name}/deks/{subject}/versions/{version}/undelete", keys.undelete_deks, LEADER, status=204),
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
    rules: SubjectRules
    keys: Keys
    key_topic: KeyTopic
    cluster_id: str = ""
    forwarders: dict[int, Forwarder] = field(default_factory=dict)  # by the identity of a topic

    def forwarder(self, topic: TopicStore[Any]) -> Forwarder:
        """Return what answers changes of a topic, here or by the leader."""
        if id(topic) not in self.forwarders:
            self.forwarders[id(topic)] = Forwarder(
                self.settings,
                self.election,
                topic,
                partial(_work, self),
                unreachable=partial(refuse, 50003),
                no_leader=partial(refuse, 50004),
                timeout_s=self.settings.seconds(TIMEOUT),
            )
        return self.forwarders[id(topic)]


def application(parts: Parts) -> http.Service:
    """Return the ASGI application."""
    work = partial(_work, parts)
    host = http.Host(partial(_open_call, parts), work, partial(_write, parts))
    return http.Service(
        http.routes((*ENDPOINTS, *KEY_ENDPOINTS), host),
        parts.settings,
        V1,
        timed_out=lambda: refuse(50002, "The request"),
        rewrite=lambda scope: rewrite(parts.registry.store, scope),
        denied=denied,
    )


def denied(caller: Caller, role: str) -> HttpError:
    """Refuse a caller in the words of Confluent's registry."""
    return refuse(40301, "Read" if role == VIEWER else "Write", "this server")


async def _open_call(parts: Parts, endpoint: Endpoint, request: Request, media_type: str, accepted: str) -> Call:
    is_led = parts.election.leads or parts.election.leader is not None
    body = await _body(request) if endpoint.takes else None
    kind, more = Call, {}
    if endpoint.path.startswith(KEYS):
        kind, more = keys.Call, {"keys": parts.keys, "topic": await _work(parts, parts.key_topic.get)}
    call = kind(
        request,
        media_type,
        accepted,
        body,
        registry=parts.registry,
        settings=parts.settings,
        rules=parts.rules,
        cluster_id=parts.cluster_id,
        is_led=is_led,
        **more,
    )
    if "{subject}" in endpoint.path:
        call.check(READ_SUBJECT if endpoint.role == VIEWER else WRITE_SUBJECT, call.subject)
    return call


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


async def _write(parts: Parts, endpoint: Endpoint, call: Call) -> Any:
    if endpoint.run in ONCE and not parts.election.leads:
        known = await _work(parts, _unchanged, endpoint, call)
        if known is not None:
            return known
    topic = call.topic if isinstance(call, keys.Call) else parts.topic
    here = partial(_work, parts, _apply, parts, topic, endpoint, call)
    return await parts.forwarder(topic).answer(call.request, endpoint.status, here)


def _unchanged(endpoint: Endpoint, call: Call) -> Any:
    """Return the answer to a request that changes nothing; None if it changes something, or is refused here."""
    try:
        change: Change = endpoint.run(call)
    except HttpError:
        return None
    return None if change.records else change.answer


def _apply(parts: Parts, topic: TopicStore[Any], endpoint: Endpoint, call: Call) -> Any:
    """Decide, write, and wait until that is read back; an answer that needs what was stored is made then."""

    def decide() -> tuple[Sequence[Any], Any]:
        if not parts.election.leads:
            raise refuse(50004)  # it was lost while this waited
        change: Change | keys.Change = endpoint.run(call)
        return change.records, change.answer

    began = time.monotonic()
    try:
        answer = topic.update(decide)
        return answer() if callable(answer) else answer
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
