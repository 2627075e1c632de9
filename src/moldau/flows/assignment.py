"""Which worker has which lane: decided by the leader of the workers' group, without I/O.

Lanes stay where they are as far as that is fair; those that nobody has go to the worker with the least to do. A lane
that is to move stays with its worker in the first round, which hears that it is to let it go; only then is it given
away. So no lane ever runs twice, and nothing else stops for it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence

GROUP = "moldau-workers"
LOADS = (0.2, 0.4, 0.8)  # of lanes; above each the cost doubles
Owned = Mapping[str, Iterable[str]]  # lanes by worker
NONE: Mapping[str, str] = {}


def cost_of(load: float) -> float:
    """Return the cost of a lane that is in batches for this part of the time. Costs are powers of two, so that small
    differences, which change all the time, move nothing: a lane that moves stands still for seconds.
    """
    return float(2 ** sum(load > limit for limit in LOADS))


def share_out(costs: Mapping[str, float], owned: Owned, wished: Mapping[str, str] = NONE) -> dict[str, tuple[str, ...]]:
    """Return the lanes of each worker in this round. `costs` has all lanes; `owned` what each worker has by now;
    `wished` the workers that lanes are wanted on, which are followed as long as they are there.
    """
    owner = owners(costs, owned)
    goal = balanced(costs, owned, owner, {lane: at for lane, at in wished.items() if lane in costs and at in owned})
    return {
        worker: tuple(sorted(lane for lane, at in goal.items() if at == worker and owner.get(lane, worker) == worker))
        for worker in owned
    }


def owners(costs: Mapping[str, float], owned: Owned) -> dict[str, str]:
    """Return who has a lane by now; if two believe it, the first by name."""
    found: dict[str, str] = {}
    for worker in sorted(owned):
        for lane in owned[worker]:
            if lane in costs:
                found.setdefault(lane, worker)
    return found


def balanced(
    costs: Mapping[str, float], owned: Owned, owner: Mapping[str, str], fixed: Mapping[str, str] = NONE
) -> dict[str, str]:
    """Return where each lane is to be; those that are `fixed` are there, and the others are shared out around them."""
    if not owned:
        return {}
    goal = {**owner, **fixed}
    load = dict.fromkeys(owned, 0.0)
    for lane, at in goal.items():
        load[at] += costs[lane]

    def least() -> str:
        return min(load, key=lambda worker: (load[worker], worker))

    for lane in sorted(costs.keys() - goal.keys(), key=lambda lane: (-costs[lane], lane)):
        goal[lane] = least()
        load[goal[lane]] += costs[lane]
    lanes: dict[str, list[tuple[float, str]]] = {worker: [] for worker in owned}  # of each worker, by cost
    for lane, at in goal.items():
        if lane not in fixed:
            lanes[at].append((costs[lane], lane))
    for some in lanes.values():
        some.sort()
    while (move := best_move(lanes, load, to := least())) is not None:
        source, one = move
        lanes[source].remove(one)
        insort(lanes[to], one)
        cost, lane = one
        goal[lane] = to
        load[to] += cost
        load[source] -= cost
    return goal


def best_move(
    lanes: Mapping[str, Sequence[tuple[float, str]]], load: Mapping[str, float], to: str
) -> tuple[str, tuple[float, str]] | None:
    """Return the lane, of a worker as busy as possible, whose move to another makes the two most equal, with that
    worker; None if no move would help.
    """
    for source in sorted(load, key=lambda worker: (-load[worker], worker)):
        gap, own = load[source] - load[to], lanes[source]
        above = bisect_left(own, (gap / 2, ""))
        first = bisect_left(own, (own[above - 1][0], "")) if above else 0  # of those that cost the same, the first
        near = [own[at] for at in (first, above) if at < len(own) and 0 < own[at][0] < gap * (1 - 1e-9)]
        if near:
            return source, min(near, key=lambda one: (abs(gap / 2 - one[0]), one[1]))
    return None
