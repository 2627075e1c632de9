"""Share groups (KIP-932): where they are in their partitions, and changes of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moldau.admin import TopicPartition, by_topic, topic_rows
from moldau.client import Client, check, group
from moldau.client import messages as m

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """Where a share group is in a partition; `start` is None before it has begun, `lag` where it is not told."""

    topic: str
    partition: int
    start: int | None
    leader_epoch: int
    lag: int | None


def offsets(client: Client, name: str, places: Iterable[TopicPartition] | None = None) -> list[ShareOffset]:
    """All partitions of the group, or these."""
    topics = None
    if places is not None:
        topics = [
            m.DescribeShareGroupOffsetsRequest_DescribeShareGroupOffsetsRequestTopic(topic, parts)
            for topic, parts in by_topic(places).items()
        ]
    row = m.DescribeShareGroupOffsetsRequest_DescribeShareGroupOffsetsRequestGroup(name, topics)
    answer = check(client.send(m.DescribeShareGroupOffsetsRequest([row]), group(name)))
    return [
        ShareOffset(
            topic.topic_name,
            part.partition_index,
            None if part.start_offset == UNKNOWN else part.start_offset,
            part.leader_epoch,
            None if part.lag == UNKNOWN else part.lag,
        )
        for topic in answer.groups[0].topics
        for part in topic.partitions
    ]


def alter(client: Client, name: str, wanted: Mapping[TopicPartition, int]) -> None:
    """Set where a group without members begins."""
    topic = m.AlterShareGroupOffsetsRequest_AlterShareGroupOffsetsRequestTopic
    row = m.AlterShareGroupOffsetsRequest_AlterShareGroupOffsetsRequestPartition
    check(client.send(m.AlterShareGroupOffsetsRequest(name, topic_rows(topic, row, wanted)), group(name)))


def delete_offsets(client: Client, name: str, topics: Iterable[str]) -> None:
    """Forget where a group without members is in topics."""
    rows = [m.DeleteShareGroupOffsetsRequest_DeleteShareGroupOffsetsRequestTopic(topic) for topic in topics]
    check(client.send(m.DeleteShareGroupOffsetsRequest(name, rows), group(name)))
