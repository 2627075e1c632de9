"""Which topics a statement uses, and whether the caller may: Kafka is asked for the caller's rights, as ksqlDB does.

The server itself reads and writes as its own user, also for queries that go on after the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moldau.admin import topics as admin
from moldau.client import Client, ClientError, Error
from moldau.client import messages as m
from moldau.sql.catalogue import Catalogue
from moldau.sql.extensions import DeleteFrom
from moldau.sql.server.errors import NO_ACCESS, ServerError
from moldau.sql.tree import (
    CreateAs,
    CreateSource,
    DropSource,
    InsertInto,
    InsertValues,
    Node,
    PrintTopic,
    Statement,
    Table,
    walk,
)

READ, WRITE, DELETE = 3, 4, 6  # Kafka's operations
WORDS = {READ: "Read", WRITE: "Write", DELETE: "Delete"}
Uses = Mapping[str, set[int]]  # operations by topic
Access = Callable[[Uses], None]
"""Raise ServerError if the caller may not use topics so. It may ask the cluster, and take its time."""


def anything(uses: Uses) -> None:
    """Allow everything: roles alone decide."""


def uses_of(statement: Statement, catalogue: Catalogue) -> Uses:
    """Return the topics of a statement, and what it does with them; sources that are unknown are refused later."""
    found: dict[str, set[int]] = {}

    def use(source: str, operation: int) -> None:
        if source in catalogue.sources:
            found.setdefault(catalogue.sources[source].topic, set()).add(operation)

    for name in _read(statement, catalogue):
        use(name, READ)
    match statement:
        case CreateAs():
            sink = dict(statement.properties).get("KAFKA_TOPIC", statement.name)
            found.setdefault(str(sink), set()).add(WRITE)
        case InsertInto() | InsertValues() | DeleteFrom():
            use(statement.name, WRITE)
        case CreateSource() if "KAFKA_TOPIC" in dict(statement.properties):
            found.setdefault(str(dict(statement.properties)["KAFKA_TOPIC"]), set()).add(READ)
        case PrintTopic():
            found.setdefault(statement.topic, set()).add(READ)
        case DropSource() if statement.delete_topic:
            use(statement.name, DELETE)
        case _:
            pass
    return found


def _read(statement: Statement, catalogue: Catalogue) -> set[str]:
    """Return the names that a statement reads, and those that the views among them read."""
    names: set[str] = set()
    left: list[Any] = [statement]
    while left:
        found = {table.name for table in tables(left.pop())} - names
        names |= found
        left += [catalogue.views[name] for name in found if name in catalogue.views]
    return names


def tables(statement: Node) -> Iterator[Table]:
    """Yield the sources of FROM and JOIN anywhere in a statement, in subqueries, too."""
    return (node for node in walk(statement) if isinstance(node, Table) and node.query is None)


def check(client: Client, uses: Uses) -> None:
    """Refuse what the user of the client may not do; ServerError as ksqlDB's."""
    if not uses:
        return
    wanted = [m.MetadataRequest_MetadataRequestTopic(name=name) for name in sorted(uses)]
    answer = client.send(m.MetadataRequest(wanted, False, False, True))
    denied: dict[int, list[str]] = {}
    for topic in answer.topics:
        for operation in sorted(uses[topic.name]):
            if not _is_allowed(client, topic, operation):
                denied.setdefault(operation, []).append(topic.name)
    for operation, names in denied.items():
        raise ServerError(
            NO_ACCESS, f"Authorization denied to {WORDS[operation]} on topic(s): [{', '.join(sorted(names))}]"
        )


def _is_allowed(client: Client, topic: Any, operation: int) -> bool:
    if topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
        return operation == READ or _may_create(client, topic.name)
    return not topic.error_code and bool(topic.topic_authorized_operations >> operation & 1)


def _may_create(client: Client, name: str) -> bool:
    try:
        admin.create(client, [admin.NewTopic(name)], validate_only=True)
    except ClientError as error:
        if error.error.name.endswith("AUTHORIZATION_FAILED"):
            return False
        raise
    return True
