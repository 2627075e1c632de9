"""Requests that change the cluster go to its active controller, wrapped up with the name of the client (KIP-590).

A node that is the only controller answers them itself. What the handlers of `broker/api` do there, the controller does
here; the answer is the client's as it comes. When no controller answers in time the client is told so, in the
response's own way to say it.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from moldau.broker.connection import Connection
from moldau.broker.outbox import Lost
from moldau.broker.steps import follow
from moldau.machines.metadata.cluster import BROKER_LOGGER
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.broker.api import Handler
    from moldau.broker.node import Node

FORWARDED = frozenset({19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81})
CONFIGS = frozenset({33, 44})
ALTER_SCRAM = 51
PRINCIPAL_VERSION = 0
RETRY_MS = 50.0
NOT_NOW = frozenset({Error.NOT_CONTROLLER})


def forwarded(key: int, local: Handler) -> Handler:
    """Return a handler that lets the controller answer; `local` keeps what concerns this process alone."""

    def handle(node: Node, connection: Connection, request: Any, version: int) -> Any:
        if key in CONFIGS and any(one.resource_type == BROKER_LOGGER for one in request.resources):
            return local(node, connection, request, version)
        return follow(node, forward(node, connection, key, request, version))

    return handle


async def forward(node: Node, connection: Connection, key: int, request: Any, version: int) -> Any:
    """Let the active controller answer, whoever that is by now."""
    assert node.membership is not None
    frame = frames.request_frame(request, version, 0, connection.client_id)
    envelope = m.EnvelopeRequest(frame[4:], principal_bytes(connection.principal), host_bytes(connection.host))
    timeout = float(node.settings["request.timeout.ms"])
    deadline = node.clock.monotonic_ms() + timeout
    while (left := deadline - node.clock.monotonic_ms()) > 0:
        answer = await node.membership.call(envelope, left)
        if isinstance(answer, Lost) or Error(answer.error_code) in NOT_NOW:
            await node.after(RETRY_MS)
            continue
        if answer.error_code == Error.UNSUPPORTED_VERSION:  # the client is to ask again which versions there are
            connection.closing = "the controller does not know the version of the client's request"
            return None
        if answer.error_code or answer.response_data is None:
            return refusal(request, version, Error.UNKNOWN_SERVER_ERROR)
        data = memoryview(answer.response_data)
        _, position = frames.response_header(key, version, data)
        return codec.decode(m.response_class(key), version, data, position)
    return refusal(request, version, Error.REQUEST_TIMED_OUT)


def refusal(request: Any, version: int, error: Error) -> Any:
    """Return the response that refuses a request as a whole, by its error code, or by one for each of its items."""
    from moldau.broker.authorization import refuse_all

    response = m.response_class(request.SCHEMA.key)
    fields = {field.name: field for field in response.SCHEMA.fields if field.at(version)}
    if "error_code" in fields:
        values = {"error_code": error, "error_message": error.message}
        return response(**{name: value for name, value in values.items() if name in fields})
    (rows,) = [name for name, field in fields.items() if field.is_array]
    lists = [field.name for field in request.SCHEMA.fields if field.is_array and field.at(version)]
    items = [item for name in lists for item in getattr(request, name) or ()]
    if request.SCHEMA.key == ALTER_SCRAM:  # several items of a user have one row
        items = list(dict.fromkeys(item.name for item in items))
    return response(**{rows: refuse_all(response, rows, items, error, configs=())})


def principal_bytes(principal: str) -> bytes:
    kind, _, name = principal.partition(":")
    return PRINCIPAL_VERSION.to_bytes(2) + codec.encode(m.DefaultPrincipalData(kind, name, False), PRINCIPAL_VERSION)


def host_bytes(host: str) -> bytes:
    return ip_address(host.lstrip("/").partition("%")[0] or "127.0.0.1").packed
