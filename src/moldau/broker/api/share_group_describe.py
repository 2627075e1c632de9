"""ShareGroupDescribe (key 77), v1: members, epochs and assignments of share groups (KIP-932).

Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker import operations
from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.share import groups as share_groups
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.share.group import ShareGroup
from moldau.machines.share.members import ShareMember
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

ASSIGNOR = "simple"


@api(77, versions=(1, 1), reads="groups")
def share_group_describe(
    node: Node, connection: Connection, request: m.ShareGroupDescribeRequest, version: int
) -> Answer:
    rows = [describe(node, group_id) for group_id in request.group_ids]
    operations.tell_of_groups(request, rows)
    return m.ShareGroupDescribeResponse(groups=rows)


def describe(node: Node, group_id: str) -> Any:
    row = m.ShareGroupDescribeResponse_DescribedGroup
    try:
        if not share_groups.enabled(node):
            return row(Error.UNSUPPORTED_VERSION, group_id=group_id)
        if not group_id:
            return row(Error.INVALID_GROUP_ID)
        _, machine = node.groups.of(group_id)
        return described(machine.get(group_id, ShareGroup.kind), node.cluster)
    except Refused as refused:
        return row(refused.error, refused.message, group_id)


def described(group: ShareGroup, cluster: Cluster) -> Any:
    return m.ShareGroupDescribeResponse_DescribedGroup(
        group_id=group.id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=ASSIGNOR,
        members=[member_row(member, cluster) for member in group.members.values()],
    )


def member_row(member: ShareMember, cluster: Cluster) -> Any:
    """Topics that are gone are left out."""
    assigned = [
        m.ShareGroupDescribeResponse_TopicPartitions(topic, cluster.topics_by_id[topic].name, sorted(indexes))
        for topic, indexes in member.assigned.items()
        if topic in cluster.topics_by_id
    ]
    return m.ShareGroupDescribeResponse_Member(
        member_id=member.id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        assignment=m.ShareGroupDescribeResponse_Assignment(assigned),
    )
