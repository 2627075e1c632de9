"""Where the state of a Streams application can be asked for: which member serves which partitions (KIP-1071).

Members tell the address at which they answer queries; all members are told what those with an address have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.machines.metadata.cluster import Cluster
from moldau.machines.streams.configuring import NO_PARTS
from moldau.machines.streams.group import StreamsGroup
from moldau.machines.streams.members import Member
from moldau.machines.streams.tasks import Role
from moldau.wire import messages as m


def partitions_by_endpoint(group: StreamsGroup, member: Member, cluster: Cluster) -> list[Any]:
    """Return a row for each member with an address; `member` as it is after its turn."""
    members = [*(other for other in group.members.values() if other.id != member.id), member]
    return [
        m.StreamsGroupHeartbeatResponse_EndpointToPartitions(
            m.StreamsGroupHeartbeatResponse_Endpoint(*one.endpoint),
            [*input_partitions(group, one, Role.ACTIVE, cluster)],
            [*input_partitions(group, one, Role.STANDBY, cluster)],
        )
        for one in members
        if one.endpoint is not None
    ]


def input_partitions(group: StreamsGroup, member: Member, role: Role, cluster: Cluster) -> Iterator[Any]:
    """Yield the partitions that a member's tasks read; a topic may have fewer than there are tasks."""
    parts = group.configured.subtopologies if group.configured else NO_PARTS
    for (mine, subtopology), indexes in member.assigned.items():
        if mine == role and subtopology in parts:
            for name in sorted(parts[subtopology].inputs):
                topic = cluster.topics.get(name)
                partitions = [index for index in sorted(indexes) if topic and index in topic.partitions]
                yield m.StreamsGroupHeartbeatResponse_TopicPartition(name, partitions)
