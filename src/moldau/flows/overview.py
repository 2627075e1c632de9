"""What is deployed, and what became of it: definitions and states side by side, for commands and pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from moldau.admin import groups
from moldau.client import Client
from moldau.flows.assignment import GROUP
from moldau.flows.definition import WRITES, Definition, Foreign, Wanted
from moldau.flows.figures import Figures, WorkerFigures, read, read_all
from moldau.flows.states import FlowState

LATER = "of a later release"
WAITING = "waiting for a worker"
QUERY = "query"  # the kind of persistent queries of SQL


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A member of the workers' group."""

    name: str
    host: str
    pid: int
    lanes: tuple[str, ...]
    figures: WorkerFigures | None = None  # the last that it has written


@dataclass(frozen=True, slots=True)
class Overview:
    """A flow as people see it."""

    name: str
    kind: str
    state: str
    wanted: str
    worker: str | None = None
    version: str = ""
    since_ms: int | None = None
    restarts: int = 0
    error: str | None = None
    trace: str | None = None
    lane: str | None = None
    previous: str | None = None  # the version before
    note: str | None = None
    figures: Figures | None = None  # of its worker
    writes: tuple[str, ...] = ()  # topics, as far as its definition has them


def overviews(
    known: Mapping[str, Definition | Foreign], client: Client, *, with_queries: bool = False
) -> list[Overview]:
    """Return all flows with their states; `with_queries` also those of SQL, which are not in the catalog."""
    said, told = read_all(client)
    alive = {one.name: told.get(one.name) for one in members(client)}
    found = [overview(known[name], said.get(name), alive) for name in sorted(known)]
    return found + [query(said[name], alive) for name in sorted(said.keys() - known.keys()) if with_queries]


def query(said: FlowState, alive: Mapping[str, WorkerFigures | None]) -> Overview:
    """Return a query by what its worker last said of it."""
    wanted = Wanted.PAUSED if said.state == Wanted.PAUSED else Wanted.RUNNING
    base = Overview(said.name, QUERY, WAITING, wanted, since_ms=said.at_ms, lane=said.lane)
    return _by(said, alive, base) if said.worker in alive else base


def overview(one: Definition | Foreign, said: FlowState | None, alive: Mapping[str, WorkerFigures | None]) -> Overview:
    """Decide what to show: what a worker last said counts if it is about this revision, and if the worker lives."""
    if isinstance(one, Foreign):
        return Overview(one.name, "", LATER, "")
    previous = None if one.previous is None else one.previous[0][:12]
    base = Overview(one.name, one.kind, WAITING, one.wanted, None, one.version[:12], one.changed_ms or None)
    base = replace(base, previous=previous, note=one.note, writes=tuple(one.what.get(WRITES, ())))
    if said is not None and said.is_of(one) and (said.worker in alive or one.wanted is Wanted.STOPPED):
        return _by(said, alive, base)
    return replace(base, state="stopped") if one.wanted is Wanted.STOPPED and said is None else base


def _by(said: FlowState, alive: Mapping[str, WorkerFigures | None], base: Overview) -> Overview:
    """Add what a worker says."""
    told = alive.get(said.worker)
    return replace(
        base,
        state=said.state,
        worker=said.worker,
        since_ms=said.at_ms,
        restarts=said.restarts,
        error=said.error,
        trace=said.trace,
        lane=said.lane,
        figures=None if told is None else told.flows.get(said.name),
    )


def workers(client: Client) -> list[WorkerInfo]:
    """Return the workers of a cluster, by name, with their figures."""
    told = read(client)
    return [replace(one, figures=told.get(one.name)) for one in members(client)]


def members(client: Client) -> list[WorkerInfo]:
    """Return the workers of a cluster, by name."""
    rows = groups.raw_members(client, GROUP)
    found = [_worker(metadata, assignment) for metadata, assignment in rows if metadata]
    return sorted(found, key=lambda one: one.name)


def _worker(metadata: bytes, assignment: bytes) -> WorkerInfo:
    who: dict[str, Any] = json.loads(metadata)
    given: dict[str, Any] = json.loads(assignment or b"{}")
    return WorkerInfo(str(who["worker"]), str(who["host"]), int(who["pid"]), tuple(given.get("lanes", who["lanes"])))
