"""Metadata (key 3), v0-13: brokers, topics, partitions and their leaders.

v1 null asks for all topics; in v0 an empty list does.  v4 allow_auto_topic_creation.  v5 offline replicas.
v7 leader epochs.  v8 authorized operations (KIP-430).  v10 topic ids, v12 asking by them (KIP-516).
A topic that is created unasked is not there yet for the client that mentioned it first: it asks again, as it has to
with Kafka. Some look whether a topic is gone and would take the one that they made by asking for the one deleted.
Deviates: where a topic cannot be created unasked the answer says why; Kafka answers UNKNOWN_TOPIC_OR_PARTITION. Asking
by id before v12 fails the topic, not the request. An answer waits for up to 300 ms while a leader's connection has just
broken and nobody is elected in its place; not with moldau.quick.fencing=false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from moldau.broker import operations
from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.replication import VANISHED_MS
from moldau.broker.topics import create_unasked
from moldau.machines.metadata.cluster import NO_LEADER, Topic
from moldau.machines.metadata.topics import INTERNAL_TOPICS, check_name
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_ID = bytes(16)


@api(3, versions=(0, 13))
async def metadata(node: Node, connection: Connection, request: m.MetadataRequest, version: int) -> Answer:
    if node.replication.vanished:  # who asks now wants to know who leads instead
        await node.until(node.replication.knows_leaders, VANISHED_MS)
    everything = request.topics is None or (version == 0 and not request.topics)
    topics = list(all_topics(node) if everything else asked_topics(node, request.topics or (), version))
    if not everything and request.allow_auto_topic_creation and node.settings["auto.create.topics.enable"]:
        await create_missing(node, topics)
    if request.include_topic_authorized_operations:
        for row in topics:
            if row.error_code != Error.UNKNOWN_TOPIC_ID:
                row.topic_authorized_operations = operations.TOPIC
    brokers = node.brokers(connection.listener)
    response = m.MetadataResponse(
        brokers=[m.MetadataResponse_MetadataResponseBroker(*broker) for broker in brokers],
        cluster_id=node.metadata.cluster_id,
        controller_id=node.controller_among([broker[0] for broker in brokers]),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = operations.CLUSTER
    return response


async def create_missing(node: Node, rows: list[Any]) -> None:
    """Create the topics that were mentioned and are not there. The client is told only what went wrong."""
    missing = {row.name: row for row in rows if row.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION}
    if missing:
        for name, error in (await create_unasked(node, missing)).items():
            missing[name].error_code = error


def all_topics(node: Node) -> Iterator[Any]:
    return (describe(node, topic) for topic in node.cluster.topics.values())


def asked_topics(node: Node, topics: Sequence[m.MetadataRequest_MetadataRequestTopic], version: int) -> Iterator[Any]:
    """Describe the asked topics in their order, each once."""
    by_id = version >= 12 and any(asked.topic_id != NO_ID for asked in topics)
    unique = {(asked.name, asked.topic_id): asked for asked in topics}
    for asked in unique.values():
        if by_id and asked.topic_id == NO_ID:
            continue  # as in Kafka, the first id makes it a request by ids alone
        try:
            yield describe(node, look_up(node, asked, version))
        except Refused as refused:
            name = None if by_id else asked.name if asked.name is not None or version >= 12 else ""
            yield m.MetadataResponse_MetadataResponseTopic(refused.error, name, asked.topic_id, name in INTERNAL_TOPICS)


def look_up(node: Node, asked: Any, version: int) -> Topic:
    by_id = asked.topic_id != NO_ID
    if (by_id or asked.name is None) and version < 12:
        raise Refused(Error.INVALID_REQUEST, "asking by topic id needs version 12")
    if not by_id and asked.name is None:
        raise Refused(Error.UNKNOWN_TOPIC_ID, "a topic needs a name or an id")
    topic = node.cluster.topic(None if by_id else asked.name, asked.topic_id)
    if topic is not None:
        return topic
    if by_id:
        raise Refused(Error.UNKNOWN_TOPIC_ID, "no topic has this id")
    check_name(str(asked.name))
    raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")


def describe(node: Node, topic: Topic) -> Any:
    """Describe one topic with its partitions."""
    local = node.replicas.by_id.get(topic.id, {})
    rows = []
    for index, part in sorted(topic.partitions.items()):
        mine = local.get(index)
        offline = [node.id] if mine is not None and mine.log.offline else []
        leader = NO_LEADER if part.leader in offline else part.leader
        error = Error.LEADER_NOT_AVAILABLE if leader == NO_LEADER else Error.NONE
        row = (error, index, leader, part.leader_epoch, list(part.replicas), list(part.isr), offline)
        rows.append(m.MetadataResponse_MetadataResponsePartition(*row))
    internal = topic.name in INTERNAL_TOPICS
    return m.MetadataResponse_MetadataResponseTopic(Error.NONE, topic.name, topic.id, internal, rows)
