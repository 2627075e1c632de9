"""Which state survives a change of a topology: decided, and logged, before anything runs.

State is found by the step of the query that keeps it, by its shard and by the name of its store. So the content of a
store survives as long as its sub-topology reads the same topics, is run by the same step and has the same shards, and
as long as the store writes keys and values as before. The `shape` of a topology has all of that; it is saved beside the
checkpoint at each start, and compared at the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.operators.stores.spec import StoreSpec
from moldau.plan.levels import Schedule, stores_of

Shape = dict[str, Any]  # as it stands in JSON
Form = dict[str, Any]  # of a store
Place = tuple[str, str]  # the topics that a sub-topology reads, the name of a store of it


def shape(schedule: Schedule, passed: Collection[int], keys: Sequence[int]) -> Shape:
    """Return the shape. `passed` are the sub-topologies without state; `keys` has the key of each shard."""
    steps = [groups for groups in schedule.levels if not set(groups) <= set(passed)]
    step_of = {group: number for number, groups in enumerate(steps) for group in groups if group not in passed}
    groups = [
        {
            "reads": sorted(schedule.reads[group]),
            "step": step_of[group],
            "shards": [keys[number] for number, shard in enumerate(schedule.shards) if shard.group == group],
            "stores": {spec.name: form(spec) for spec in stores_of(schedule.plan, group)},
        }
        for group in schedule.groups
        if group in step_of
    ]
    return {"steps": len(steps), "groups": groups, "left": []}


def form(spec: StoreSpec) -> Form:
    """Return the layout of a store's entries."""
    made = {"kind": spec.kind, "key": serde_name(spec.key), "value": serde_name(spec.value)}
    return {**made, **({} if spec.retention_ms is None else {"retention": spec.retention_ms}), **dict(spec.parts)}


def serde_name(serde: Any) -> str:
    return str(getattr(serde, "name", None) or type(serde).__name__)


@dataclass(frozen=True, slots=True)
class Survival:
    """The names of stores whose state survives, which begin empty, which have the state of their last use, and which
    are left behind. `obstacle` is the reason why no state can be used, if there is one.
    """

    survive: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    obstacle: str | None = None

    @property
    def changed(self) -> bool:
        return bool(self.empty or self.again or self.left)

    def report(self) -> str:
        """Return the log line for an application that may start."""
        rows = (
            (self.survive, "state that survives: {}"),
            (self.empty, "stores that are new, and empty: {}"),
            (self.again, "stores that have what they held when they were last used: {}"),
            (self.left, "stores that are gone, and whose state is not used: {} (one that was renamed is a new one)"),
        )
        return "; ".join(words.format(", ".join(names)) for names, words in rows if names)


def survival(before: Shape, now: Shape) -> Survival:
    """Return which state of one topology another one finds."""
    obstacle = moved(before, now)
    if obstacle is not None:
        return Survival(obstacle=obstacle)
    old, left, new = stores(before), stores_left(before), stores(now)
    for place, kept in new.items():
        known = old.get(place) or left.get(place)
        if known is not None and known != kept:
            return Survival(obstacle=f"the store {place[1]} {difference(known, kept)}")
    return Survival(
        survive=names(old.keys() & new.keys()),
        empty=names(new.keys() - old.keys() - left.keys()),
        again=names((new.keys() & left.keys()) - old.keys()),
        left=names(old.keys() - new.keys()),
    )


def remembered(before: Shape, now: Shape) -> Shape:
    """Return the shape to save: with the stores that were left behind, because their state still exists."""
    left = {**stores_left(before), **stores(before)}
    return {**now, "left": [[*place, kept] for place, kept in left.items() if place not in stores(now)]}


def moved(before: Shape, now: Shape) -> str | None:
    """Return why state would not be found, if it has moved."""
    if before["steps"] != now["steps"]:
        return f"it had {before['steps']} steps with state, and now has {now['steps']}"
    old, new = ({tuple(group["reads"]): group for group in shape["groups"]} for shape in (before, now))
    for reads, group in old.items():
        topics = ", ".join(reads)
        if reads not in new:
            return f"what is read from {topics} was one sub-topology with state, and is no more"
        if any(group[name] != new[reads][name] for name in ("step", "shards")):
            return f"the sub-topology that reads {topics} has moved"
    return None


def stores(shape: Shape) -> dict[Place, Form]:
    return {
        (",".join(group["reads"]), name): kept for group in shape["groups"] for name, kept in group["stores"].items()
    }


def stores_left(shape: Shape) -> dict[Place, Form]:
    return {(reads, name): kept for reads, name, kept in shape["left"]}


def names(places: Iterable[Place]) -> tuple[str, ...]:
    return tuple(sorted(name for _, name in places))


def difference(before: Form, now: Form) -> str:
    """Return the first difference in words."""
    name = next(name for name in {**before, **now} if before.get(name) != now.get(name))
    return f"was made with {name.replace('_', ' ')} {before.get(name)}, and now has {now.get(name)}"
