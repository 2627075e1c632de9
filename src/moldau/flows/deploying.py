"""Deploying a streams application: what is known of it before a worker has it, and what survives an upgrade.

A definition keeps the names of internal topics, so that exactly these are deleted with it, and what the state depends
on, so that the next version can be compared with it by whoever deploys that, on any machine and without its code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.client import Client
from moldau.flows import code, packages
from moldau.flows.catalog import Catalog, now_ms
from moldau.flows.definition import WRITES, Definition, FlowError, Wanted, versions, versions_of
from moldau.flows.lanes import LANE, OWN, STEPS, WORKER, is_shared, lane_of, of_the_application
from moldau.flows.streams_kind import AT, FILE, SIZE, kept_of
from moldau.operators.context import TopologyError
from moldau.plan.topology_change import Survival, remembered, survival

if TYPE_CHECKING:
    from moldau.plan.conveyor.start import Application as Runnable
    from moldau.plan.plan import Plan
    from moldau.plan.shards import Instantiated
    from moldau.plan.task import Execution
    from moldau.streams import Topology

KIND = "streams"
STATE, READ, TOPOLOGY = "state", "read", "topology"  # in what is to run: what its state depends on
NO_SHUFFLE = 1  # which keys Spark gives to shards is the same question for both versions


class Application(NamedTuple):
    """An application to deploy: its plan, how it is executed, and its code."""

    plan: Plan
    execution: Execution
    file: str  # of the zip
    data: bytes  # the zip
    alone: bool = False  # whether its settings, or packages that it brings along, need a query of its own
    known: Instantiated | None = None  # of operators that cannot be made here

    @property
    def name(self) -> str:
        return str(self.plan.application_id)


def packed(
    topology: Topology,
    settings: Mapping[str, Any],
    file: Path,
    more: Iterable[Path] = (),
    brought: Path | None = None,
) -> Application:
    """Return the application of a file that was loaded, with the files beside it and the packages that go along."""
    from moldau.streams.application import application

    return made_of(application(topology, of_the_application(settings)), file.name, code.pack(file, more, brought))


def made_of(one: Runnable, file: str, data: bytes) -> Application:
    """Return an application as it is deployed. All flows of a shared lane have the same guarantee, interval of commits,
    producers and packages.
    """
    from moldau.streams.application import INTERVAL_MS

    alone = not one.exactly_once or one.interval_ms != INTERVAL_MS[True] or bool(one.producer) or packages.are_in(data)
    return Application(one.plan, one.execution, file, data, alone, one.known)


def internal_topics(plan: Plan) -> tuple[str, ...]:
    """Return the names of all topics that may be created for an application."""
    from moldau.plan.restoring import log_of

    changelogs = (plan.changelog(store) for store in plan.stores if store.has_changelog)
    return tuple(sorted({*changelogs, *(plan.topic(topic.name) for topic in plan.internal_topics), log_of(plan)}))


def outputs(plan: Plan) -> list[str]:
    """Return the topics that an application is known to write: in a shared lane no producer tells whose they are."""
    from moldau.plan.nodes import SinkNode

    internal = {topic.name for topic in plan.internal_topics}
    sinks = (node.topic for node in plan.nodes if isinstance(node, SinkNode))
    return sorted({topic for topic in sinks if isinstance(topic, str) and topic not in internal})


def depends_on(one: Application, there: Mapping[str, int]) -> dict[str, Any]:
    """Return what the state of an application depends on; TopologyError if a topic is missing."""
    from moldau.plan.conveyor import topics
    from moldau.plan.hashing import spread
    from moldau.plan.levels import Schedule, partition_counts
    from moldau.plan.shards import Conveyed
    from moldau.plan.stateless_pass import passing_groups
    from moldau.plan.topology_change import shape
    from moldau.plan.unrolling import mirrored, unrolled

    plan = unrolled(topics.with_matches(one.plan, there))
    schedule = Schedule(plan, partition_counts(plan, topics.outside(plan, there)), mirrored(plan))
    passed = passing_groups(Conveyed(schedule, one.execution, known=one.known))
    keys = list(spread(len(schedule.shards), NO_SHUFFLE))
    counts = {topic: schedule.counts[topic] for topic in sorted(schedule.reader)}
    steps = sum(not passed.issuperset(groups) for groups in schedule.levels)
    return {READ: counts, TOPOLOGY: shape(schedule, passed, keys), STEPS: steps}


def surviving(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> Survival | None:
    """Return what survives between two versions; None if it is not known of one of them."""
    from moldau.plan.conveyor.start_checks import other_topics

    if before is None or now is None:
        return None
    obstacle = other_topics(before[READ], now[READ])
    return Survival(obstacle=obstacle) if obstacle else survival(before[TOPOLOGY], now[TOPOLOGY])


def defined(
    one: Application, settings: Mapping[str, str], client: Client, before: Definition | None
) -> tuple[Definition, Survival | None]:
    """Return the definition of an application, and what survives of the state of the version before it."""
    from moldau.spark.admin import partition_counts_of

    settings = carried_over(settings, before)
    was = None if before is None else before.what.get(STATE)
    try:
        now = depends_on(one, partition_counts_of(client))
    except TopologyError:  # a topic is missing: the worker says so
        now = None
    kept = surviving(was, now)
    if now is not None and was is not None and kept is not None and kept.obstacle is None:
        now = {**now, TOPOLOGY: remembered(was[TOPOLOGY], now[TOPOLOGY])}
    steps, writes = steps_for(settings, before, now, one.alone), outputs(one.plan)
    what = {FILE: one.file, SIZE: len(one.data), STATE: now, STEPS: steps, WRITES: writes}
    version, topics = code.version_of(one.data), internal_topics(one.plan)
    return Definition(one.name, KIND, version, what, settings, changed_ms=now_ms(), topics=topics), kept


def carried_over(settings: Mapping[str, str], before: Definition | None) -> dict[str, str]:
    """Return the settings of a version; where it runs is what it was unless something else is said."""
    if before is None or before.wanted is Wanted.REMOVED or LANE in settings:
        return dict(settings)
    return {**{name: before.settings[name] for name in (LANE, WORKER) if name in before.settings}, **settings}


def steps_for(
    settings: Mapping[str, str], before: Definition | None, now: Mapping[str, Any] | None, alone: bool = False
) -> int | None:
    """Return by how many levels with state a flow finds its lane, None for a lane of its own; it stays in its lane."""
    steps = None if now is None or alone else now[STEPS]
    if before is None or before.wanted is Wanted.REMOVED:
        return steps
    known = before.what.get(STEPS)
    if settings.get(LANE) != before.settings.get(LANE):
        raise FlowError(f"{before.name} changes its lane by `moldau streams move`, not by an upgrade.")
    away = f"move it first, by `moldau streams move {before.name} --lane {OWN}`."
    if is_shared(lane_of(before)) and alone:
        raise FlowError(
            f"{before.name} shares a lane, in which its guarantee, its interval of commits, its producers and its "
            f"packages cannot be changed: {away}"
        )
    if is_shared(lane_of(before)) and steps not in (None, known):
        raise FlowError(
            f"{before.name} had {known} levels with state and now has {steps}, which need another lane: {away}"
        )
    return None if alone else steps if settings.get(LANE) == OWN or before.apart else known


def deploy(catalog: Catalog, client: Client, new: Definition, data: bytes) -> Definition:
    """Keep the code, write the definition, and let the code go that nobody can run any more."""
    before = catalog.flows.get(new.name)
    zips = dict(versions_of(before)) if before is not None and before.wanted is not Wanted.REMOVED else {}
    kept = kept_of(new.version, zips[new.version]) if new.version in zips else None
    if kept is None or code.get(client, kept) is None:
        kept = code.put(client, data)
    made = catalog.deploy(replace(new, what={**new.what, AT: kept.at}))
    if code.get(client, kept) is None:  # somebody has removed the last flow with this code meanwhile
        code.put(client, data)
    unused = [kept_of(*one) for one in zips.items()]
    code.forget_unused(client, unused, lambda: versions(catalog.known))
    return made


def refuse_loss(name: str, kept: Survival | None) -> None:
    """FlowError if the new version could not go on with the state."""
    if kept is not None and kept.obstacle is not None:
        raise FlowError(
            f"{name} could not go on with its state, for {kept.obstacle}: change that back, or undeploy it first, "
            "which deletes its state."
        )
