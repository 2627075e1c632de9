"""The queries that servers want to be run, read from the command topics of all services of a cluster.

A query that was terminated is wanted removed for as long as some worker still says something of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from moldau.client import Client, ClientError, Record
from moldau.flows.definition import WRITES, Definition, Wanted
from moldau.flows.lanes import FAMILY, LANE, OWN, STEPS
from moldau.sql.engine import Engine
from moldau.sql.errors import SqlError
from moldau.sql.lowering import application_id
from moldau.sql.persistent.kind import PLAN, SERVICE, services
from moldau.sql.server.commands import Command, replay
from moldau.sql.server.states import States, WorkerStates
from moldau.sql.steps import QueryPlan
from moldau.topicstore import Follower, Reader
from moldau.topicstore.store import Replayed

KIND = "query"
LOOK_S = 3.0  # between two looks for services
log = logging.getLogger(__name__)


class QueryReader:
    """All queries of a cluster that run on Spark, as definitions of flows."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._client = connect()
        self._states = WorkerStates(self._client)
        self._services: dict[str, Service] = {}
        self._closed = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._run, name="services", daemon=True)
        self._thread.start()

    @property
    def flows(self) -> dict[str, Definition]:
        return {name: flow for one in list(self._services.values()) for name, flow in one.flows(self._states)}

    def forget(self, flow: Definition) -> None:
        service = self._services.get(str(flow.what[SERVICE]))
        if service is not None:
            service.forget(flow.name)

    def _run(self) -> None:
        while not self._closed.wait(LOOK_S):
            try:
                self._look()
            except ClientError as error:
                log.warning("the services of the cluster cannot be listed: %s", error)

    def _look(self) -> None:
        """Follow new services, and those no more whose command topic was deleted."""
        found = services(self._client)
        for service in self._services.keys() - found.keys():
            self._services.pop(service).close()
        for service in found.keys() - self._services.keys():
            self._services[service] = Service(service, found[service], self._connect())

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
        for one in self._services.values():
            one.close()
        self._states.close()
        self._client.close()


class Service:
    """The queries of one service. Nothing is told of them before all commands that were there have been read.

    The serial number of a query is its place among all that the service has ever had; UNION ALL makes several at once.
    """

    def __init__(self, name: str, topic: str, client: Client) -> None:
        self.name = name
        self._engine = Engine()
        self._removed: dict[str, Definition] = {}
        self._wanted: dict[str, Definition] = {}
        self._serials: dict[str, int] = {}
        self._reader = Reader(client, topic, self._open, partitions=lambda: (0,))
        self._follower = Follower(self._reader, patient=True)
        self._follower.start()

    def _open(self, partition: int, start: int) -> Replayed:
        self._engine, self._removed, self._wanted, self._serials = Engine(), {}, {}, {}
        return Replayed(start, self._replay)

    def _replay(self, record: Record) -> None:
        """Take in one command. What servers refuse is refused here too."""
        try:
            replay(self._engine, record.offset, Command.of(record.key, record.value), {})
        except (SqlError, ValueError) as error:
            log.info("command %d of %s changes nothing: %s", record.offset, self._reader.topic, error)
        give_serials(self._serials, self._engine)
        wanted = dict(definitions(self._engine, self.name, self._serials))
        for flow in (flow for name, flow in self._wanted.items() if name not in wanted):
            self._removed[flow.name] = removed(flow)
        self._wanted = wanted

    def flows(self, states: States) -> list[tuple[str, Definition]]:
        with self._reader.lock:
            if not any(state.loaded for state in self._reader.states.values()):
                return []
            gone = [name for name in self._removed if states.of(name) is None]
            for name in gone:
                del self._removed[name]
            return [*self._wanted.items(), *self._removed.items()]

    def forget(self, name: str) -> None:
        with self._reader.lock:
            self._removed.pop(name, None)

    def close(self) -> None:
        self._follower.close()
        self._follower.join()


def give_serials(serials: dict[str, int], engine: Engine) -> None:
    """Give the queries of a catalogue that have none the next serial numbers."""
    for query_id in engine.queries:
        serials.setdefault(query_id, len(serials))


def definitions(engine: Engine, service: str, serials: Mapping[str, int]) -> Iterator[tuple[str, Definition]]:
    """Yield the queries of a catalogue that run on Spark, by name."""
    for query_id, plan in engine.queries.items():
        if plan.run.runtime == "spark":
            turns = engine.turns.get(query_id, 0)
            wanted = Wanted.PAUSED if query_id in engine.paused else Wanted.RUNNING
            made = definition(plan, service, serials[query_id], wanted, turns)
            yield made.name, made


def definition(plan: QueryPlan, service: str, serial: int, wanted: Wanted, turns: int) -> Definition:
    """Return a query as a flow. Whoever resumes it wants another try; CREATE OR REPLACE gives it another version."""
    what = {
        PLAN: plan,
        SERVICE: service,
        STEPS: plan.run.levels,
        FAMILY: f"{KIND}-{service}",
        WRITES: [plan.sink.topic],
    }
    return Definition(
        application_id(plan, service),
        KIND,
        plan.query_id if plan.run.version == 1 else f"{plan.query_id}@{plan.run.version}",
        what,
        {} if plan.run.shared else {LANE: OWN},
        wanted,
        serial=serial,
        revision=plan.run.version + turns,
        attempt=1 + turns,
    )


def removed(flow: Definition) -> Definition:
    return replace(flow, wanted=Wanted.REMOVED, revision=flow.revision + 1)
