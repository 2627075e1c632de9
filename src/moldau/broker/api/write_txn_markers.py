"""WriteTxnMarkers (key 27), v1-2: end transactions in partitions of this broker.

Coordinators on other brokers send it, and the tools that abort a transaction which its coordinator has forgotten.
v2 transaction version of the marker (KIP-890).
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.steps import start
from moldau.broker.transactions import Marker
from moldau.machines.transactions import Identity
from moldau.wire import messages as m


@api(27, versions=(1, 2))
async def write_txn_markers(
    node: Node, connection: Connection, request: m.WriteTxnMarkersRequest, version: int
) -> Answer:
    rows = [start(node, write(node, one)) for one in request.markers]
    return m.WriteTxnMarkersResponse([await row for row in rows])


async def write(node: Node, one: Any) -> Any:
    producer = Identity(one.producer_id, one.producer_epoch)
    marker = Marker(node, producer, one.transaction_result, one.coordinator_epoch, one.transaction_version)
    row = m.WriteTxnMarkersResponse_WritableTxnMarkerPartitionResult
    written = [
        (topic.name, [(at, marker.write(topic.name, at)) for at in topic.partition_indexes]) for topic in one.topics
    ]
    topics = [
        m.WriteTxnMarkersResponse_WritableTxnMarkerTopicResult(name, [row(at, await error) for at, error in parts])
        for name, parts in written
    ]
    return m.WriteTxnMarkersResponse_WritableTxnMarkerResult(one.producer_id, topics)
