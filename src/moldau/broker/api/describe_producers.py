"""DescribeProducers (key 61), v0: the producers that the leader of a partition knows (KIP-664).

Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.topics import check_name
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(61, versions=(0, 0))
def describe_producers(node: Node, connection: Connection, request: m.DescribeProducersRequest, version: int) -> Answer:
    topics = [
        m.DescribeProducersResponse_TopicResponse(t.name, [describe(node, t.name, i) for i in t.partition_indexes])
        for t in request.topics
    ]
    return m.DescribeProducersResponse(topics=topics)


def describe(node: Node, topic: str, index: int) -> Any:
    try:
        check_name(topic)
        producers = node.replicas.leader(topic, index).log.producers.by_id.values()
    except Refused as refused:
        return m.DescribeProducersResponse_PartitionResponse(index, refused.error, refused.message)
    rows = [
        m.DescribeProducersResponse_ProducerState(
            producer_id=known.producer_id,
            producer_epoch=known.epoch,
            last_sequence=known.last_sequence,
            last_timestamp=known.last_timestamp,
            coordinator_epoch=known.coordinator_epoch,
            current_txn_start_offset=known.txn_first_offset,
        )
        for known in producers
    ]
    return m.DescribeProducersResponse_PartitionResponse(index, active_producers=rows)
