"""What the balancer knows of a cluster: brokers, partitions, and what each broker carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

Place = tuple[str, int]  # topic and partition
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker. One that does not `take` replicas is away, or shall be empty; None is a disk of unknown size."""

    id: int
    rack: str | None = None
    takes: bool = True
    alive: bool = True
    room_bytes: int | None = None
    total_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition; the first of its replicas is the preferred leader. A `fixed` one cannot be changed now, because it
    has no leader or is being moved. Rates are bytes a second, 0 if they were not measured."""

    topic: str
    number: int
    replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]
    size: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    fixed: bool = False

    @property
    def place(self) -> Place:
        return self.topic, self.number

    def moved(self, replicas: tuple[int, ...]) -> Partition:
        """Return the partition after its replicas were changed, and the first of them was elected."""
        kept = tuple(id for id in replicas if id in self.isr or id not in self.replicas)
        leader = replicas[0] if replicas[0] in kept else self.leader
        return replace(self, replicas=replicas, isr=kept, leader=leader)


@dataclass(frozen=True, slots=True)
class Load:
    """What a broker carries. Bytes out are those to consumers and to the followers of the partitions that it leads."""

    leaders: int = 0
    replicas: int = 0
    bytes: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """A cluster at a time: all brokers that hold or may hold replicas, and all partitions."""

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]

    def taking(self) -> tuple[Broker, ...]:
        return tuple(broker for broker in self.brokers if broker.takes)

    def without(self, ids: Iterable[int]) -> Model:
        """Return a model in which these brokers shall be empty."""
        leaving = set(ids)
        brokers = (replace(one, takes=one.takes and one.id not in leaving) for one in self.brokers)
        return replace(self, brokers=tuple(brokers))

    def after(self, targets: Mapping[Place, tuple[int, ...]]) -> Model:
        """Return the model after partitions were moved to these replicas."""
        partitions = tuple(one.moved(targets[one.place]) if one.place in targets else one for one in self.partitions)
        before, now = loads(self), loads(replace(self, partitions=partitions))
        brokers = tuple(
            one
            if one.room_bytes is None
            else replace(one, room_bytes=one.room_bytes + before[one.id].bytes - now[one.id].bytes)
            for one in self.brokers
        )
        return Model(brokers, partitions)


def bytes_out(partition: Partition) -> int:
    """Return what the leader of a partition sends: to consumers, and to each follower what comes in."""
    return partition.bytes_out + partition.bytes_in * (len(partition.replicas) - 1)


def loads(model: Model) -> dict[int, Load]:
    """Return what each broker carries now, by its id."""
    sums = {broker.id: [0, 0, 0, 0, 0] for broker in model.brokers}
    for one in model.partitions:
        for id in one.replicas:
            row = sums[id]
            row[1] += 1
            row[2] += one.size
            row[3] += one.bytes_in
        if one.leader in sums:
            sums[one.leader][0] += 1
            sums[one.leader][4] += bytes_out(one)
    return {id: Load(*row) for id, row in sums.items()}
