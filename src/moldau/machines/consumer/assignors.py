"""Server-side assignors of the consumer protocol (KIP-848): who of a group's members should read which partition.

An assignor is a function of the subscriptions and of the assignment so far; it knows nothing of epochs. `uniform`
gives everybody as many partitions as the others and moves as few as that takes. `range` gives each member a run of
neighbouring partitions of every topic, the same run where topics have the same number, so that joins find both sides.
Where replicas and members stand counts for neither: Kafka has no rack-aware assignor on its side any more (4.x).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heapify, heappop, heappush, heapreplace
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

Partitions = Mapping[bytes, frozenset[int]]  # by topic id
NO_TARGET: Partitions = {}
Held = dict[bytes, frozenset[int]]
Slot = tuple[bytes, int]
NOTHING = frozenset[int]()

COUNTS_KEPT = 16
EVEN_ROUNDS = 16  # pools that overlap may pass partitions on; this ends it where they would do so for ever


class Subscriber(NamedTuple):
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
    held: dict[int, Held] = field(default_factory=dict[int, Held])

    def size(self, number: int) -> int:
        return sum(map(len, self.held[number].values())) if number in self.held else 0

    def give(self, number: int, slots: Iterable[Slot]) -> None:
        """Give partitions to a member."""
        mine = self.held.setdefault(number, {})
        for topic, group in groupby(slots, itemgetter(0)):
            mine[topic] = mine.get(topic, NOTHING).union(index for _, index in group)

    def take(self, number: int, count: int) -> Iterator[Slot]:
        """Take partitions from a member: the last ones of the last topic."""
        mine = self.held[number]
        for topic in [topic for topic in reversed(mine) if mine[topic]]:
            going = sorted(mine[topic])[-count:] if count > 1 else [max(mine[topic])]
            mine[topic] = mine[topic].difference(going)
            count -= len(going)
            yield from ((topic, index) for index in going)
            if not count:
                break


Counts = Mapping[bytes, int]
Claims = list[tuple[int, frozenset[int]]]  # members by their numbers, and what they were to have of a topic
Assignment = dict[str, Partitions]


def uniform(subscribers: Sequence[Subscriber], counts: Counts) -> Assignment:
    """Even shares. Work grows with partitions and members, whatever the number of topics."""
    pools = pools_of(subscribers, counts)
    load = [0] * len(subscribers)
    free = keep(subscribers, pools, counts, load)
    for pool in pools:
        fill(pool, free, load)
    for _ in range(EVEN_ROUNDS):
        if not sum([even_out(pool, load, len(pools) == 1) for pool in pools]):
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
    claims: dict[bytes, Claims] = {topic: [] for topic in pool_of}
    for number, subscriber in enumerate(subscribers):
        for topic, partitions in subscriber.has.items():
            if topic in pool_of and topic in subscriber.topics:
                claims[topic].append((number, partitions))
    free: dict[bytes, set[int]] = {}
    for topic, pool in pool_of.items():
        kept, free[topic] = settle(claims[topic], counts[topic])
        for number, partitions in kept:
            pool.held.setdefault(number, {})[topic] = partitions
            load[number] += len(partitions)
    return free


def settle(claims: Claims, count: int) -> tuple[Claims, set[int]]:
    """Return what of its claims each member keeps, and what nobody claims. Mostly nobody claims what another has."""
    claimed = NOTHING.union(*[mine for _, mine in claims])
    alone = len(claimed) == sum([len(mine) for _, mine in claims])
    if alone and claimed == all_of(count):
        return claims, set()
    free = set(range(count))
    if alone and claimed <= free:
        return claims, free - claimed
    kept: Claims = []
    for number, partitions in claims:
        mine = partitions & free
        free -= mine
        kept.append((number, mine))
    return kept, free


@lru_cache(COUNTS_KEPT)
def all_of(count: int) -> frozenset[int]:
    return frozenset(range(count))


def fill(pool: Pool, free: Mapping[bytes, set[int]], load: list[int]) -> None:
    """Give each free partition to whoever has least."""
    slots = [(topic, index) for topic in pool.topics for index in sorted(free[topic])]
    if not slots:
        return
    least = [(load[number], number) for number in pool.members]
    heapify(least)
    given: dict[int, list[Slot]] = {}
    for slot in slots:
        size, number = least[0]
        given.setdefault(number, []).append(slot)
        load[number] = size + 1
        heapreplace(least, (size + 1, number))
    for number, mine in given.items():
        pool.give(number, mine)


def even_out(pool: Pool, load: list[int], alone: bool) -> int:
    """Move partitions from who has most to who has least until they differ by one; returns how many moved.

    Without another pool (`alone`) everybody's share is known beforehand."""
    sizes = [load[number] for number in pool.members]
    if max(sizes) - min(sizes) < 2:
        return 0
    givers, takers = level(pool, load) if alone else shift(pool, load)
    slots = iter([slot for number, count in givers.items() for slot in pool.take(number, count)])
    for number, count in takers.items():
        pool.give(number, islice(slots, count))
    return sum(takers.values())


def level(pool: Pool, load: list[int]) -> tuple[dict[int, int], dict[int, int]]:
    """As `shift`, where the members hold nothing elsewhere: who has most keeps the larger share."""
    order = sorted(pool.members, key=load.__getitem__, reverse=True)
    share, extra = divmod(sum([load[number] for number in order]), len(order))
    givers: dict[int, int] = {}
    takers: dict[int, int] = {}
    for rank, number in enumerate(order):
        surplus = load[number] - share - (rank < extra)
        if surplus:
            (givers if surplus > 0 else takers)[number] = abs(surplus)
            load[number] -= surplus
    return givers, takers


def shift(pool: Pool, load: list[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Return who must give and who takes how many; the load is then as if it had happened."""
    least = [(load[number], number) for number in pool.members]
    most = [(-load[number], number) for number in pool.members]
    left: dict[int, int] = {}
    givers: dict[int, int] = {}
    takers: dict[int, int] = {}
    heapify(least)
    heapify(most)
    while most:
        size, giver = heappop(most)
        if giver not in left:
            left[giver] = pool.size(giver)
        if -size != load[giver] or not left[giver]:
            continue
        while least[0][0] != load[least[0][1]]:
            heappop(least)
        low, taker = least[0]
        if load[giver] - low < 2:
            break
        givers[giver], takers[taker] = givers.get(giver, 0) + 1, takers.get(taker, 0) + 1
        left[giver] -= 1
        load[giver], load[taker] = load[giver] - 1, low + 1
        heapreplace(least, (load[taker], taker))
        heappush(least, (load[giver], giver))
        heappush(most, (-load[giver], giver))
        heappush(most, (-load[taker], taker))
    return givers, takers


def collect(subscribers: Sequence[Subscriber], pools: Iterable[Pool]) -> Assignment:
    """Return what each member holds in all pools, by topic."""
    result: list[Held] = [{} for _ in subscribers]
    for pool in pools:
        for number, mine in pool.held.items():
            for topic, indexes in mine.items():
                if indexes:
                    result[number][topic] = indexes
    return {subscriber.id: mine for subscriber, mine in zip(subscribers, result, strict=True)}


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
