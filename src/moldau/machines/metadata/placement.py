"""Commands on placed partitions: elect a leader, move replicas (KIP-455). They read the image and return records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from moldau.machines.metadata.cluster import NO_LEADER, NO_LEADER_CHANGE, Cluster, Partition, Topic
from moldau.machines.metadata.topics import check_replicas, default_directory
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

PREFERRED, UNCLEAN = 0, 1


def find(cluster: Cluster, name: str, index: int) -> tuple[Topic, Partition]:
    """Return a partition of the image; raises Refused."""
    topic = cluster.topics.get(name)
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
    if index not in topic.partitions:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' has no partition {index}.")
    return topic, topic.partitions[index]


def elect_leader(cluster: Cluster, name: str, index: int, kind: int) -> list[Any]:
    """Give the lead to the preferred replica or, unclean, to any that lives where there is no leader."""
    topic, part = find(cluster, name, index)
    leads = part.leader == part.replicas[0] if kind == PREFERRED else part.leader != NO_LEADER
    if leads:
        raise Refused(Error.ELECTION_NOT_NEEDED, Error.ELECTION_NOT_NEEDED.message)
    live = {broker.id for broker in cluster.live_brokers()}
    if kind == PREFERRED:
        if part.replicas[0] not in live.intersection(part.isr):
            raise Refused(Error.PREFERRED_LEADER_NOT_AVAILABLE, Error.PREFERRED_LEADER_NOT_AVAILABLE.message)
        return [change(topic, part, leader=part.replicas[0])]
    candidates = [i for i in part.isr if i in live] or [i for i in part.replicas if i in live]
    if not candidates:
        raise Refused(Error.ELIGIBLE_LEADERS_NOT_AVAILABLE, Error.ELIGIBLE_LEADERS_NOT_AVAILABLE.message)
    return [change(topic, part, leader=candidates[0], isr=[candidates[0]])]


def change(topic: Topic, part: Partition, **changed: Any) -> Any:
    """Return a record that changes what is given and leaves the rest."""
    return m.PartitionChangeRecord(partition_id=part.index, topic_id=topic.id, **changed)


def reassign(
    cluster: Cluster, name: str, index: int, target: Sequence[int], may_change_count: bool = True
) -> list[Any]:
    """Move a partition to other replicas: at once if they are in sync, else by way of adding and removing."""
    topic, part = find(cluster, name, index)
    check_replicas(cluster, {index: target}, len(target))
    count = len({*part.replicas, *part.adding} - set(part.removing))
    if not may_change_count and len(target) != count:
        problem = (
            f"{name}-{index} has {count} replicas, {len(target)} were asked for, and the request forbids a change."
        )
        raise Refused(Error.INVALID_REPLICATION_FACTOR, problem)
    if tuple(target) == part.replicas and not is_moving(part):
        return []
    if set(target) <= set(part.isr):
        return [settle(cluster, topic, part, target)]
    settled = [i for i in part.replicas if i not in part.adding]
    adding = [i for i in target if i not in settled]
    removing = [i for i in settled if i not in target]
    replicas = [*target, *removing]
    placed = place(cluster, part, replicas)
    record = change(topic, part, replicas=replicas, adding_replicas=adding, removing_replicas=removing, **placed)
    return [record]


def cancel(cluster: Cluster, name: str, index: int) -> list[Any]:
    """Go back to the replicas from before the reassignment."""
    topic, part = find(cluster, name, index)
    if not is_moving(part):
        raise Refused(Error.NO_REASSIGNMENT_IN_PROGRESS, Error.NO_REASSIGNMENT_IN_PROGRESS.message)
    before = [i for i in part.replicas if i not in part.adding]
    if not set(before) & set(part.isr):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"No earlier replica of {name}-{index} is in sync.")
    return [settle(cluster, topic, part, before)]


def settle(cluster: Cluster, topic: Topic, part: Partition, replicas: Sequence[int]) -> Any:
    """Return the record that ends a move; one of the replicas is in sync."""
    isr = [i for i in replicas if i in part.isr]
    leader = NO_LEADER_CHANGE if part.leader in isr else isr[0]
    placed = place(cluster, part, replicas)
    moved = {"replicas": list(replicas), "isr": isr, "adding_replicas": [], "removing_replicas": []}
    return change(topic, part, leader=leader, **moved, **placed)


def place(cluster: Cluster, part: Partition, replicas: Sequence[int]) -> dict[str, list[bytes]]:
    """Return the directory of each replica: where it has one already, there it stays."""
    known = dict(zip(part.replicas, part.directories, strict=False))
    return {"directories": [known.get(i) or default_directory(cluster, i) for i in replicas]}


def is_moving(part: Partition) -> bool:
    return bool(part.adding or part.removing)


def moving(topic: Topic) -> Iterator[Partition]:
    """Return the partitions of a topic whose reassignment has not ended."""
    return (part for _, part in sorted(topic.partitions.items()) if is_moving(part))
