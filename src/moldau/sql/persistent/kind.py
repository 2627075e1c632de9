"""Persistent queries as a kind of flows: what a statement has planned becomes an application.

Their definitions are no records of flows: `reader.py` makes them of the commands of SQL servers. A query that calls
functions in Python is loaded in a child process (`functions.py`); all others run nothing but our own code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from moldau.admin import topics
from moldau.client import Client
from moldau.flows.definition import Definition, FlowError
from moldau.flows.kinds import FlowReader, Place, Query
from moldau.flows.streams_kind import forget_state, state_dir_of
from moldau.topicstore.reader import LATEST, offset_of

if TYPE_CHECKING:
    from moldau.plan.conveyor.start import Application
    from moldau.sql.steps import QueryPlan

BEGINS, ENDS = "_confluent-ksql-", "_command_topic"  # of the name of a command topic
PLAN, SERVICE = "plan", "service"  # in what is to run


def services(client: Client) -> dict[str, str]:
    """Return the command topics of a cluster, by the ids of their services."""
    names = (topic.name for topic in topics.listed(client))
    return {name[len(BEGINS) : -len(ENDS)]: name for name in names if name.startswith(BEGINS) and name.endswith(ENDS)}


class QueryKind:
    """Persistent queries."""

    def prepare(self, flow: Definition, place: Place) -> Query:
        from moldau.plan.conveyor.start import Reported

        reported = Reported(self.load(flow, place))
        return Query(reported, reported.observe)

    def load(self, flow: Definition, place: Place) -> Application:
        from moldau.operators.context import TopologyError
        from moldau.sql.errors import SqlError
        from moldau.sql.lowering import build
        from moldau.streams.application import application

        plan, service = flow.what[PLAN], flow.what[SERVICE]
        settings = {**place.settings, "application.id": flow.name, "state.dir": state_dir_of(flow, place)}
        try:
            if plan.run.functions:
                from moldau.sql.persistent.functions import application_of

                made = application_of(plan, service, settings, place.registry)
            else:
                made = application(build(plan, registry_of(plan, place.registry), service_id=service).build(), settings)
        except (SqlError, TopologyError) as error:
            raise FlowError(str(error)) from None
        return replace(made, moves=True, begins=dict(plan.run.starts))

    def clear(self, flow: Definition, place: Place) -> None:
        forget_state(flow, place)

    def is_used(self, client: Client) -> bool:
        """Whether there are statements in this cluster."""
        return any(offset_of(client, topic, 0, LATEST) > 0 for topic in services(client).values())

    @contextmanager
    def reading(self, place: Place) -> Iterator[FlowReader]:
        from moldau.sql.persistent.reader import QueryReader

        reader = QueryReader(place.client)
        try:
            yield reader
        finally:
            reader.close()


KIND = QueryKind()


def registry_of(plan: QueryPlan, login: Mapping[str, Any]) -> RemoteRegistry | None:
    """Return the registry of a query: the plan has its address, the worker what it logs in with."""
    return None if plan.run.registry is None else RemoteRegistry(plan.run.registry, tuple(sorted(login.items())))


@dataclass(frozen=True, slots=True)
class RemoteRegistry:
    """A registry by its address and the settings of clients: each process has a client of its own."""

    url: str
    login: tuple[tuple[str, Any], ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_connected(self), name)


@cache
def _connected(registry: RemoteRegistry) -> Any:
    from moldau.serdes.registry import Registry

    return Registry.connect({**dict(registry.login), "url": registry.url})
