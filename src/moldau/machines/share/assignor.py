"""The assignor `simple` of share groups (KIP-932): who of a group's members should fetch from which partition.

Every partition has as many members as every other, and every member as many partitions as the others, give or take
one: with fewer members than partitions each partition has one member, with more a partition has several. As few
assignments move as that takes. Where members subscribe to different topics this holds for each topic by itself.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from moldau.machines.consumer.assignors import Assignment, Partitions, Slot, Subscriber

Held = list[set[Slot]]  # by the number of the member


def simple(subscribers: Sequence[Subscriber], assignable: Partitions) -> Assignment:
    """Return the target of each member, from its target until now."""
    topics = sorted({topic for subscriber in subscribers for topic in subscriber.topics if topic in assignable})
    held: Held = [set() for _ in subscribers]
    if len({subscriber.topics for subscriber in subscribers}) == 1:
        share_out(subscribers, range(len(subscribers)), slots(assignable, topics), held)
    else:
        for topic in topics:
            takers = [number for number, subscriber in enumerate(subscribers) if topic in subscriber.topics]
            share_out(subscribers, takers, slots(assignable, [topic]), held)
    return {subscriber.id: by_topic(mine) for subscriber, mine in zip(subscribers, held, strict=True)}


def slots(partitions: Partitions, topics: Iterable[bytes]) -> list[Slot]:
    return [(topic, index) for topic in topics for index in sorted(partitions[topic])]


def share_out(subscribers: Sequence[Subscriber], takers: Sequence[int], wanted: Sequence[Slot], held: Held) -> None:
    """Give partitions to members that subscribe to all of them."""
    if not wanted:
        return
    sharing = -(-len(takers) // len(wanted))
    quotas = dict(zip(takers, quotas_of(sharing * len(wanted), len(takers)), strict=True))
    shares = dict.fromkeys(wanted, 0)
    mine: dict[int, set[Slot]] = {}
    for number in takers:
        has = subscribers[number].has
        mine[number] = {slot for slot in wanted if slot[1] in has.get(slot[0], ())}
        for slot in mine[number]:
            shares[slot] += 1
    for number in sorted(takers, key=lambda taker: quotas[taker] - len(mine[taker])):
        release(mine[number], quotas[number], shares, sharing)
    fill(mine, quotas, shares, sharing)
    for number, taken in mine.items():
        held[number].update(taken)


def quotas_of(total: int, members: int) -> list[int]:
    """Return how many partitions each member gets, spread evenly."""
    marks = [-(-total * number // members) for number in range(members + 1)]
    return [high - low for low, high in itertools.pairwise(marks)]


def release(mine: set[Slot], quota: int, shares: dict[Slot, int], sharing: int) -> None:
    """Take away what is shared by too many, and then what is beyond the member's quota, the most shared first."""
    for slot in sorted(mine, key=lambda one: (-shares[one], one)):
        if shares[slot] > sharing or len(mine) > quota:
            mine.remove(slot)
            shares[slot] -= 1


def fill(mine: Mapping[int, set[Slot]], quotas: Mapping[int, int], shares: dict[Slot, int], sharing: int) -> None:
    """Give to those who have too little, in turn, what too few share; first what nobody has.

    The quotas add up to all that is to be given, so somebody always has room for a partition that nobody has. A member
    cannot have one twice: then the partition is left with fewer members than others.
    """
    short = deque(number for number, taken in mine.items() if len(taken) < quotas[number])
    for slot in sorted(shares, key=shares.__getitem__):
        for _ in range(len(short)):
            if shares[slot] >= sharing:
                break
            number = short.popleft()
            if slot not in mine[number]:
                mine[number].add(slot)
                shares[slot] += 1
            if len(mine[number]) < quotas[number]:
                short.append(number)


def by_topic(held: Collection[Slot]) -> Partitions:
    topics: dict[bytes, set[int]] = {}
    for topic, index in sorted(held):
        topics.setdefault(topic, set()).add(index)
    return {topic: frozenset(indexes) for topic, indexes in topics.items()}
