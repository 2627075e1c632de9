"""ConsumerGroupDescribe (key 69), v0-1: members, epochs and assignments of consumer groups (KIP-848).

v1 tells members of the classic protocol from the others (KIP-1099).
Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import describe_groups
from moldau.broker.node import Node
from moldau.machines.consumer.assignors import NO_TARGET
from moldau.machines.consumer.group import ConsumerGroup
from moldau.machines.consumer.heartbeat_step import assignors
from moldau.machines.consumer.members import Member
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.reconciling import owned_slots
from moldau.wire import messages as m

CLASSIC, CONSUMER = 0, 1


@api(69, versions=(0, 1), reads="groups")
def consumer_group_describe(
    node: Node, connection: Connection, request: m.ConsumerGroupDescribeRequest, version: int
) -> Answer:
    default = assignors(node.settings.__getitem__)[0]

    def describe(group: ConsumerGroup) -> Any:
        return row(
            group_id=group.id,
            group_state=group.state_name(),
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=group.preferred_assignor(default),
            members=[member_row(group, member, node.cluster) for member in group.members.values()],
        )

    row = m.ConsumerGroupDescribeResponse_DescribedGroup
    return m.ConsumerGroupDescribeResponse(groups=describe_groups(node, request, "consumer", row, describe))


def member_row(group: ConsumerGroup, member: Member, cluster: Cluster) -> Any:
    return m.ConsumerGroupDescribeResponse_Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=assignment(still_owned(member), cluster),
        target_assignment=assignment(group.target.get(member.id, NO_TARGET), cluster),
        member_type=CONSUMER if member.classic is None else CLASSIC,
    )


def still_owned(member: Member) -> dict[bytes, set[int]]:
    """Return what a member has; what it is giving up is still its own."""
    owned: dict[bytes, set[int]] = {}
    for topic, index in (*owned_slots(member.assigned), *owned_slots(member.revoking)):
        owned.setdefault(topic, set()).add(index)
    return owned


def assignment(partitions: Mapping[bytes, Collection[int]], cluster: Cluster) -> Any:
    """Make an assignment without topics that are gone."""
    rows = [
        m.ConsumerGroupDescribeResponse_TopicPartitions(topic, cluster.topics_by_id[topic].name, sorted(indexes))
        for topic, indexes in partitions.items()
        if topic in cluster.topics_by_id
    ]
    return m.ConsumerGroupDescribeResponse_Assignment(rows)
