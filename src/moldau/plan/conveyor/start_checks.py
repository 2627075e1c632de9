"""What the state of an application depends on: saved beside its checkpoint, and compared at each start."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.operators.context import TopologyError
from moldau.plan.conveyor.folder import Folder
from moldau.plan.conveyor.rows import Places
from moldau.plan.home import FROZEN
from moldau.plan.shards import Conveyed
from moldau.plan.stateless_pass import passing_groups
from moldau.plan.topology_change import Shape, remembered, shape, survival

if TYPE_CHECKING:
    from moldau.plan.conveyor.start import Application

log = logging.getLogger(__name__)
FORMAT_VERSION = 1
FORMAT, TOPICS, SHUFFLE, TOPOLOGY = "format", "partitions", "shuffle partitions", "topology"


def freeze(folder: Folder, application: Application, conveyed: Conveyed, places: Places, partitions: int) -> None:
    """Save what the state depends on. TopologyError if it cannot be used; a warning if the topology has changed."""
    schedule = conveyed.schedule
    now = {
        FORMAT: FORMAT_VERSION,
        TOPICS: {topic: schedule.counts[topic] for topic in sorted(schedule.reader)},
        SHUFFLE: partitions,
        TOPOLOGY: shape(schedule, passing_groups(conveyed), places.keys),
    }
    before = folder.read(FROZEN)
    if before is None:
        folder.write(FROZEN, now)
    elif before != now:
        folder.write(FROZEN, {**now, TOPOLOGY: after_a_change(application, before, now)})


def after_a_change(application: Application, before: Mapping[str, Any], now: Mapping[str, Any]) -> Shape:
    """Return the shape of the topology to save."""
    why = other_topics(before[TOPICS], now[TOPICS])
    for name in (FORMAT, SHUFFLE):
        if before.get(name) != now[name]:
            why = f"it was made with {name} {before.get(name)}, and now it is {now[name]}"
    if why is not None:
        raise unusable(application, why)
    if TOPOLOGY not in before:  # a state that is older than this comparison
        return now[TOPOLOGY]
    found = survival(before[TOPOLOGY], now[TOPOLOGY])
    if found.obstacle is not None:
        raise unusable(application, found.obstacle)
    if found.changed:
        log.warning("the topology of %s has changed: %s", application.id, found.report())
    return remembered(before[TOPOLOGY], now[TOPOLOGY])


def other_topics(before: Mapping[str, int], now: Mapping[str, int]) -> str | None:
    """Return how the topics that are read, repartition topics included, differ from those before."""
    gone, new = sorted(before.keys() - now.keys()), sorted(now.keys() - before.keys())
    if gone or new:
        changes = [f"{', '.join(gone)} is read no more"] if gone else []
        return " and ".join([*changes, *([f"{', '.join(new)} was not read before"] if new else [])])
    other = [topic for topic in now if before[topic] != now[topic]]
    return f"{other[0]} had {before[other[0]]} partitions, and now has {now[other[0]]}" if other else None


def unusable(application: Application, why: str) -> TopologyError:
    return TopologyError(
        f"the state of {application.id} in {application.home} cannot be used any more, for {why}: change that back, "
        f"or let the application begin anew, without its state, by `moldau streams reset {application.id}`"
    )
