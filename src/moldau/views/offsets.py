"""Offsets of topics, and of the group of an application, as the cluster tells them now."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.client import Client, Leader, check, group
from moldau.client import messages as m

EARLIEST, LATEST = -2, -1
COMMITTED = 1  # the level of isolation: the latest is then where the first open transaction begins
NO_REPLICA = -1
LAST_WITH_NAMES = 9  # of OffsetFetch: after this version topics go by their ids


def offset_of(client: Client, topic: str, partition: int, when: int) -> int:
    """Where a partition begins, or ends for those who read what is committed."""
    wanted = m.ListOffsetsRequest_ListOffsetsPartition(partition_index=partition, timestamp=when)
    topics = [m.ListOffsetsRequest_ListOffsetsTopic(topic, [wanted])]
    request = m.ListOffsetsRequest(replica_id=NO_REPLICA, isolation_level=COMMITTED, topics=topics)
    answer = client.send(request, to=Leader(topic, partition))
    check(answer)
    return answer.topics[0].partitions[0].offset


def ends_of(client: Client, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    return {number: offset_of(client, topic, number, LATEST) for number in partitions}


def committed(client: Client, application: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """How far an application has come in a topic that it reads; -1 where it has not begun."""
    numbers = sorted(partitions)
    wanted = m.OffsetFetchRequest_OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
    one = m.OffsetFetchRequest_OffsetFetchRequestGroup(group_id=application, topics=[wanted])
    request = m.OffsetFetchRequest(groups=[one], require_stable=False)
    answer = client.send(request, to=group(application), at_most=LAST_WITH_NAMES)
    check(answer)
    rows = [row for told in answer.groups[0].topics for row in told.partitions]
    found = {row.partition_index: row.committed_offset for row in rows}
    return {number: found.get(number, -1) for number in numbers}
