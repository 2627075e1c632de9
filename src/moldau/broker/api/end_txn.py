"""EndTxn (key 26), v0-5: commit or abort a transaction.

The answer is due when the decision is in `__transaction_state`; here the markers are in the partitions by then, too.
v2 PRODUCER_FENCED (KIP-588).  v4 TRANSACTION_ABORTABLE (KIP-890).  v5 transactions version 2: the epoch rises with
each end, and the answer tells the new one.
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.transactions import end_transaction
from moldau.machines.transactions import Identity
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(26, versions=(0, 5))
async def end_txn(node: Node, connection: Connection, request: m.EndTxnRequest, version: int) -> Answer:
    producer = Identity(request.producer_id, request.producer_epoch)
    client_version = 2 if version >= 5 else 0
    outcome = await end_transaction(node, request.transactional_id, producer, request.committed, client_version)
    error, identity = outcome
    if error is Error.PRODUCER_FENCED and version < 2:
        error = Error.INVALID_PRODUCER_EPOCH
    return m.EndTxnResponse(error_code=error, producer_id=identity.producer_id, producer_epoch=identity.epoch)
