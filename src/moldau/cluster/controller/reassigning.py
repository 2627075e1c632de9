"""Reassignments: move partitions to other replicas (KIP-455).

New replicas are added before old ones go: the partition has both until all new ones are in the ISR (changes.py ends it
then). If that is so from the start it is done at once. Deviates from Kafka 4.3 where a reassignment replaces another:
there a replica that is not wanted any more goes on being added, and one that is wanted again goes on being removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from moldau.cluster.controller.changes import Election, Wanted, change, rules_of
from moldau.cluster.controller.elections import find
from moldau.cluster.controller.policy import Policy
from moldau.machines.metadata.cluster import Cluster, Partition, Topic
from moldau.machines.metadata.topics import check_replicas
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


def reassign(
    image: Cluster, policy: Policy, name: str, index: int, target: Sequence[int], may_change_count: bool = True
) -> list[Any]:
    """Move a partition to other replicas: at once if they are in sync, else by way of adding and removing."""
    topic, part = find(image, name, index)
    check_replicas(image, {index: target}, len(target))
    count = len(set(part.replicas) - set(part.removing))
    if not may_change_count and len(target) != count:
        problem = (
            f"{name}-{index} has {count} replicas, {len(target)} were asked for, and the request forbids a change."
        )
        raise Refused(Error.INVALID_REPLICATION_FACTOR, problem)
    removing = sorted(set(part.replicas) - set(target))
    adding = sorted(set(target) - set(part.replicas))
    adding = adding or [replica for replica in part.adding if replica in target]
    wanted = Wanted(replicas=[*target, *removing], adding=adding, removing=removing, election=Election.ONLINE)
    record = change(rules_of(image, policy), topic, part, wanted)
    return [] if record is None else [record]


def cancel(image: Cluster, policy: Policy, name: str, index: int) -> list[Any]:
    """Go back to the replicas from before the reassignment, if one of them is in sync or the topic gives records up."""
    topic, part = find(image, name, index)
    if not is_moving(part):
        raise Refused(Error.NO_REASSIGNMENT_IN_PROGRESS, Error.NO_REASSIGNMENT_IN_PROGRESS.message)
    before = [replica for replica in part.replicas if replica not in part.adding]
    isr = [replica for replica in part.isr if replica not in part.adding]
    if not before or not (isr or policy.unclean(name)):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"No earlier replica of {name}-{index} is in sync.")
    wanted = Wanted(isr=isr or before[:1], replicas=before, adding=[], removing=[])
    record = change(rules_of(image, policy), topic, part, wanted)
    return [] if record is None else [record]


def is_moving(part: Partition) -> bool:
    return bool(part.adding or part.removing)


def moving(topic: Topic) -> Iterator[Partition]:
    """Return the partitions of a topic whose reassignment has not ended."""
    return (part for _, part in sorted(topic.partitions.items()) if is_moving(part))
