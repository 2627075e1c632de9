"""The stores of an application for those who ask: which topic has the changes of each, and where they are served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from moldau.operators.context import TopologyError
from moldau.operators.stores.spec import StoreSpec
from moldau.plan.nodes import SourceNode
from moldau.plan.plan import Plan
from moldau.views import Limits
from moldau.views.served import Changelog, Served
from moldau.views.view import HISTORY, MAX_BYTES

from .settings import client_settings, whole
from .topology import Topology
from .tuning import check

SERVER = "application.server"
LAST_PORT = 65535


def served(topology: Topology, settings: Mapping[str, Any] | None = None) -> Served:
    """Views of the application's stores. It need not run here, nor at all: its changelogs are enough."""
    chosen = {**topology.settings, **check(settings or {})}
    identity = chosen.get("application.id", topology.application_id)
    if not identity:
        raise TopologyError("an application needs an id: StreamsBuilder('my-app'), or the setting application.id")
    chosen["application.id"] = identity
    limits = Limits(whole(chosen, "views.max.bytes", MAX_BYTES), whole(chosen, "views.history", HISTORY))
    return Served(str(identity), changelogs(topology.plan(chosen)), client_settings(chosen), limits)


def changelogs(plan: Plan) -> dict[str, Changelog]:
    """Of the stores that have one: a topic of their own, or the one that they are filled from."""
    found = {store.name: topic_of(plan, store) for store in plan.stores}
    return {store.name: Changelog(store, topic) for store in plan.stores if (topic := found[store.name]) is not None}


def topic_of(plan: Plan, store: StoreSpec) -> str | None:
    if store.name in plan.global_stores:
        filling = next(node for node in plan.global_nodes if store.name in node.stores)
        source = plan.node(filling.parents[0])
        return source.topics[0] if isinstance(source, SourceNode) else None
    return plan.changelog(store) if store.logged or store.changelog is not None else None


@contextmanager
def serving(topology: Topology, settings: Mapping[str, Any] | None = None) -> Iterator[None]:
    """While this lasts, stores are served over HTTP, if `application.server` says where."""
    server = server_of(topology, settings)
    if server is None:
        yield
        return
    from moldau.views.service import serve

    with served(topology, settings) as stores:
        service = serve(stores, server)
        try:
            yield
        finally:
            service.close()


def server_of(topology: Topology, settings: Mapping[str, Any] | None = None) -> str | None:
    """HOST:PORT, if stores are to be served."""
    given = {**topology.settings, **(settings or {})}.get(SERVER)
    if not given:
        return None
    host, _, port = str(given).rpartition(":")
    if not host or not port.isdecimal() or int(port) > LAST_PORT:
        raise TopologyError(f"{SERVER} is {given!r}: it must be HOST:PORT, for example 127.0.0.1:7070")
    return str(given)
