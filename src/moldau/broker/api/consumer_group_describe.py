"""ConsumerGroupDescribe (key 69), v0-1: members, epochs and assignments of consumer groups (KIP-848).

v1 tells members of the classic protocol from the others (KIP-1099).
Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from moldau.broker import operations
from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.consumer.assignors import NO_TARGET
from moldau.machines.consumer.group import ConsumerGroup
from moldau.machines.consumer.heartbeat_step import assignors
from moldau.machines.consumer.members import Member
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.reconciling import owned_slots
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

CLASSIC, CONSUMER = 0, 1


@api(69, versions=(0, 1), reads="groups")
def consumer_group_describe(
    node: Node, connection: Connection, request: m.ConsumerGroupDescribeRequest, version: int
) -> Answer:
    rows = [describe(node, group_id) for group_id in request.group_ids]
    operations.tell_of_groups(request, rows)
    return m.ConsumerGroupDescribeResponse(groups=rows)


def describe(node: Node, group_id: str) -> Any:
    try:
        if not group_id:
            return m.ConsumerGroupDescribeResponse_DescribedGroup(Error.INVALID_GROUP_ID)
        _, machine = node.groups.of(group_id)
        return described(machine.get(group_id, "consumer"), assignors(machine.setting)[0], node.cluster)
    except Refused as refused:
        return m.ConsumerGroupDescribeResponse_DescribedGroup(refused.error, refused.message, group_id)


def described(group: ConsumerGroup, default: str, cluster: Cluster) -> Any:
    return m.ConsumerGroupDescribeResponse_DescribedGroup(
        group_id=group.id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(default),
        members=[member_row(group, member, cluster) for member in group.members.values()],
    )


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
    """What a member is giving up is still its own."""
    owned: dict[bytes, set[int]] = {}
    for topic, index in (*owned_slots(member.assigned), *owned_slots(member.revoking)):
        owned.setdefault(topic, set()).add(index)
    return owned


def assignment(partitions: Mapping[bytes, Collection[int]], cluster: Cluster) -> Any:
    """Topics that are gone are left out."""
    rows = [
        m.ConsumerGroupDescribeResponse_TopicPartitions(topic, cluster.topics_by_id[topic].name, sorted(indexes))
        for topic, indexes in partitions.items()
        if topic in cluster.topics_by_id
    ]
    return m.ConsumerGroupDescribeResponse_Assignment(rows)
