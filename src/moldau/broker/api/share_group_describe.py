"""ShareGroupDescribe (key 77), v1: members, epochs and assignments of share groups (KIP-932).

Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import describe_groups
from moldau.broker.node import Node
from moldau.broker.share import groups as share_groups
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.share.group import ShareGroup
from moldau.machines.share.members import ShareMember
from moldau.wire import messages as m

ASSIGNOR = "simple"


@api(77, versions=(1, 1), reads="groups")
def share_group_describe(
    node: Node, connection: Connection, request: m.ShareGroupDescribeRequest, version: int
) -> Answer:
    def describe(group: ShareGroup) -> Any:
        return row(
            group_id=group.id,
            group_state=group.state_name(),
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=ASSIGNOR,
            members=[member_row(member, node.cluster) for member in group.members.values()],
        )

    row = m.ShareGroupDescribeResponse_DescribedGroup
    rows = describe_groups(node, request, ShareGroup.kind, row, describe, share_groups.enabled(node))
    return m.ShareGroupDescribeResponse(groups=rows)


def member_row(member: ShareMember, cluster: Cluster) -> Any:
    """Describe a member; topics that are gone are left out."""
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
