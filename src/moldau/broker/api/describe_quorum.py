"""DescribeQuorum (key 55), v0-2: the voters of the metadata log and how far each of them is.

A node that is alone is the one voter, and leads; in a cluster the leader of the quorum answers. A request for anything
but partition 0 of the metadata topic, and for it alone, gets UNKNOWN_TOPIC_OR_PARTITION for all that it names.

v1 timestamps (KIP-836).  v2 directory ids, error messages and the voters' addresses (KIP-853).
Deviates: a node that is alone has no listener for controllers, so the voter's addresses are those of the broker.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.topics import METADATA_TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(55, versions=(0, 2))
def describe_quorum(node: Node, connection: Connection, request: m.DescribeQuorumRequest, version: int) -> Answer:
    asked = [(topic.topic_name, part.partition_index) for topic in request.topics for part in topic.partitions]
    known = asked == [(METADATA_TOPIC, 0)] and len(request.topics) == 1
    if known and node.quorum is not None:
        from moldau.broker.api.quorum import quorum_of

        return quorum_of(node).describe()
    describe = quorum if known else unknown
    topics = [
        m.DescribeQuorumResponse_TopicData(
            topic.topic_name, [describe(node, version, part.partition_index) for part in topic.partitions]
        )
        for topic in request.topics
    ]
    return m.DescribeQuorumResponse(topics=topics, nodes=voters(node) if known and version >= 2 else [])


def quorum(node: Node, version: int, index: int) -> Any:
    """Describe the metadata log as its leader sees it, with directory ids from kraft.version 1 on."""
    log, now = node.metadata.log, node.clock.wall_ms()
    self = m.DescribeQuorumResponse_ReplicaState(
        replica_id=node.id, log_end_offset=log.end_offset, last_fetch_timestamp=now, last_caught_up_timestamp=now
    )
    if node.cluster.features.get("kraft.version") and version >= 2:
        self.replica_directory_id = node.cluster.brokers[node.id].log_dirs[0]
    return m.DescribeQuorumResponse_PartitionData(
        partition_index=index,
        leader_id=node.id,
        leader_epoch=node.metadata.epoch,
        high_watermark=log.high_watermark,
        current_voters=[self],
    )


def unknown(node: Node, version: int, index: int) -> Any:
    error = Error.UNKNOWN_TOPIC_OR_PARTITION
    return m.DescribeQuorumResponse_PartitionData(index, error, error.message)


def voters(node: Node) -> list[Any]:
    listeners = [
        m.DescribeQuorumResponse_Listener(e.listener, e.host, e.port) for e in node.cluster.brokers[node.id].endpoints
    ]
    return [m.DescribeQuorumResponse_Node(node.id, listeners)]
