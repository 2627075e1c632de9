"""Requests that change the cluster go to its active controller, wrapped up with the name of the client (KIP-590).

A node that is the only controller answers them itself. What the handlers of `broker/api` do there, the controller does
here; the answer is the client's as it comes. When no controller answers in time the client is told so, in the
response's own way to say it.
"""

from __future__ import annotations

from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.broker.connection import Connection
from moldau.broker.outbox import Lost
from moldau.broker.steps import follow
from moldau.broker.wait import finish
from moldau.machines.metadata import acls
from moldau.machines.metadata.cluster import BROKER, BROKER_LOGGER, Cluster
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.api import Handler
    from moldau.broker.node import Node

FORWARDED = frozenset({19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81})
ALTER_CONFIGS = 33
CONFIGS = frozenset({ALTER_CONFIGS, 44})
ALTER_SCRAM = 51
TOKENS = frozenset({38, 39, 40})
PRINCIPAL_VERSION = 0
RETRY_MS = 50.0
NOT_NOW = frozenset({Error.NOT_CONTROLLER})


class Committed(NamedTuple):
    """The image on which a change is checked that somebody else decides."""

    image: Cluster


def forwarded(key: int, local: Handler) -> Handler:
    """Return a handler that lets the controller answer; `local` does where this node is the active one.

    If it is replaced before the change is committed, the next one is asked: clients know nothing of controllers.
    """

    def handle(node: Node, connection: Connection, request: Any, version: int) -> Any:
        way = forward_configs if key in CONFIGS else forward
        if key in TOKENS:
            from moldau.broker.api.delegation_tokens import refuse_early

            if (refused := refuse_early(node, connection, request, version)) is not None:
                return refused

        def ask(response: Any = None) -> Any:
            if response is not None and not is_of_former_controller(response):
                return response
            return follow(node, way(node, connection, key, request, version))

        return ask() if node.controller is None else finish(local(node, connection, request, version), ask)

    return handle


def is_of_former_controller(response: Any) -> bool:
    """Tell whether a response, or a row of it, says that the controller was replaced while it decided."""
    if getattr(response, "error_code", Error.NONE) == Error.NOT_CONTROLLER:
        return True
    rows = (getattr(response, field.name) or () for field in response.SCHEMA.fields if field.is_array and field.struct)
    return any(is_of_former_controller(row) for some in rows for row in some)


async def forward(node: Node, connection: Connection, key: int, request: Any, version: int) -> Any:
    """Let the active controller answer, whoever that is by now."""
    assert node.membership is not None
    frame = frames.request_frame(request, version, 0, connection.client_id)
    envelope = m.EnvelopeRequest(frame[4:], principal_bytes(connection), host_bytes(connection.host))
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


async def forward_configs(node: Node, connection: Connection, key: int, request: Any, version: int) -> Any:
    """Look first at what concerns a broker: the controller takes any setting of it. Loggers are this process's own."""
    answers = settle_here(node, connection, request)
    if answers and not request.resources:
        return m.response_class(key)(responses=answers)
    answer = await forward(node, connection, key, request, version)
    if answer is not None:
        answer.responses = [*answer.responses, *answers]
    return answer


def answered_here(node: Node, connection: Connection, request: Any) -> Any:
    """Return the response to a change of this process's loggers, which every controller makes; None for any other."""
    if any(resource.resource_type != BROKER_LOGGER for resource in request.resources):
        return None
    return m.response_class(request.SCHEMA.key)(responses=settle_here(node, connection, request))


def settle_here(node: Node, connection: Connection, request: Any) -> list[Any]:
    """Answer for the resources of which the controller need not hear, and take them out of the request."""
    answers: list[Any] = []
    here = partial(is_settled, node, connection, request.SCHEMA.key, answers, request.validate_only)
    request.resources = [resource for resource in request.resources if not here(resource)]
    return answers


def is_settled(
    node: Node, connection: Connection, key: int, answers: list[Any], validate_only: bool, resource: Any
) -> bool:
    """Tell whether the controller need not hear of a resource: it is refused, or a logger that is changed by now."""
    from moldau.broker.api.alter_configs import replace_all
    from moldau.broker.api.incremental_alter_configs import alter_some
    from moldau.broker.authorization import row_class

    kind = resource.resource_type
    if kind not in (BROKER, BROKER_LOGGER):
        return False
    row = row_class(m.response_class(key), "responses")
    alter: Any = replace_all if key == ALTER_CONFIGS else alter_some
    try:
        if kind == BROKER_LOGGER and not node.may(connection, acls.ALTER_CONFIGS):
            raise Refused(Error.CLUSTER_AUTHORIZATION_FAILED, Error.CLUSTER_AUTHORIZATION_FAILED.message)
        alter(node, Committed(node.cluster), validate_only or kind == BROKER, resource)
    except Refused as refused:
        answers.append(row(refused.error, refused.message, kind, resource.resource_name))
        return True
    if kind == BROKER_LOGGER:
        answers.append(row(Error.NONE, None, kind, resource.resource_name))
    return kind == BROKER_LOGGER


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


def principal_bytes(connection: Connection) -> bytes:
    kind, _, name = connection.principal.partition(":")
    data = m.DefaultPrincipalData(kind, name, connection.by_token)
    return PRINCIPAL_VERSION.to_bytes(2) + codec.encode(data, PRINCIPAL_VERSION)


def host_bytes(host: str) -> bytes:
    return ip_address(host.lstrip("/").partition("%")[0] or "127.0.0.1").packed
