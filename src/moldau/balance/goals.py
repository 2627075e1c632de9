"""The goals, as rows: hard ones that a plan never makes worse, then soft ones that it strives for in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from moldau.balance.model import Broker, Model, Partition, bytes_out, loads

Weight = Callable[[Partition], int]


@dataclass(frozen=True, slots=True)
class Limits:
    """How exact a plan is, and how much it may move. `tolerance` is how far brokers may be from their share,
    `reserve` the part of a disk that stays free; differences below the grains are left alone."""

    tolerance: float = 0.1
    reserve: float = 0.1
    grain_bytes: int = 1_000_000
    grain_rate: int = 10_000
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """A soft goal: every broker has its share of what leaders and followers weigh. `grain` names the limit below which
    a difference does not matter; with `by_capacity` a larger disk has a larger share."""

    name: str
    title: str
    leader: Weight
    follower: Weight
    grain: str = ""
    by_capacity: bool = False


def nothing(_: Partition) -> int:
    return 0


def one(_: Partition) -> int:
    return 1


def size(partition: Partition) -> int:
    return partition.size


def bytes_in(partition: Partition) -> int:
    return partition.bytes_in


SPREAD = Goal("topics", "spread of each topic", one, one)
GOALS: dict[str, Goal] = {
    goal.name: goal
    for goal in (
        Goal("bytes", "bytes on disk", size, size, "grain_bytes", by_capacity=True),
        Goal("in", "bytes in a second", bytes_in, bytes_in, "grain_rate"),
        Goal("out", "bytes out a second", bytes_out, nothing, "grain_rate"),
        Goal("leaders", "leaders", one, nothing),
        Goal("replicas", "replicas", one, one),
        SPREAD,
    )
}


@dataclass(frozen=True, slots=True)
class HardGoal:
    """A goal that no plan makes worse: `broken` counts how far a model is from it, `problem` tells people."""

    name: str
    problem: str
    broken: Callable[[Model, Limits], int]


def misplaced(model: Model, _: Limits) -> int:
    """Count replicas on brokers that do not take any."""
    taking = {broker.id for broker in model.taking()}
    return sum(id not in taking for one in model.partitions for id in one.replicas)


def lacking_racks(model: Model, _: Limits) -> int:
    """Count the racks that partitions could have and do not have."""
    racks = racks_of(model)
    known = len(set(racks.values()))
    return sum(
        max(0, min(known, len(one.replicas)) - len({racks[id] for id in one.replicas if id in racks}))
        for one in model.partitions
    )


def overfull(model: Model, limits: Limits) -> int:
    """Count the bytes that do not fit, with the reserve. What others have written is not theirs to move, and a broker
    with hardly any is not to blame for a full disk."""
    carried, most = loads(model), capacities(model, limits)
    excess = (min(carried[id].bytes, carried[id].bytes - limit) for id, limit in most.items())
    return sum(bytes for bytes in excess if bytes > limits.grain_bytes)


HARD = (
    HardGoal(
        "replication",
        "{} replicas stay on brokers that are away or shall be empty: no other broker can take them.",
        misplaced,
    ),
    HardGoal("racks", "{} replicas share a rack although there is another one.", lacking_racks),
    HardGoal("room", "{} bytes are more than the disks shall hold.", overfull),
)


def racks_of(model: Model) -> dict[int, str]:
    """Return the racks of the brokers that take replicas; where one has no rack, each broker counts as its own."""
    taking = model.taking()
    if any(broker.rack is None for broker in taking):
        return {broker.id: str(broker.id) for broker in taking}
    return {broker.id: broker.rack or "" for broker in taking}


def capacities(model: Model, limits: Limits) -> dict[int, int]:
    """Return how many bytes of replicas each broker may hold, where that is known."""
    carried = loads(model)
    return {
        broker.id: carried[broker.id].bytes + broker.room_bytes - int(limits.reserve * (broker.total_bytes or 0))
        for broker in model.taking()
        if broker.room_bytes is not None
    }


def shares(brokers: tuple[Broker, ...], by_capacity: bool) -> dict[int, Fraction]:
    """Return which part of a load each broker shall have."""
    sized = by_capacity and all(broker.total_bytes for broker in brokers)
    weights = {broker.id: (broker.total_bytes or 1) if sized else 1 for broker in brokers}
    whole = sum(weights.values())
    return {id: Fraction(weight, whole) for id, weight in weights.items()}


def bounds(total: int, share: Fraction, tolerance: float, grain: int) -> tuple[int, int]:
    """Return how little and how much of a total a broker may have; a count next to its share always fits."""
    mean = total * share
    slack = Fraction(round(tolerance * 1000), 1000)
    low = min(mean // 1, -(-(mean * (1 - slack)) // 1))
    high = max(-(-mean // 1), (mean * (1 + slack)) // 1)
    return max(0, int(low) - grain), int(high) + grain
