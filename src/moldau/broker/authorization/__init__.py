"""Guards: what each API asks of the access control lists.

With an authorizer a guard stands between the node and the handler of every API. It refuses the request, or it takes
out what the client may not ask about and puts the refusals beside the handler's answer, as Kafka does. So handlers
know nothing of permissions, and without an authorizer nothing is checked and nothing costs. (Fetch alone looks for
itself: its sessions remember partitions that the request does not name.)

A guard is a function of a `Call`; most are rows of whole.py. A key without a guard is refused: see `guarded`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from moldau.broker import operations
from moldau.broker.api import Connection, Handler
from moldau.broker.node import Node
from moldau.broker.wait import finish
from moldau.machines.metadata.acls import CLUSTER, CLUSTER_NAME, GROUP, TOPIC, TRANSACTIONAL_ID
from moldau.wire.errors import Error

Guard = Callable[["Call"], Any]
GUARDS: dict[int, Guard] = {}
MODULES = ("whole", "topics", "configs", "groups", "transactions", "shares")

# The error of a resource that a client may not use.
DENIED = {
    TOPIC: Error.TOPIC_AUTHORIZATION_FAILED,
    GROUP: Error.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: Error.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


@dataclass(slots=True)
class Call:
    """A request on its way to its handler."""

    node: Node
    connection: Connection
    request: Any
    version: int
    handle: Handler

    def may(self, operation: int, resource_type: int = CLUSTER, name: str = CLUSTER_NAME) -> bool:
        return self.node.may(self.connection, operation, resource_type, name)

    def may_topic(self, operation: int, name: str | None, topic_id: bytes = b"") -> bool:
        """By name, or by id where there is no name. Of an id that does not exist the handler has to tell."""
        if not name and (topic := self.node.cluster.topics_by_id.get(topic_id)) is not None:
            name = topic.name
        return not name or self.may(operation, TOPIC, name)

    def allowed(self, resource_type: int, name: str = CLUSTER_NAME) -> int:
        """The bit field of the operations that the client may do on a resource."""
        known = operations.OF[resource_type]
        return operations.bits(operation for operation in known if self.may(operation, resource_type, name))

    def forward(self, change: Callable[[Any], Any] | None = None) -> Any:
        """Let the handler answer; `change` may change the answer before it leaves, now or after a wait."""
        outcome = self.handle(self.node, self.connection, self.request, self.version)
        return outcome if change is None else finish(outcome, change)

    def withhold(self, items: str, rows: str, may: Callable[[Any], bool], refuse: Callable[[Any], Any]) -> Any:
        """Forward the request without those of `items` that the client may not have, and add their refusals to
        `rows` of the answer, unless it refuses the request as a whole."""
        kept, refused = split(getattr(self.request, items), may)
        if not refused:
            return self.forward()
        setattr(self.request, items, kept)

        def add(response: Any) -> Any:
            if not getattr(response, "error_code", Error.NONE):
                setattr(response, rows, [*getattr(response, rows), *map(refuse, refused)])
            return response

        return self.forward(add)


def split(items: Iterable[Any], may: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    """Those that pass, and those that do not."""
    kept: list[Any] = []
    refused: list[Any] = []
    for item in items:
        (kept if may(item) else refused).append(item)
    return kept, refused


def guard(key: int) -> Callable[[Guard], Guard]:
    """Register the guard of an API."""

    def register(function: Guard) -> Guard:
        GUARDS[key] = function
        return function

    return register


def free(call: Call) -> Any:
    """The guard of an API that asks for nothing."""
    return call.forward()


def load() -> None:
    """Import all guards, so that each has registered itself."""
    for name in MODULES:
        import_module(f"{__name__}.{name}")


def guarded(key: int, handle: Handler) -> Handler:
    """The handler behind its guard. That every API has one is a test; one that had none would not be answered."""
    load()
    stand = GUARDS[key]
    return lambda node, connection, request, version: stand(Call(node, connection, request, version, handle))
