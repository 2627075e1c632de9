"""One file per API key, named as its message is, and imported when the key is first asked for.

A few keys that are alike share a file: see `TOGETHER`. Each key registers the versions it answers. What ApiVersions
says of a key that nobody has asked for yet comes from the row of its message; registering checks that both agree.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from importlib import import_module
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.broker.connection import Connection
from moldau.broker.steps import follow
from moldau.settings import Settings
from moldau.wire import schema

if TYPE_CHECKING:
    from moldau.broker.node import Node

Answer = Any  # the response, a Wait for it, or None where no response is due
Handler = Callable[["Node", Connection, Any, int], Answer]

WORD = re.compile("(?<!^)(?=[A-Z])")
# What differs from the row of the message.
SPECIAL: dict[int, Mapping[str, Any]] = {
    0: {"advertised": 0},  # KAFKA-18659, see produce.py
    22: {"high": 5},  # v6 is for two-phase commit (KIP-939), which Kafka does not offer yet
    71: {"setting": "moldau.telemetry"},
    72: {"setting": "moldau.telemetry"},
}


# What controllers answer on listeners of their own, and what only they answer.
CONTROLLERS = frozenset(
    {
        1,
        17,
        18,
        19,
        20,
        *range(29, 34),
        *range(36, 42),
        *range(43, 47),
        *range(49, 61),
        62,
        63,
        64,
        67,
        70,
        73,
        80,
        81,
        82,
    }
)
CONTROLLERS_ONLY = frozenset({52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})

# Files that answer several keys.
TOGETHER: dict[str, Collection[int]] = {
    "classic_members": range(11, 15),
    "sasl": (17, 36),
    "acls": range(29, 32),
    "delegation_tokens": range(38, 42),
    "quorum": (52, 53, 54, 59),
    "partition_states": (56, 73),
    "registrations": (62, 63, 70),
    "raft_voters": (80, 81, 82),
    "share_group_state": range(83, 88),
}


class Api(NamedTuple):
    """What the node needs to answer one key. `advertised` is the lowest version that clients are told of; with a
    `setting` the key is known only where that is true."""

    key: int
    low: int
    high: int
    advertised: int
    handle: Handler | None = None
    setting: str | None = None

    def handler(self) -> Handler:
        """Return the function that answers; its module is imported if need be."""
        if self.handle is not None:
            return self.handle
        import_module(f"{__name__}.{module_of(schema.by_key()['request', self.key])}")
        return APIS[self.key].handler()


APIS: dict[int, Api] = {}


def api(
    key: int,
    versions: tuple[int, int],
    advertised: int | None = None,
    setting: str | None = None,
    reads: str | None = None,
) -> Callable[[Handler], Handler]:
    """Register a handler for the versions of one key. One that is a coroutine may await commits: see steps.py.

    `reads` names the coordinators of whose state the answer tells: it waits until what it tells is committed.
    """
    low, high = versions

    def register(handler: Handler) -> Handler:
        handler = follow_steps(handler) if iscoroutinefunction(handler) else handler
        handler = read_committed(reads, handler) if reads else handler
        APIS[key] = Api(key, low, high, low if advertised is None else advertised, handler, setting)
        assert APIS[key]._replace(handle=None) == rows()[key], f"the row of key {key} says {rows()[key]}"
        return handler

    return register


def follow_steps(steps: Handler) -> Handler:
    """Make a handler of a coroutine."""

    @wraps(steps)
    def handle(node: Node, connection: Connection, request: Any, version: int) -> Answer:
        return follow(node, steps(node, connection, request, version))

    return handle


def read_committed(coordinators: str, handler: Handler) -> Handler:
    """Let the answers of a handler wait until what they tell is committed."""

    @wraps(handler)
    def handle(node: Node, connection: Connection, request: Any, version: int) -> Answer:
        return getattr(node, coordinators).read(lambda: handler(node, connection, request, version))

    return handle


def module_of(request: schema.Message) -> str:
    """Return the module that answers a request: OffsetFetchRequest is answered in offset_fetch.py."""
    own = WORD.sub("_", request.name.removesuffix("Request")).lower()
    return next((name for name, keys in TOGETHER.items() if request.key in keys), own)


@cache
def rows() -> dict[int, Api]:
    """Return every API that has a file, without its handler."""
    files = {module.name for module in pkgutil.iter_modules(__path__)}
    heads = (head for (kind, _), head in schema.by_key().items() if kind == "request" and module_of(head) in files)
    return {head.key: _row(head) for head in heads}


def _row(head: schema.Message) -> Api:
    return Api(head.key, *head.versions, head.versions[0])._replace(**SPECIAL.get(head.key, {}))


def load() -> dict[int, Api]:
    """Import every API, so that each has registered itself."""
    for row in rows().values():
        row.handler()
    return APIS


def known_with(settings: Settings) -> dict[int, Api]:
    """Return the APIs of a broker with these settings."""
    known = {key: row for key, row in rows().items() if key not in CONTROLLERS_ONLY}
    return {key: row for key, row in known.items() if row.setting is None or settings[row.setting]}


@cache
def known_to_controllers() -> dict[int, Api]:
    """Return the APIs of a listener of the controller."""
    return {key: row for key, row in rows().items() if key in CONTROLLERS}
