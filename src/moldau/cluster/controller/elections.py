"""Elections that somebody asks for, and those that are due when a controller begins. See changes.py for the rules.

A broker of Apache Kafka that stops hands its partitions over. Those of which it has the only replica are left with no
leader, an empty ISR, and this broker as their eligible leader replica (KIP-966); they are led again when it is back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.cluster.controller.changes import Election, Wanted, change, rules_of
from moldau.cluster.controller.policy import Policy
from moldau.machines.metadata.cluster import NO_LEADER, Cluster
from moldau.machines.metadata.locations import Place
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

PREFERRED, UNCLEAN = 0, 1
KINDS = {PREFERRED: Election.PREFERRED, UNCLEAN: Election.UNCLEAN}
UNAVAILABLE = {PREFERRED: Error.PREFERRED_LEADER_NOT_AVAILABLE, UNCLEAN: Error.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def elect_missing_leaders(image: Cluster, policy: Policy) -> Iterator[Any]:
    """Return a change for each partition whose leader is missing and can be replaced.

    By who may lead by now, or by anybody alive if the topic allows to lose records. Most get a leader when a broker
    comes; one whose new disk was named after that could not lead when it came.
    """
    rules = rules_of(image, policy)
    for topic, part in [*image.partitions_of(NO_LEADER)]:  # who takes a record may change the image at once
        if (record := change(rules, topic, part)) is not None:
            yield record


def find(image: Cluster, name: str, index: int) -> Place:
    """Return a partition of the image; raises Refused."""
    topic = image.topics.get(name)
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
    if index not in topic.partitions:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' has no partition {index}.")
    return topic, topic.partitions[index]


def elect_leader(image: Cluster, policy: Policy, name: str, index: int, kind: int) -> list[Any]:
    """Give the lead to the preferred replica or, unclean, to any that lives where there is no leader."""
    topic, part = find(image, name, index)
    leads = part.leader == part.replicas[0] if kind == PREFERRED else part.leader != NO_LEADER
    if leads:
        raise Refused(Error.ELECTION_NOT_NEEDED, Error.ELECTION_NOT_NEEDED.message)
    record = change(rules_of(image, policy), topic, part, Wanted(election=KINDS[kind]))
    if record is None:
        raise Refused(UNAVAILABLE[kind], UNAVAILABLE[kind].message)
    return [record]
