"""The REST interface of a worker: the table of endpoints, and how a change reaches the leader."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from moldau import http
from moldau.client import ClientError
from moldau.connect import calls
from moldau.connect.calls import Call, Parts, refusal
from moldau.http import ADMIN, LEADER, THREAD, VIEWER, Endpoint, HttpError
from moldau.http.forwarding import Forwarder
from moldau.http.media import ANY
from moldau.settings import ServiceSettings, SettingError
from moldau.topicstore import FENCED, StoreError

THREADS = 16
REBALANCING = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
CONNECTOR = "/connectors/{connector}"
SIGNED = re.compile(rb"POST /connectors/[^/]+/tasks|PUT /connectors/[^/]+/fence")


def _row(
    method: str, path: str, run: Callable[[Call], Any], kind: str = THREAD, *, takes: bool = False, role: str = ""
) -> Endpoint:
    return Endpoint(method, path, run, takes="Body" if takes else None, kind=kind, role=role)


async def options(call: Call) -> Response:
    return PlainTextResponse("HEAD, POST, GET, OPTIONS", headers={"allow": "HEAD,POST,GET,OPTIONS"})


ENDPOINTS = (
    _row("GET", "/", calls.root),
    _row("GET", "/health", calls.health),
    Endpoint("GET", "/metrics", calls.metrics, produces=ANY),
    _row("OPTIONS", "/connectors", options),
    _row("GET", "/connectors", calls.list_connectors),
    _row("POST", "/connectors", calls.create, LEADER, takes=True),
    _row("GET", CONNECTOR, calls.show),
    _row("DELETE", CONNECTOR, calls.delete, LEADER),
    _row("GET", f"{CONNECTOR}/config", calls.show_config),
    _row("PUT", f"{CONNECTOR}/config", calls.put_config, LEADER, takes=True),
    _row("PATCH", f"{CONNECTOR}/config", calls.patch_config, LEADER, takes=True),
    _row("GET", f"{CONNECTOR}/status", calls.show_status),
    _row("GET", f"{CONNECTOR}/topics", calls.show_topics),
    _row("PUT", f"{CONNECTOR}/topics/reset", calls.reset_topics),
    _row("POST", f"{CONNECTOR}/restart", calls.restart, LEADER),
    _row("PUT", f"{CONNECTOR}/stop", calls.stop, LEADER),
    _row("PUT", f"{CONNECTOR}/pause", calls.pause, LEADER),
    _row("PUT", f"{CONNECTOR}/resume", calls.resume, LEADER),
    _row("GET", f"{CONNECTOR}/tasks", calls.list_tasks),
    _row("POST", f"{CONNECTOR}/tasks", calls.put_tasks, LEADER, takes=True),
    _row("GET", f"{CONNECTOR}/tasks/{{task}}/status", calls.show_task),
    _row("POST", f"{CONNECTOR}/tasks/{{task}}/restart", calls.restart_task),
    _row("PUT", f"{CONNECTOR}/fence", calls.fence),
    _row("GET", f"{CONNECTOR}/dead-letters", calls.list_letters),
    _row("POST", f"{CONNECTOR}/dead-letters/retry", calls.retry_letters),
    _row("GET", f"{CONNECTOR}/offsets", calls.show_offsets),
    _row("PATCH", f"{CONNECTOR}/offsets", calls.alter_offsets, LEADER, takes=True),
    _row("DELETE", f"{CONNECTOR}/offsets", calls.reset_offsets, LEADER),
    _row("GET", "/connector-plugins", calls.list_plugins),
    _row("GET", "/connector-plugins/{plugin}/config", calls.show_plugin),
    _row("PUT", "/connector-plugins/{plugin}/config/validate", calls.validate, takes=True, role=VIEWER),
    _row("GET", "/admin/loggers", calls.list_loggers),
    _row("GET", "/admin/loggers/{logger}", calls.show_logger),
    _row("PUT", "/admin/loggers/{logger}", calls.set_logger, takes=True, role=ADMIN),
)


def application(parts: Parts, settings: ServiceSettings, threads: ThreadPoolExecutor) -> ASGIApp:
    """Return the ASGI application."""
    group = parts.worker.group
    assert group is not None
    work = partial(_work, parts, threads)
    forwarder = Forwarder(
        settings,
        group,
        parts.worker.configs,
        work,
        unreachable=lambda why: HttpError(500, f"IO Error trying to forward REST request: {why}"),
        no_leader=lambda: HttpError(409, REBALANCING),
        timeout_s=parts.worker.settings.timeout_s,
    )

    async def by_leader(endpoint: Endpoint, call: Call) -> Any:
        return await forwarder.answer(call.request, endpoint.status, lambda: work(endpoint.run, call))

    host = http.Host(partial(_open_call, parts), work, by_leader)
    service = http.Service(
        http.routes(endpoints(settings), host),
        settings,
        "application/json",
        timed_out=lambda: HttpError(500, "Request timed out"),
        is_signed=is_signed,
    )
    origins = settings["access.control.allow.origin"]
    if not origins:
        return service
    methods = settings["access.control.allow.methods"] or ["GET", "POST", "HEAD"]
    return CORSMiddleware(service, allow_origins=origins, allow_methods=methods, allow_headers=["*"])


def endpoints(settings: ServiceSettings) -> tuple[Endpoint, ...]:
    """Return the endpoints that a worker serves; SettingError if they should be where they cannot."""
    if settings["admin.listeners"]:
        raise SettingError("admin.listeners", settings["admin.listeners"], "leave it empty, or leave it out")
    is_off = settings["admin.listeners"] == ""
    return tuple(one for one in ENDPOINTS if not (is_off and one.path.startswith("/admin")))


def is_signed(request: Request) -> bool:
    """Tell whether a worker sends a request to another: its handler checks the signature, as in Connect."""
    return SIGNED.fullmatch(f"{request.method} ".encode() + request.scope["raw_path"]) is not None


async def _open_call(parts: Parts, endpoint: Endpoint, request: Request, media_type: str, accepted: str) -> Call:
    body = await _body(request) if endpoint.takes else None
    return Call(request, media_type, accepted, body, parts=parts)


async def _body(request: Request) -> Any:
    data = await http.read_body(request)
    request.state.body = data
    if not data.strip():
        raise HttpError(400, "The request has no body.")
    try:
        return http.read_json(data)
    except ValueError as error:
        raise HttpError(400, str(error)) from None


async def _work(parts: Parts, threads: ThreadPoolExecutor, function: Callable[..., Any], *given: Any) -> Any:
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, function, *given)
    except ClientError as error:
        if error.error in FENCED and parts.worker.group is not None:
            parts.worker.group.renew()
            raise HttpError(409, REBALANCING) from None
        raise refusal(error) from None
    except StoreError as error:
        raise HttpError(500, str(error)) from None
