"""AddOffsetsToTxn (key 25), v0-4: a group whose offsets a producer is going to commit in its transaction.

v2 PRODUCER_FENCED (KIP-588).  v4 TRANSACTION_ABORTABLE (KIP-890).
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.transactions import add_partitions
from moldau.machines.transactions import Identity
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(25, versions=(0, 4))
async def add_offsets_to_txn(
    node: Node, connection: Connection, request: m.AddOffsetsToTxnRequest, version: int
) -> Answer:
    where = node.groups.topic, node.groups.partition_for(request.group_id)
    producer = Identity(request.producer_id, request.producer_epoch)
    error = await add_partitions(node, request.transactional_id, producer, [where], 0)
    if error is Error.PRODUCER_FENCED and version < 2:
        error = Error.INVALID_PRODUCER_EPOCH
    return m.AddOffsetsToTxnResponse(error_code=error)
