"""DeleteRecords (key 21), v0-2: move the start of a log forward.

Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.topics import INTERNAL_TOPICS
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = -1


@api(21, versions=(0, 2))
def delete_records(node: Node, connection: Connection, request: m.DeleteRecordsRequest, version: int) -> Answer:
    asked: dict[str, dict[int, Any]] = {}
    for topic in request.topics:  # of a partition that is named twice the last offset counts
        asked.setdefault(topic.name, {}).update((part.partition_index, part) for part in topic.partitions)
    cuts = [(name, [cut(node, name, part) for part in parts.values()]) for name, parts in asked.items()]
    return m.DeleteRecordsResponse(topics=[m.DeleteRecordsResponse_DeleteRecordsTopicResult(*rows) for rows in cuts])


def cut(node: Node, topic: str, part: Any) -> Any:
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
        answer.low_watermark = log.start_offset
        node.signal(partition)
    except Refused as refused:
        answer.error_code = refused.error
    return answer
