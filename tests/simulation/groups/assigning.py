"""What leaders of classic groups do: read the members' subscriptions, and share out the partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from moldau.wire import codec
from moldau.wire import messages as m

Slot = tuple[str, int]
WITH_OWNED, WITH_GENERATION = 1, 2


@dataclass(slots=True)
class Owner:
    """A member with what it says that it owns, since which generation."""

    id: str
    owned: list[Slot]
    generation: int


def subscription(topics: list[str], owned: Iterable[Slot], generation: int, version: int) -> bytes:
    rows = [m.ConsumerProtocolSubscription_TopicPartition(*row) for row in by_topic(owned).items()]
    said = m.ConsumerProtocolSubscription(topics, None, rows, generation)
    return version.to_bytes(2) + codec.encode(said, version)


def read_subscription(member_id: str, metadata: bytes) -> Owner:
    said = codec.decode(m.ConsumerProtocolSubscription, int.from_bytes(metadata[:2]), metadata, 2)
    owned = [(row.topic, index) for row in said.owned_partitions for index in row.partitions]
    return Owner(member_id, owned, said.generation_id)


def assignment(slots: Iterable[Slot]) -> bytes:
    rows = [m.ConsumerProtocolAssignment_TopicPartition(*row) for row in by_topic(slots).items()]
    return bytes(2) + codec.encode(m.ConsumerProtocolAssignment(rows, None), 0)


def read_assignment(data: bytes) -> list[Slot]:
    """Nothing at all is what a member gets that its leader did not know."""
    if not data:
        return []
    said: Any = codec.decode(m.ConsumerProtocolAssignment, int.from_bytes(data[:2]), data, 2)
    return [(row.topic, index) for row in said.assigned_partitions for index in row.partitions]


def by_topic(slots: Iterable[Slot]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in slots:
        topics.setdefault(topic, []).append(index)
    return topics


def eager(members: list[Owner], slots: list[Slot], random: Random) -> dict[str, list[Slot]]:
    """Everybody has given up everything: any order will do."""
    order = random.sample(slots, len(slots))
    return {member.id: order[at :: len(members)] for at, member in enumerate(members)}


def cooperative(members: list[Owner], slots: list[Slot], random: Random) -> dict[str, list[Slot]]:
    """Who owns something keeps it, up to a fair share; what is over he must give up before another gets it."""
    owners: dict[Slot, Owner] = {}
    for member in members:
        for slot in member.owned:
            if slot not in owners or owners[slot].generation < member.generation:
                owners[slot] = member
    share = -(-len(slots) // len(members))
    result: dict[str, list[Slot]] = {member.id: [] for member in members}
    for slot in slots:
        if slot in owners and len(result[owners[slot].id]) < share:
            result[owners[slot].id].append(slot)
    for slot in random.sample(slots, len(slots)):
        if slot not in owners:
            min(result.values(), key=len).append(slot)
    return result


ASSIGNORS = {"eager": eager, "cooperative": cooperative}
