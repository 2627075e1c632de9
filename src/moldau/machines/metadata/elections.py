"""Elect leaders for partitions that have none. It reads the image and returns records.

A broker of Apache Kafka that stops hands its partitions over. Those of which it has the only replica are left with no
leader, an empty ISR, and this broker as their eligible leader replica (KIP-966); they are led again when it is back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from moldau.machines.metadata.cluster import NO_LEADER, RECOVERING, Cluster, Partition, Topic
from moldau.machines.metadata.placement import change


def elect_missing_leaders(cluster: Cluster) -> Iterator[Any]:
    """Return a change for each partition whose leader is missing and can be replaced."""
    live = {broker.id for broker in cluster.live_brokers()}
    for topic in cluster.topics.values():
        for part in topic.partitions.values():
            if part.leader == NO_LEADER and (record := elect(topic, part, live)) is not None:
                yield record


def elect(topic: Topic, part: Partition, live: Iterable[int]) -> Any | None:
    """Choose from the ISR, then from the eligible leaders, then the last known leader, as Kafka's controller does.

    Records may be missing on the last known leader, since it is in neither list: it leads in recovery.
    """
    able = [replica for replica in part.replicas if replica in live]
    cleared: dict[str, Any] = {"last_known_elr": []} if part.last_known_leaders else {}
    for leader in able:
        if leader in part.isr:
            return change(topic, part, leader=leader, **cleared)
    for leader in able:
        if leader in part.eligible_leaders:
            others = [replica for replica in part.eligible_leaders if replica != leader]
            return change(topic, part, leader=leader, isr=[leader], eligible_leader_replicas=others, **cleared)
    if not part.isr and not part.eligible_leaders and len(part.last_known_leaders) == 1:
        leader = part.last_known_leaders[0]
        if leader in able:
            recovery = {} if part.recovery_state == RECOVERING else {"leader_recovery_state": RECOVERING}
            return change(topic, part, leader=leader, isr=[leader], **recovery, **cleared)
    return None
