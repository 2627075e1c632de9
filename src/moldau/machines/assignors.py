"""Server-side assignors of the consumer protocol (KIP-848): who of a group's members should read which partition.

An assignor is a function of the subscriptions and of the assignment so far; it knows nothing of epochs. `uniform`
gives everybody as many partitions as the others and moves as few as that takes. `range` gives each member a run of
neighbouring partitions of every topic, the same run where topics have the same number, so that joins find both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace

Partitions = Mapping[bytes, frozenset[int]]  # by topic id
Slot = tuple[bytes, int]

EVEN_ROUNDS = 16  # pools that overlap may pass partitions on; this ends it where they would do so for ever


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as an assignor sees it: what it subscribes to, and what it was to have until now."""

    id: str
    topics: frozenset[bytes]
    has: Partitions
    instance_id: str | None = None


@dataclass(slots=True)
class Pool:
    """Topics with the same subscribers: within it any partition may go to any member."""

    members: list[int]
    topics: list[bytes] = field(default_factory=list[bytes])
    held: dict[int, list[Slot]] = field(default_factory=dict[int, list[Slot]])


Counts = Mapping[bytes, int]
Assignment = dict[str, Partitions]


def uniform(subscribers: Sequence[Subscriber], counts: Counts) -> Assignment:
    """Even shares. Work grows with partitions and members, whatever the number of topics."""
    pools = pools_of(subscribers, counts)
    load = [0] * len(subscribers)
    free = keep(subscribers, pools, counts, load)
    for pool in pools:
        fill(pool, free, load)
    for _ in range(EVEN_ROUNDS):
        if not sum([even_out(pool, load) for pool in pools]):
            break
    return collect(subscribers, pools)


def pools_of(subscribers: Sequence[Subscriber], counts: Counts) -> list[Pool]:
    """Topics by who subscribes to them, those with the fewest choices first."""
    alike: dict[frozenset[bytes], list[int]] = {}
    for number, subscriber in enumerate(subscribers):
        alike.setdefault(subscriber.topics, []).append(number)
    wanted: dict[bytes, list[int]] = {}
    for number, topics in enumerate(alike):
        for topic in topics:
            wanted.setdefault(topic, []).append(number)
    crowds = list(alike.values())
    pools: dict[tuple[int, ...], Pool] = {}
    for topic in sorted(wanted):
        key = tuple(wanted[topic])
        if key not in pools:
            pools[key] = Pool(sorted(member for crowd in key for member in crowds[crowd]))
        if topic in counts:
            pools[key].topics.append(topic)
    return sorted(pools.values(), key=lambda pool: len(pool.members))


def keep(
    subscribers: Sequence[Subscriber], pools: Iterable[Pool], counts: Counts, load: list[int]
) -> dict[bytes, set[int]]:
    """Leave with each member what it may keep; returns the partitions of each topic that nobody has."""
    pool_of = {topic: pool for pool in pools for topic in pool.topics}
    free = {topic: set(range(counts[topic])) for topic in pool_of}
    for number, subscriber in enumerate(subscribers):
        for topic, partitions in subscriber.has.items():
            if topic in pool_of and topic in subscriber.topics:
                kept = sorted(partitions & free[topic])
                free[topic].difference_update(kept)
                pool_of[topic].held.setdefault(number, []).extend((topic, index) for index in kept)
                load[number] += len(kept)
    return free


def fill(pool: Pool, free: Mapping[bytes, set[int]], load: list[int]) -> None:
    """Give each free partition to whoever has least."""
    least = [(load[number], number) for number in pool.members]
    heapify(least)
    for topic in pool.topics:
        for index in sorted(free[topic]):
            size, number = least[0]
            pool.held.setdefault(number, []).append((topic, index))
            load[number] = size + 1
            heapreplace(least, (size + 1, number))


def even_out(pool: Pool, load: list[int]) -> int:
    """Move partitions from who has most to who has least until they differ by one; returns how many moved."""
    sizes = [load[number] for number in pool.members]
    if max(sizes) - min(sizes) < 2:
        return 0
    least = [(load[number], number) for number in pool.members]
    most = [(-load[number], number) for number in pool.members if pool.held.get(number)]
    heapify(least)
    heapify(most)
    moves = 0
    while most:
        size, giver = heappop(most)
        if -size != load[giver] or not pool.held[giver]:
            continue
        while least[0][0] != load[least[0][1]]:
            heappop(least)
        low, taker = least[0]
        if load[giver] - low < 2:
            break
        pool.held.setdefault(taker, []).append(pool.held[giver].pop())
        load[giver], load[taker], moves = load[giver] - 1, low + 1, moves + 1
        heapreplace(least, (load[taker], taker))
        heappush(least, (load[giver], giver))
        heappush(most, (-load[giver], giver))
        heappush(most, (-load[taker], taker))
    return moves


def collect(subscribers: Sequence[Subscriber], pools: Iterable[Pool]) -> Assignment:
    """What each member holds in all pools, by topic."""
    held: list[dict[bytes, list[int]]] = [{} for _ in subscribers]
    for pool in pools:
        for number, slots in pool.held.items():
            mine = held[number]
            for topic, index in slots:
                mine.setdefault(topic, []).append(index)
    return {
        subscriber.id: {topic: frozenset(indexes) for topic, indexes in mine.items()}
        for subscriber, mine in zip(subscribers, held, strict=True)
    }


def ranges(subscribers: Sequence[Subscriber], counts: Counts) -> Assignment:
    """Runs of neighbours. Static members come first, in the order of their instance ids, so a restart moves nothing."""
    result: dict[str, dict[bytes, frozenset[int]]] = {subscriber.id: {} for subscriber in subscribers}
    takers: dict[bytes, list[str]] = {}
    for subscriber in sorted(subscribers, key=range_order):
        for topic in subscriber.topics:
            takers.setdefault(topic, []).append(subscriber.id)
    for topic, ids in takers.items():
        share, extra = divmod(counts.get(topic, 0), len(ids))
        start = 0
        for rank, member_id in enumerate(ids):
            end = start + share + (rank < extra)
            if end > start:
                result[member_id][topic] = frozenset(range(start, end))
            start = end
    return {**result}


def range_order(subscriber: Subscriber) -> tuple[bool, str]:
    return subscriber.instance_id is None, subscriber.instance_id or subscriber.id


ASSIGNORS: dict[str, Callable[[Sequence[Subscriber], Counts], Assignment]] = {"uniform": uniform, "range": ranges}
