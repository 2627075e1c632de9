"""DescribeShareGroupOffsets (key 90), v0-1: where share groups begin in their partitions (KIP-932).

The start offset of a partition is that of its first record that is not done with; -1 where nothing is known. Null
topics ask for all partitions that have a state. A group that does not exist is one of which nothing is known.
v1 lag: records that the group is not done with (KIP-1226).
Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.latest_offsets import latest_offsets
from moldau.broker.node import Node
from moldau.broker.share import groups as share_groups
from moldau.machines.replaying import existing
from moldau.machines.share.group import ShareGroup
from moldau.machines.share.topics import NO_OFFSET
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_LAG = NO_COUNT = -1
Asked = Mapping[bytes, list[int]]


@api(90, versions=(0, 1))
async def describe_share_group_offsets(
    node: Node, connection: Connection, request: m.DescribeShareGroupOffsetsRequest, version: int
) -> Answer:
    return m.DescribeShareGroupOffsetsResponse(groups=[await describe(node, asked) for asked in request.groups])


async def describe(node: Node, asked: Any) -> Any:
    row = m.DescribeShareGroupOffsetsResponse_DescribeShareGroupOffsetsResponseGroup(asked.group_id)
    if not share_groups.enabled(node):
        row.error_code = Error.UNSUPPORTED_VERSION
        return row
    try:
        if asked.topics is None:
            row.topics = await read(node, asked.group_id, await all_partitions(node, asked.group_id))
        else:
            row.topics = await asked_topics(node, asked)
    except Refused as refused:
        row.error_code, row.error_message = refused.error, refused.message
    return row


async def asked_topics(node: Node, asked: Any) -> list[Any]:
    """Describe the topics that were asked for; of one that does not exist nothing is known."""
    topics = node.cluster.topics
    unknown = [
        m.DescribeShareGroupOffsetsResponse_DescribeShareGroupOffsetsResponseTopic(
            topic.topic_name, partitions=[partition_row(index) for index in topic.partitions]
        )
        for topic in asked.topics
        if topic.topic_name not in topics
    ]
    known = {topics[topic.topic_name].id: topic.partitions for topic in asked.topics if topic.topic_name in topics}
    return unknown + await read(node, asked.group_id, known)


async def all_partitions(node: Node, group_id: str) -> Asked:
    index, machine = node.groups.of(group_id)
    group = existing(machine, group_id, ShareGroup)
    known = group.known_states().initialized if group else {}
    asked = {topic: sorted(found.partitions) for topic, found in known.items() if topic in node.cluster.topics_by_id}
    await share_groups.write(node, index)
    return asked


async def read(node: Node, group_id: str, asked: Asked) -> list[Any]:
    """Ask the share coordinator, and the leaders of the partitions for their ends."""
    names = {topic.id: topic.name for one in asked if (topic := node.cluster.topics_by_id.get(one)) is not None}
    rows = [
        m.ReadShareGroupStateSummaryRequest_ReadStateSummaryData(
            topic, [m.ReadShareGroupStateSummaryRequest_PartitionData(index) for index in asked[topic]]
        )
        for topic in names
    ]
    if not rows:
        return []
    response = await node.share_state.read_summary(m.ReadShareGroupStateSummaryRequest(group_id, rows))
    states = {
        (names[result.topic_id], part.partition): part for result in response.results for part in result.partitions
    }
    ends = await latest_offsets(node, [name for name, part in states.items() if has_lag(part)])
    return [
        m.DescribeShareGroupOffsetsResponse_DescribeShareGroupOffsetsResponseTopic(
            name, topic_id, [known_row(part, ends.get(at)) for at, part in states.items() if at[0] == name]
        )
        for topic_id, name in names.items()
    ]


def has_lag(part: Any) -> bool:
    return not part.error_code and part.start_offset != NO_OFFSET and part.delivery_complete_count != NO_COUNT


def known_row(part: Any, end: int | Error | None) -> Any:
    """Describe a partition by its state, and by its end where its lag is known."""
    if part.error_code:
        return partition_row(part.partition)
    if isinstance(end, Error):
        return partition_row(part.partition, 0, error=end)
    row = partition_row(part.partition, part.start_offset, part.leader_epoch)
    if end is not None:
        row.lag = end - part.start_offset - part.delivery_complete_count
    return row


def partition_row(index: int, offset: int = NO_OFFSET, epoch: int = 0, error: Error = Error.NONE) -> Any:
    row = m.DescribeShareGroupOffsetsResponse_DescribeShareGroupOffsetsResponsePartition
    return row(index, offset, epoch, NO_LAG, error, error.message if error else None)
