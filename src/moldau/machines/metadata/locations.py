"""Which partitions lie on a broker and which have no leader: what a controller looks up when a broker comes or goes.

The image keeps it up only once somebody has asked, so that a node that decides nothing does not pay for it. Entries are
in the order of the records that made them, which is the same on every node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.machines.metadata.cluster import Partition, Topic

NOBODY = -1

Place = tuple["Topic", "Partition"]
Places = dict[tuple[bytes, int], Place]


class Locations:
    """Partitions by the brokers that keep them, or could lead them; those without a leader are nobody's as well."""

    __slots__ = ("by_broker",)

    def __init__(self, topics: Iterable[Topic]) -> None:
        self.by_broker: dict[int, Places] = {}
        for topic in topics:
            for partition in topic.partitions.values():
                self.add(topic, partition)

    def of(self, broker: int) -> Iterator[Place]:
        """Yield the partitions of a broker; those that are changed meanwhile do no harm."""
        return iter(tuple(self.by_broker.get(broker, {}).values()))

    def add(self, topic: Topic, partition: Partition) -> None:
        key, place = (topic.id, partition.index), (topic, partition)
        for broker in members(partition):
            self.by_broker.setdefault(broker, {})[key] = place

    def remove(self, topic: Topic, partition: Partition) -> None:
        key = topic.id, partition.index
        for broker in members(partition):
            self.by_broker[broker].pop(key, None)

    def move(self, topic: Topic, partition: Partition, before: tuple[int, ...]) -> None:
        """Follow a partition to the brokers that have it now."""
        now = members(partition)
        if now == before:
            return
        key = topic.id, partition.index
        for broker in before:
            if broker not in now:
                self.by_broker[broker].pop(key, None)
        for broker in now:
            if broker not in before:
                self.by_broker.setdefault(broker, {})[key] = topic, partition


def members(partition: Partition) -> tuple[int, ...]:
    """Return under which brokers a partition is found."""
    found = partition.replicas
    if partition.eligible_leaders:
        found = tuple(dict.fromkeys((*found, *partition.eligible_leaders)))
    return (*found, NOBODY) if partition.leader == NOBODY else found
