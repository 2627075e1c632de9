"""DescribeTopicPartitions (key 75), v0: topics in pages, with their eligible leader replicas (KIP-966).

Topics come in the order of their names. A page ends after `response_partition_limit` partitions (at least one, at
most max.request.partition.size.limit); `next_cursor` says where the next one begins. A cursor must point into what
was asked for.

Deviates: an empty name is INVALID_TOPIC_EXCEPTION; Kafka fails the whole request.
"""

from __future__ import annotations

from typing import Any

from moldau.broker import operations
from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.cluster import NO_LEADER, Topic
from moldau.machines.metadata.topics import INTERNAL_TOPICS, check_name
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(75, versions=(0, 0))
def describe_topic_partitions(
    node: Node, connection: Connection, request: m.DescribeTopicPartitionsRequest, version: int
) -> Answer:
    asked = sorted({topic.name for topic in request.topics})
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)):
        rows = [
            m.DescribeTopicPartitionsResponse_DescribeTopicPartitionsResponseTopic(
                error_code=Error.INVALID_REQUEST, name=topic.name
            )
            for topic in request.topics
        ]
        return m.DescribeTopicPartitionsResponse(topics=rows)
    limit = min(request.response_partition_limit, node.settings["max.request.partition.size.limit"])
    return page(node, asked or sorted(node.cluster.topics), cursor, max(1, limit))


def page(node: Node, names: list[str], cursor: Any, limit: int) -> Any:
    """Describe as many partitions as the limit allows, from the cursor on."""
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    rows: list[Any] = []
    for name in names:
        if limit <= 0:
            return end_page(rows, name, 0)
        topic = node.cluster.topics.get(name)
        if topic is None:
            rows.append(unknown(name))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        rows.append(describe(node, topic, indexes[:limit]))
        if len(indexes) > limit:
            return end_page(rows, name, indexes[limit])
        limit -= len(indexes)
    return m.DescribeTopicPartitionsResponse(topics=rows)


def end_page(rows: list[Any], name: str, index: int) -> Any:
    cursor = m.DescribeTopicPartitionsResponse_Cursor(name, index)
    return m.DescribeTopicPartitionsResponse(topics=rows, next_cursor=cursor)


def unknown(name: str) -> Any:
    error = Error.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_name(name)
    except Refused as refused:
        error = refused.error
    return m.DescribeTopicPartitionsResponse_DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, topic_authorized_operations=operations.TOPIC
    )


def describe(node: Node, topic: Topic, indexes: list[int]) -> Any:
    """Describe one topic with some of its partitions."""
    return m.DescribeTopicPartitionsResponse_DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[describe_partition(node, topic, index) for index in indexes],
        topic_authorized_operations=operations.TOPIC,
    )


def describe_partition(node: Node, topic: Topic, index: int) -> Any:
    placement = topic.partitions[index]
    mine = node.replicas.by_id.get(topic.id, {}).get(index)
    offline = [node.id] if mine is not None and mine.log.offline else []
    leader = NO_LEADER if placement.leader in offline else placement.leader
    return m.DescribeTopicPartitionsResponse_DescribeTopicPartitionsResponsePartition(
        error_code=Error.LEADER_NOT_AVAILABLE if leader == NO_LEADER else Error.NONE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=placement.leader_epoch,
        replica_nodes=list(placement.replicas),
        isr_nodes=list(placement.isr),
        eligible_leader_replicas=list(placement.eligible_leaders),
        last_known_elr=list(placement.last_known_leaders),
        offline_replicas=offline,
    )
