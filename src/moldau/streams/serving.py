"""The stores of an application for queries: the changelog of each, and the address at which they are served."""

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


def identified(topology: Topology, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of an application with its id, which it must have."""
    chosen = {**topology.settings, **check(settings or {})}
    identity = chosen.get("application.id", topology.application_id)
    if not identity:
        raise TopologyError("an application needs an id: StreamsBuilder('my-app'), or the setting application.id")
    return {**chosen, "application.id": identity}


def served(topology: Topology, settings: Mapping[str, Any] | None = None) -> Served:
    """Return views of the application's stores. They are made from its changelogs, so it need not run."""
    chosen = identified(topology, settings)
    limits = Limits(whole(chosen, "views.max.bytes", MAX_BYTES), whole(chosen, "views.history", HISTORY))
    return Served(str(chosen["application.id"]), changelogs(topology.plan(chosen)), client_settings(chosen), limits)


def changelogs(plan: Plan) -> dict[str, Changelog]:
    """Return the changelogs of stores that have one: their own topic, or the one that they are filled from."""
    topics = ((store, topic_of(plan, store)) for store in plan.stores)
    return {store.name: Changelog(store, topic) for store, topic in topics if topic is not None}


def topic_of(plan: Plan, store: StoreSpec) -> str | None:
    if store.name in plan.global_stores:
        filling = next(node for node in plan.global_nodes if store.name in node.stores)
        source = plan.node(filling.parents[0])
        return source.topics[0] if isinstance(source, SourceNode) else None
    return plan.changelog(store) if store.logged or store.changelog is not None else None


@contextmanager
def serving(topology: Topology, settings: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Serve the stores over HTTP in the meantime, if `application.server` is set."""
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
    """Return HOST:PORT, if stores are to be served."""
    given = {**topology.settings, **(settings or {})}.get(SERVER)
    if not given:
        return None
    host, _, port = str(given).rpartition(":")
    if not host or not port.isdecimal() or int(port) > LAST_PORT:
        raise TopologyError(f"{SERVER} is {given!r}: it must be HOST:PORT, for example 127.0.0.1:7070")
    return str(given)
