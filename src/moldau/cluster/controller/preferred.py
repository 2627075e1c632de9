"""What a controller does about leaders by itself, from time to time.

Leadership goes back to the preferred replicas, the first of each partition (`auto.leader.rebalance.enable`): after a
restart the load would stay where it went. And partitions without a leader get one, if by now somebody may lead, or
their topic allows an unclean election. Both do some at a time, so that other requests come in between; there may be
more when as many were done.

Apache Kafka 4.3 does not know `leader.imbalance.per.broker.percentage` any more, and gives back whatever it can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from moldau.cluster.controller.changes import Election, Wanted, change, rules_of
from moldau.cluster.controller.elections import elect_missing_leaders
from moldau.cluster.controller.policy import Policy
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.locations import Place

AT_ONCE = 1000


def give_back(image: Cluster, policy: Policy, percentage: int = 0, at_once: int = AT_ONCE) -> list[Any]:
    """Elect preferred replicas, of brokers that do not lead more than this percentage of what they should."""
    rules, wanted = rules_of(image, policy), Wanted(election=Election.PREFERRED)
    records = (change(rules, *place, wanted) for place in led_by_others(image, percentage))
    return list(islice((record for record in records if record is not None), at_once))


def led_by_others(image: Cluster, percentage: int) -> Iterator[Place]:
    """Yield the partitions whose first replica lives but does not lead."""
    partitions = Counter[int]()
    places: list[Place] = []
    for topic in image.topics.values():
        for part in topic.partitions.values():
            partitions[part.replicas[0]] += 1
            if part.leader != part.replicas[0]:
                places.append((topic, part))
    elsewhere = Counter(part.replicas[0] for _, part in places)
    lacking = {one for one, count in elsewhere.items() if 100 * count > percentage * partitions[one]}
    return (place for place in places if place[1].replicas[0] in lacking and image.is_active(place[1].replicas[0]))


def elect_missing(image: Cluster, policy: Policy, at_once: int = AT_ONCE) -> list[Any]:
    """Elect a leader where there is none and somebody may lead."""
    return list(islice(elect_missing_leaders(image, policy), at_once))
