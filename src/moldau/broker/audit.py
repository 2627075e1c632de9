"""The audit log: who came in and who did not, what was denied, and what was changed, as lines with fields.

Lines go to the logger `moldau.broker.audit`: denials and changes always, permits at the level debug, as Kafka's
authorizer log. With `moldau.audit.file` they are JSON in a file of their own, which is rotated. A peer that floods it
is cut short, and a later line says how many were left out. Passwords, proofs and tokens are never in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau import logs

if TYPE_CHECKING:
    from moldau.broker.api import Handler
    from moldau.broker.connection import Connection
    from moldau.broker.node import Node
    from moldau.settings import Settings

NAME = "moldau.broker.audit"
MOST_NAMES = 100  # in one line
OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
}
RESOURCES = {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER"}

log = logs.get(NAME)
_quota = logs.Quota()


def set_up(settings: Settings) -> None:
    """Write the audit log to a file of its own where that is asked for."""
    if path := settings["moldau.audit.file"]:
        logs.to_file(NAME, path)


def logged_in(connection: Connection, how: str) -> None:
    log.debug("logged in", **_who(connection), how=how)


def failed_to_log_in(connection: Connection, how: str, reason: str) -> None:
    _write("failed to log in", connection, how=how, reason=reason)


def refused_token(connection: Connection, reason: str) -> None:
    _write("refused a token", connection, reason=reason)


def denied(connection: Connection, operation: int, resource_type: int, name: str) -> None:
    what = {"operation": OPERATIONS.get(operation, str(operation)), "resource": RESOURCES.get(resource_type, "")}
    _write("denied", connection, **what, name=name)


def recorded(key: int, handle: Handler) -> Handler:
    """Put a line into the log for each request of a key that changes who may do what, or settings; names alone."""
    summarize = CHANGES.get(key)
    if summarize is None:
        return handle

    def handler(node: Node, connection: Connection, request: Any, version: int) -> Any:
        names = summarize(request)[:MOST_NAMES]
        log.info("asked for a change", **_who(connection), request=request.SCHEMA.name, names=names)
        return handle(node, connection, request, version)

    return handler


def _acl(one: Any) -> str:
    kind, operation = RESOURCES.get(one.resource_type, ""), OPERATIONS.get(one.operation, "")
    return f"{one.principal} {operation} {kind} {one.resource_name}"


def _acl_filter(one: Any) -> str:
    kind = RESOURCES.get(one.resource_type_filter, "")
    return f"{one.principal_filter or '*'} {kind} {one.resource_name_filter or '*'}"


def _settings(request: Any) -> list[str]:
    return [
        f"{resource.resource_name or 'all brokers'} {config.name}"
        for resource in request.resources
        for config in resource.configs
    ]


def _quotas(request: Any) -> list[str]:
    return [
        " ".join([f"{part.entity_type} {part.entity_name or 'default'}" for part in entry.entity] + [op.key])
        for entry in request.entries
        for op in entry.ops
    ]


# What a request changes, by its key: names, never values.
CHANGES: dict[int, Callable[[Any], list[str]]] = {
    30: lambda request: [_acl(one) for one in request.creations],
    31: lambda request: [_acl_filter(one) for one in request.filters],
    33: _settings,
    38: lambda request: [request.owner_principal_name or ""],
    39: lambda request: [],
    40: lambda request: [],
    44: _settings,
    49: _quotas,
    51: lambda request: [one.name for one in (*request.deletions, *request.upsertions)],
}


def _write(text: str, connection: Connection, **fields: Any) -> None:
    if (kept := _quota.admit(connection.host)) is not None:
        log.warning(text, **_who(connection), **fields, **({"kept_back": kept} if kept else {}))


def _who(connection: Connection) -> dict[str, Any]:
    return {"principal": connection.principal, "host": connection.host, "listener": connection.listener}
