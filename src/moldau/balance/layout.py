"""A placement of replicas that is changed step by step, and how far it is from each goal.

A `Shift` is the one elementary step: a replica moves from a broker to another, or two replicas of a partition change
places so that another one leads. To every goal it is the same thing, a weight that goes from one broker to another. So
a goal needs only loads and bounds to tell how a shift would change its *violation*, the sum of what brokers have above
and below their bounds. All numbers are integers, so that equal plans are equal everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moldau.balance.goals import GOALS, SPREAD, Goal, Limits, bounds, capacities, racks_of, shares
from moldau.balance.model import Model, Partition

FOLLOWER, LEADER, LEADERSHIP = range(3)  # what goes from one broker to another
ENDLESS = 1 << 200
TOPIC_SLACK = 1


class Shift(NamedTuple):
    """A replica, or with LEADERSHIP the lead alone, of the partition at an index goes from a broker to another."""

    part: int
    source: int
    target: int
    kind: int


def _outside(load: int, low: int, high: int) -> int:
    """Return how far a load is outside of its bounds."""
    return load - high if load > high else low - load if load < low else 0


class Row:
    """A goal with the loads of all brokers, or of one topic; `total` is its violation."""

    __slots__ = ("high", "load", "low", "total", "weights")

    def __init__(
        self, weights: Sequence[Sequence[int]], load: dict[int, int], low: dict[int, int], high: dict[int, int]
    ) -> None:
        self.weights, self.load, self.low, self.high = weights, load, low, high
        self.total = sum(self.violation(id) for id in load)

    def violation(self, broker: int) -> int:
        return _outside(self.load[broker], self.low[broker], self.high[broker])

    def change(self, shift: Shift) -> int:
        """Return by how much a shift would change the violation."""
        part, source, target, kind = shift
        weight = self.weights[kind][part]
        if not weight:
            return 0
        load, low, high = self.load[source], self.low[source], self.high[source]
        gain = _outside(load - weight, low, high) - _outside(load, low, high)
        load, low, high = self.load[target], self.low[target], self.high[target]
        return gain + _outside(load + weight, low, high) - _outside(load, low, high)

    def apply(self, shift: Shift) -> None:
        self.total += self.change(shift)
        weight = self.weights[shift.kind][shift.part]
        self.load[shift.source] -= weight
        self.load[shift.target] += weight


class Spread:
    """The spread of every topic: a row for each, of which a shift changes one."""

    __slots__ = ("rows", "topics", "total")

    def __init__(self, topics: Sequence[str], rows: dict[str, Row]) -> None:
        self.topics, self.rows = topics, rows
        self.total = sum(row.total for row in rows.values())

    def change(self, shift: Shift) -> int:
        return 0 if shift.kind == LEADERSHIP else self.rows[self.topics[shift.part]].change(shift)

    def apply(self, shift: Shift) -> None:
        if shift.kind != LEADERSHIP:
            self.total += self.change(shift)
            self.rows[self.topics[shift.part]].apply(shift)


class Layout:
    """Where replicas are in a plan so far. `rows` are the goals in their order, the room on disks before all."""

    def __init__(self, model: Model, goals: Iterable[Goal], limits: Limits) -> None:
        self.parts: tuple[Partition, ...] = model.partitions
        self.replicas = [list(one.replicas) for one in self.parts]
        self.origins = [frozenset(one.replicas) for one in self.parts]
        self.taking = {broker.id for broker in model.taking()}
        self.racks = racks_of(model)
        self.of_topic: dict[str, set[int]] = {}
        for index, part in enumerate(self.parts):
            self.of_topic.setdefault(part.topic, set()).add(index)
        self.held: dict[int, set[int]] = {broker.id: set() for broker in model.brokers}
        for index, ids in enumerate(self.replicas):
            for id in ids:
                self.held[id].add(index)
        self.moved_bytes, self.max_bytes = 0, ENDLESS if limits.max_bytes is None else limits.max_bytes
        self.model, self.limits, self.goals = model, limits, tuple(goals)
        self.rows: list[Row | Spread] = [self._room()]

    def open_goals(self) -> None:
        """Add the soft goals: shares are of what lies on brokers that take replicas, so misplaced ones move first."""
        self.rows[1:] = [self._spread() if goal is SPREAD else self._row(goal) for goal in self.goals]

    def is_legal(self, shift: Shift) -> bool:
        """Tell whether a shift is possible, and keeps the distinct racks of the partition."""
        part, ids = self.parts[shift.part], self.replicas[shift.part]
        if part.fixed or shift.target not in self.taking or shift.source not in ids:
            return False
        if shift.kind == LEADERSHIP:
            in_sync = shift.target in part.isr or shift.target not in part.replicas
            return ids[0] == shift.source and shift.target in ids and in_sync
        if shift.target in ids or self.moved_bytes + self.cost(shift) > self.max_bytes:
            return False
        if self.racks[shift.target] == self.racks.get(shift.source):
            return True
        kept = [id for id in ids if id != shift.source]
        return self.distinct([*kept, shift.target]) >= self.distinct(ids)

    def distinct(self, ids: Iterable[int]) -> int:
        """Count the racks of brokers that take replicas."""
        return len({self.racks[id] for id in ids if id in self.racks})

    def cost(self, shift: Shift) -> int:
        """Return the bytes that a shift adds to the plan: none to where the replica was before."""
        if shift.kind == LEADERSHIP:
            return 0
        origins = self.origins[shift.part]
        return self.parts[shift.part].size * ((shift.target not in origins) - (shift.source not in origins))

    def shift_of(self, part: int, source: int, target: int) -> Shift:
        return Shift(part, source, target, LEADER if self.replicas[part][0] == source else FOLLOWER)

    def apply(self, shift: Shift) -> None:
        self.moved_bytes += self.cost(shift)
        for row in self.rows:
            row.apply(shift)
        ids = self.replicas[shift.part]
        at = ids.index(shift.source)
        if shift.kind == LEADERSHIP:
            other = ids.index(shift.target)
            ids[at], ids[other] = ids[other], ids[at]
            return
        ids[at] = shift.target
        self.held[shift.source].discard(shift.part)
        self.held[shift.target].add(shift.part)

    def undo(self, shift: Shift) -> None:
        self.apply(shift._replace(source=shift.target, target=shift.source))

    def targets(self) -> dict[int, tuple[int, ...]]:
        """Return the new replicas of partitions, by index. An order of followers alone is not worth a change."""
        found: dict[int, tuple[int, ...]] = {}
        for index, ids in enumerate(self.replicas):
            before = self.parts[index].replicas
            if ids[0] != before[0] or set(ids) != self.origins[index]:
                found[index] = tuple(ids)
        return found

    def _room(self) -> Row:
        sizes = [one.size for one in self.parts]
        most = capacities(self.model, self.limits)
        weights = (sizes, sizes, [0] * len(sizes))
        ids = list(self.held)
        high = {id: most.get(id, ENDLESS) for id in ids}
        return Row(weights, self._loads(GOALS["bytes"]), dict.fromkeys(ids, -ENDLESS), high)

    def _row(self, goal: Goal) -> Row:
        leader, follower = [goal.leader(one) for one in self.parts], [goal.follower(one) for one in self.parts]
        weights = follower, leader, [a - b for a, b in zip(leader, follower, strict=True)]
        grain = getattr(self.limits, goal.grain) if goal.grain else 0
        return Row(weights, *self._bounded(self._loads(goal), goal, grain, self.limits.tolerance))

    def _spread(self) -> Spread:
        names = [one.topic for one in self.parts]
        counts: dict[str, dict[int, int]] = {name: dict.fromkeys(self.held, 0) for name in names}
        for name, ids in zip(names, self.replicas, strict=True):
            for id in ids:
                counts[name][id] += 1
        each = [1] * len(names)
        weights = each, each, [0] * len(names)
        rows = {name: Row(weights, *self._bounded(load, SPREAD, TOPIC_SLACK, 0.0)) for name, load in counts.items()}
        return Spread(names, rows)

    def _bounded(
        self, load: dict[int, int], goal: Goal, grain: int, tolerance: float
    ) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
        """Return loads with their bounds; a broker that takes nothing has none."""
        total = sum(load[id] for id in self.taking)
        low, high = dict.fromkeys(load, -ENDLESS), dict.fromkeys(load, ENDLESS)
        for id, share in shares(self.model.taking(), goal.by_capacity).items():
            low[id], high[id] = bounds(total, share, tolerance, grain)
        return load, low, high

    def _loads(self, goal: Goal) -> dict[int, int]:
        load = dict.fromkeys(self.held, 0)
        for part, ids in zip(self.parts, self.replicas, strict=True):
            load[ids[0]] += goal.leader(part)
            weight = goal.follower(part)
            for id in ids[1:]:
                load[id] += weight
        return load
