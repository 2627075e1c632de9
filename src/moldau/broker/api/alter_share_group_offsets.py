"""AlterShareGroupOffsets (key 91), v0: let an empty share group begin at other offsets (KIP-932).

A group that does not exist comes into being by it. Of a partition that is named twice the last offset counts.
Deviates: a partition below 0 does not exist; Kafka answers UNKNOWN_SERVER_ERROR, and cannot delete the group any more.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.share import groups as share_groups
from moldau.machines.metadata.cluster import Topic
from moldau.machines.share import offsets as share_offsets
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

Errors = dict[tuple[bytes, int], Error]


@api(91, versions=(0, 0))
async def alter_share_group_offsets(
    node: Node, connection: Connection, request: m.AlterShareGroupOffsetsRequest, version: int
) -> Answer:
    try:
        share_groups.check_request(node, request.group_id)
        errors = await alter(node, request)
    except Refused as refused:
        return m.AlterShareGroupOffsetsResponse(error_code=refused.error, error_message=refused.message)
    known = node.cluster.topics
    partitions: dict[str, list[int]] = {}
    for topic in sorted(request.topics, key=lambda topic: topic.topic_name in known):
        partitions.setdefault(topic.topic_name, []).extend(part.partition_index for part in topic.partitions)
    rows = [topic_row(known.get(name), name, indexes, errors) for name, indexes in partitions.items()]
    return m.AlterShareGroupOffsetsResponse(responses=rows)


async def alter(node: Node, request: m.AlterShareGroupOffsetsRequest) -> Errors:
    """Set the offsets; returns an error for each partition that keeps its own. Raises Refused."""
    index, machine = node.groups.of(request.group_id)
    step = share_offsets.alter(machine, request.group_id, wanted(node, request))
    await share_groups.write(node, index, step.changes)
    if step.request is None:
        return {}
    errors = share_groups.errors_of(await node.share_state.initialize(step.request))
    if not any(errors.values()):
        await share_groups.conclude(node, index, step.request, share_offsets.initialized)
    return errors


def wanted(node: Node, request: m.AlterShareGroupOffsetsRequest) -> dict[bytes, dict[int, int]]:
    """Return the offsets that are asked for, of partitions that exist."""
    offsets: dict[bytes, dict[int, int]] = {}
    for asked in request.topics:
        topic = node.cluster.topics.get(asked.topic_name)
        if topic is not None:
            starts = {part.partition_index: part.start_offset for part in asked.partitions}
            valid = {index: offset for index, offset in starts.items() if index in topic.partitions}
            offsets.setdefault(topic.id, {}).update(valid)
    return offsets


def topic_row(topic: Topic | None, name: str, partitions: list[int], errors: Errors) -> Any:
    rows = [partition_row(topic, index, errors) for index in partitions]
    row = m.AlterShareGroupOffsetsResponse_AlterShareGroupOffsetsResponseTopic(name, partitions=rows)
    if topic is not None:
        row.topic_id = topic.id
    return row


def partition_row(topic: Topic | None, index: int, errors: Errors) -> Any:
    if topic is None or index not in topic.partitions:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    else:
        error = errors.get((topic.id, index), Error.NONE)
    message = error.message if error else None
    return m.AlterShareGroupOffsetsResponse_AlterShareGroupOffsetsResponsePartition(index, error, message)
