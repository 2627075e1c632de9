"""Guards: what each API asks of the access control lists.

With an authorizer a guard stands between the node and the handler of every API. It refuses the request, or it takes
out what the client may not ask about and puts the refusals beside the handler's answer, as Kafka does. So handlers
know nothing of permissions, and without an authorizer nothing is checked and nothing costs. (Fetch alone looks for
itself: its sessions remember partitions that the request does not name.)

A guard is a function of a `Call`; most are rows of whole.py. The rows of a refusal are made from the schema of the
answer: see `refuse`. A key without a guard is not answered: see `guarded`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from moldau.broker import operations
from moldau.broker.api import Answer, Connection, Handler
from moldau.broker.node import Node
from moldau.broker.wait import finish
from moldau.machines.metadata.acls import CLUSTER, CLUSTER_NAME, GROUP, TOPIC, TRANSACTIONAL_ID
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.schema import Field

R = TypeVar("R")
Guard = Callable[["Call[Any]"], Answer]
Denial = Error | Callable[[Any], Error]  # the error of every item that is refused, or of each
GUARDS: dict[int, Guard] = {}
MODULES = ("whole", "topics", "configs", "groups", "transactions")

# The error of a resource that a client may not use.
DENIED = {
    TOPIC: Error.TOPIC_AUTHORIZATION_FAILED,
    GROUP: Error.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: Error.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
# The fields by which a row says what it is about, and what messages call the partitions of a topic.
NAMING = re.compile(r"name|topic|key|user|index|partition(_index)?|\w+_(name|id|type)").fullmatch
PARTITIONS = ("partitions", "partition_indexes", "partition_data")


@dataclass(slots=True)
class Call(Generic[R]):
    """A request on its way to its handler."""

    node: Node
    connection: Connection
    request: R
    version: int
    handle: Handler

    def may(self, operation: int, resource_type: int = CLUSTER, name: str = CLUSTER_NAME) -> bool:
        return self.node.may(self.connection, operation, resource_type, name)

    def may_topic(self, operation: int, name: str | None, topic_id: bytes = b"") -> bool:
        """Ask by name, or by id where there is no name. An id that does not exist is left to the handler."""
        if not name and (topic := self.node.cluster.topics_by_id.get(topic_id)) is not None:
            name = topic.name
        return not name or self.may(operation, TOPIC, name)

    def allowed(self, resource_type: int, name: str = CLUSTER_NAME) -> int:
        """Return the operations that the client may do on a resource, as a bit field."""
        known, authorizer, who = operations.OF[resource_type], self.node.authorizer, self.connection
        return operations.bits(
            operation
            for operation in known
            if authorizer is None or authorizer.allows(who.principal, who.host, operation, resource_type, name)
        )

    def forward(self, change: Callable[[Any], Any] | None = None) -> Answer:
        """Let the handler answer; `change` may change the answer before it leaves, now or after a wait."""
        outcome = self.handle(self.node, self.connection, self.request, self.version)
        return outcome if change is None else finish(outcome, change)

    def withhold(
        self, items: str, rows: str, may: Callable[[Any], bool], error: Denial = DENIED[TOPIC], **values: Any
    ) -> Answer:
        """Forward the request without those of `items` that the client may not have, and add their refusals to
        `rows` of the answer, unless it refuses the request as a whole. `values` are passed on to `refuse`."""
        kept, refused = split(getattr(self.request, items), may)
        if not refused:
            return self.forward()
        setattr(self.request, items, kept)

        def add(response: Any) -> Any:
            if not getattr(response, "error_code", Error.NONE):
                denied = refuse_all(type(response), rows, refused, error, **values)
                setattr(response, rows, [*getattr(response, rows), *denied])
            return response

        return self.forward(add)


def split(items: Iterable[Any], may: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    """Return the items that pass, and those that do not."""
    kept: list[Any] = []
    refused: list[Any] = []
    for item in items:
        (kept if may(item) else refused).append(item)
    return kept, refused


def row_class(owner: type[Any], rows: str) -> type[Any]:
    """Return the class of the rows in a field of a response, or of one of its rows."""
    return getattr(m, next(field.struct.name for field in owner.SCHEMA.fields if field.name == rows))


def refuse_all(response: type[Any], rows: str, items: Iterable[Any], error: Denial, **values: Any) -> list[Any]:
    """Make the rows of a response for items that are refused."""
    row = row_class(response, rows)
    return [refuse(row, item, error if isinstance(error, Error) else error(item), **values) for item in items]


def refuse(row: type[Any], item: Any, error: Error, **values: Any) -> Any:
    """Make the row of an item that is refused: what names it, and the error; so with its partitions, if it has any.

    `values` are further fields of these rows, or other values for the error's message.
    """
    fields: dict[str, Field] = {field.name: field for field in row.SCHEMA.fields}
    if isinstance(item, int | str):  # a name, or the index of a partition
        values = {next(filter(NAMING, fields)): item, **values}
    known = {"error_code": error, "error_message": error.message, **values}
    given: dict[str, Any] = {}
    for name, field in fields.items():
        if name in known:
            given[name] = known[name]
        elif field.is_array and field.struct is not None:
            parts = (getattr(item, source) for source in (name, *PARTITIONS) if hasattr(item, source))
            given[name] = refuse_all(row, name, next(parts, ()), error, **values)
        elif NAMING(name) and hasattr(item, name) and not isinstance(item, str):
            given[name] = getattr(item, name)
    return row(**given)


def load() -> None:
    """Import all guards, so that each has registered itself."""
    for name in MODULES:
        import_module(f"{__name__}.{name}")


def guarded(key: int, handle: Handler) -> Handler:
    """Put a handler behind its guard. A test makes sure that every API has one; without one it is not answered."""
    load()
    stand = GUARDS[key]
    return lambda node, connection, request, version: stand(Call(node, connection, request, version, handle))
