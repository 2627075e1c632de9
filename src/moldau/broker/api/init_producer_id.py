"""InitProducerId (key 22), v0-5: a producer id for idempotent writing, or the producer id of a transactional id.

With a transactional id the epoch rises, which fences the producers before; a transaction that is open is aborted, and
the client asks again. v3 producer id and epoch of a producer that lives on (KIP-360).  v4 PRODUCER_FENCED instead of
INVALID_PRODUCER_EPOCH (KIP-588).  v5 TRANSACTION_ABORTABLE (KIP-890).
Deviates: nothing known. Version 6 (two-phase commit, KIP-939) is not advertised by Kafka either.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.transactions import init_producer_id as ask
from moldau.machines.transactions import Identity
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NOBODY = Identity()


@api(22, versions=(0, 5))
async def init_producer_id(
    node: Node, connection: Connection, request: m.InitProducerIdRequest, version: int
) -> Answer:
    said = Identity(request.producer_id, request.producer_epoch)
    if said != NOBODY and -1 in said:
        return answer(Error.INVALID_REQUEST, NOBODY)
    if request.transactional_id is None:
        try:
            if error := await node.metadata.producer_ids_ready():
                return answer(error, NOBODY)
            return answer(Error.NONE, Identity(node.metadata.next_producer_id(), 0))
        except Refused as refused:  # others were faster
            return answer(refused.error, NOBODY)
    if not request.transactional_id:
        return answer(Error.INVALID_REQUEST, NOBODY)
    if not 0 < request.transaction_timeout_ms <= node.settings["transaction.max.timeout.ms"]:
        return answer(Error.INVALID_TRANSACTION_TIMEOUT, NOBODY)
    expected = None if said == NOBODY else said
    await node.metadata.producer_ids_ready()
    error, identity = await ask(node, request.transactional_id, request.transaction_timeout_ms, expected)
    if error is Error.PRODUCER_FENCED and version < 4:
        error = Error.INVALID_PRODUCER_EPOCH
    return answer(error, identity)


def answer(error: Error, identity: Identity) -> Any:
    return m.InitProducerIdResponse(error_code=error, producer_id=identity.producer_id, producer_epoch=identity.epoch)
