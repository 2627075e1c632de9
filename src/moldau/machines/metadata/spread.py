"""Where the replicas of new partitions go.

Racks come first: the replicas of a partition lie in different racks as long as there are racks, and evenly over them
beyond that. Brokers without a rack share one. Then brokers: leaders go round all that are alive, rack by rack, and
followers are those after the leader; how far after it changes with each round, so that when a broker fails its load is
not all taken over by the same one. A broker that is fenced gets followers where a rack has no live one left, but never
the lead. One that shuts down, or takes no new replicas in any of its directories (it is cordoned), gets none.

The same image and the same starting number give the same places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from moldau.machines.metadata.cluster import Broker, Cluster
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

Assignment = Mapping[int, Sequence[int]]


def spread(cluster: Cluster, indexes: Sequence[int], replication: int, first: int) -> Assignment:
    """Place partitions; raises Refused if there are too few brokers."""
    brokers = [broker for _, broker in sorted(cluster.brokers.items()) if is_usable(broker)]
    live = by_turns([broker for broker in brokers if not broker.fenced])
    fenced = by_turns([broker for broker in brokers if broker.fenced])
    if not live:
        raise Refused(Error.INVALID_REPLICATION_FACTOR, "No broker is alive that could take a partition.")
    if replication > len(brokers):
        problem = f"Replication factor {replication} needs as many brokers; {len(brokers)} are registered."
        raise Refused(Error.INVALID_REPLICATION_FACTOR, problem)
    sizes = Counter(broker.rack for broker in brokers)
    return {index: place(live, fenced, sizes, replication, first + index) for index in indexes}


def is_usable(broker: Broker) -> bool:
    """Whether a broker may get new replicas."""
    is_cordoned = bool(broker.log_dirs) and set(broker.log_dirs) <= set(broker.cordoned_dirs or ())
    return not broker.in_controlled_shutdown and not is_cordoned


def by_turns(brokers: Sequence[Broker]) -> list[Broker]:
    """Return brokers so that racks take turns."""
    racks: dict[str, list[Broker]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack or "", []).append(broker)
    rows = zip_longest(*(racks[name] for name in sorted(racks)))
    return [broker for row in rows for broker in row if broker is not None]


def place(
    live: Sequence[Broker], fenced: Sequence[Broker], sizes: Mapping[str | None, int], replication: int, number: int
) -> list[int]:
    """Place one partition, which is the `number`th; `sizes` says how many brokers each rack has."""
    leader = live[number % len(live)]
    chosen, used = [leader.id], Counter([leader.rack])
    while len(chosen) < replication:
        least = min(used[rack] for rack, size in sizes.items() if used[rack] < size)
        follower = next(
            one for one in followers(live, fenced, number) if used[one.rack] == least and one.id not in chosen
        )
        chosen.append(follower.id)
        used[follower.rack] += 1
    return chosen


def followers(live: Sequence[Broker], fenced: Sequence[Broker], number: int) -> Iterator[Broker]:
    """Yield all but the leader: the live ones from after it on, a place further in each round, and then the fenced."""
    turn, position = divmod(number, len(live))
    others = len(live) - 1
    for rank in range(others):
        yield live[(position + 1 + (turn + rank) % others) % len(live)]
    for rank in range(len(fenced)):
        yield fenced[(number + rank) % len(fenced)]
