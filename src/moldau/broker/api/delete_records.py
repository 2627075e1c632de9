"""DeleteRecords (key 21), v0-2: move the start of a log forward, and wait until all live replicas have followed.

Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.partition import Partition
from moldau.broker.wait import Wait
from moldau.machines.metadata.topics import INTERNAL_TOPICS
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = -1


class Cut(NamedTuple):
    """A log that begins later now, and the row of the answer for it."""

    partition: Partition
    offset: int
    row: Any


@api(21, versions=(0, 2))
def delete_records(node: Node, connection: Connection, request: m.DeleteRecordsRequest, version: int) -> Answer:
    asked: dict[str, dict[int, Any]] = {}
    for topic in request.topics:  # of a partition that is named twice the last offset counts
        asked.setdefault(topic.name, {}).update((part.partition_index, part) for part in topic.partitions)
    cuts: list[Cut] = []
    rows = [(name, [cut(node, name, part, cuts) for part in parts.values()]) for name, parts in asked.items()]
    answer = m.DeleteRecordsResponse(topics=[m.DeleteRecordsResponse_DeleteRecordsTopicResult(*row) for row in rows])

    def attempt(expired: bool) -> Any:
        cuts[:] = [one for one in cuts if not is_done(node, one)]
        for one in cuts:
            one.row.error_code = Error.REQUEST_TIMED_OUT
        return answer if expired or not cuts else None

    if (outcome := attempt(request.timeout_ms <= 0)) is not None:
        return outcome
    watches = *(one.partition.log for one in cuts), node.metadata
    return Wait(node.clock.monotonic_ms() + request.timeout_ms, attempt, watches)


def cut(node: Node, topic: str, part: Any, cuts: list[Cut]) -> Any:
    """Let the leader's own log begin later, and return its row."""
    answer = m.DeleteRecordsResponse_DeleteRecordsPartitionResult(part.partition_index, INVALID_LOW_WATERMARK)
    try:
        partition = node.replicas.leader(topic, part.partition_index)
        if topic in INTERNAL_TOPICS:
            raise Refused(Error.INVALID_TOPIC_EXCEPTION, "records of an internal topic are not deleted on request")
        log = partition.log
        if "delete" not in log.config.cleanup_policy:
            raise Refused(Error.POLICY_VIOLATION, "the topic's cleanup.policy does not include delete")
        offset = log.high_watermark if part.offset == HIGH_WATERMARK else part.offset
        log.delete_records(offset)
        node.replicas.checkpoint()
        log.wake()  # what could not be written down must not be promised
        answer.low_watermark = node.replication.low_watermark(partition)
        cuts.append(Cut(partition, offset, answer))
        node.signal(partition)
    except Refused as refused:
        answer.error_code = refused.error
    return answer


def is_done(node: Node, one: Cut) -> bool:
    """Fill in the row if all live replicas begin at the offset or later, or never will under this leader."""
    error = one.partition.leader_error(-1) or (Error.KAFKA_STORAGE_ERROR if one.partition.log.offline else Error.NONE)
    low = INVALID_LOW_WATERMARK if error else node.replication.low_watermark(one.partition)
    if not error and low < one.offset:
        return False
    one.row.error_code, one.row.low_watermark = error, low
    return True
