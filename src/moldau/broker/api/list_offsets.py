"""ListOffsets (key 2), v1-11: offsets by time, and the special times below.

v2 isolation level.  v4 leader epochs.  v5 OFFSET_NOT_AVAILABLE (KIP-207).  v7 max timestamp (-3, KIP-734).
v8 earliest local (-4, KIP-405).  v9 latest tiered (-5, KIP-1005).  v10 time-out.
v11 earliest pending upload (-6, KIP-1023).
A follower answers who debugs (replica id -2), by what it has itself.
Without tiering -4 is -2, and -5 and -6 find nothing.
Deviates: records that DeleteRecords took away are passed over at once; Kafka finds nothing before their segment is
gone. An isolation level that does not exist counts as read_committed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.log.answers import Isolation
from moldau.log.lookup import LATEST
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -3, -4, -5, -6
# The version in which a special time came to be; older requests that use it are refused.
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
NO_REPLICA = -1
DEBUGGING_REPLICA = -2


@api(2, versions=(1, 11))
def list_offsets(node: Node, connection: Connection, request: m.ListOffsetsRequest, version: int) -> Answer:
    topics = [
        m.ListOffsetsResponse_ListOffsetsTopicResponse(topic.name, answer_topic(node, topic, request, version))
        for topic in request.topics
        if topic.partitions
    ]
    return m.ListOffsetsResponse(topics=topics)


def answer_topic(node: Node, topic: Any, request: m.ListOffsetsRequest, version: int) -> list[Any]:
    """Return a row for each partition; one that is named twice is refused, once."""
    counts = Counter(part.partition_index for part in topic.partitions)
    unique = {part.partition_index: part for part in topic.partitions}
    rows: list[Any] = []
    for index, part in unique.items():
        try:
            if counts[index] > 1:
                raise Refused(Error.INVALID_REQUEST, "the request names this partition twice")
            rows.append(look_up(node, topic.name, part, request, version))
        except Refused as refused:
            rows.append(m.ListOffsetsResponse_ListOffsetsPartitionResponse(index, refused.error))
    return rows


def look_up(node: Node, topic: str, part: Any, request: m.ListOffsetsRequest, version: int) -> Any:
    """Make one partition's answer; raises Refused."""
    if (part.timestamp < 0 and version < SINCE.get(part.timestamp, 1)) or part.timestamp < EARLIEST_PENDING_UPLOAD:
        raise Refused(Error.UNSUPPORTED_VERSION, "this special time needs a newer request")
    find = node.replicas.replica if request.replica_id == DEBUGGING_REPLICA else node.replicas.leader
    partition = find(topic, part.partition_index)
    error = partition.epoch_error(part.current_leader_epoch)
    if error:
        raise Refused(error, "the leader epoch does not fit")
    if partition.leads:
        partition.begin_epoch()
    visible = isolation(request)
    found = partition.log.offset_for_time(part.timestamp, visible)
    if (part.timestamp == LATEST or found.offset < 0) and visible is not Isolation.LOG_END and partition.lags:
        error = Error.OFFSET_NOT_AVAILABLE if version >= 5 else Error.LEADER_NOT_AVAILABLE
        raise Refused(error, "this leader does not know yet what was committed before it")
    answer = m.ListOffsetsResponse_ListOffsetsPartitionResponse(part.partition_index, 0, found.timestamp, found.offset)
    if version >= 4:
        answer.leader_epoch = found.leader_epoch
    return answer


def isolation(request: m.ListOffsetsRequest) -> Isolation:
    """Return how far the client may see."""
    if request.replica_id not in (NO_REPLICA, DEBUGGING_REPLICA):
        return Isolation.LOG_END
    return Isolation.COMMITTED if request.isolation_level else Isolation.HIGH_WATERMARK
