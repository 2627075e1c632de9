"""AddPartitionsToTxn (key 24), v0-5: the partitions to which a producer is going to write in its transaction.

v2 PRODUCER_FENCED (KIP-588).  v4 many transactions at once, and verification only (KIP-890): brokers ask so for
their producers.  v5 transactions version 2.
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.steps import start
from moldau.broker.transactions import add_partitions, verify_partitions
from moldau.machines.metadata.topics import INTERNAL_TOPICS
from moldau.machines.transactions import Identity, Partition
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(24, versions=(0, 5))
async def add_partitions_to_txn(
    node: Node, connection: Connection, request: m.AddPartitionsToTxnRequest, version: int
) -> Answer:
    if version < 4:
        one = m.AddPartitionsToTxnRequest_AddPartitionsToTxnTransaction(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=by_topic(await answer(node, one, version)))
    answers = [(one.transactional_id, start(node, answer(node, one, version))) for one in request.transactions]
    results = [
        m.AddPartitionsToTxnResponse_AddPartitionsToTxnResult(name, by_topic(await errors)) for name, errors in answers
    ]
    return m.AddPartitionsToTxnResponse(results_by_transaction=results)


async def answer(node: Node, one: Any, version: int) -> dict[Partition, Error]:
    """Add or verify partitions; returns an error for each. If one does not exist, the others are left alone."""
    partitions = [(topic.name, index) for topic in one.topics for index in topic.partitions]
    errors = {where: error for where in partitions if (error := unusable(node, *where, version))}
    if errors:
        return errors | {where: Error.OPERATION_NOT_ATTEMPTED for where in partitions if where not in errors}
    producer = Identity(one.producer_id, one.producer_epoch)
    if one.verify_only:
        return await verify_partitions(node, one.transactional_id, producer, partitions)
    error = await add_partitions(node, one.transactional_id, producer, partitions, 2 if version >= 4 else 0)
    if error is Error.PRODUCER_FENCED and version < 2:
        error = Error.INVALID_PRODUCER_EPOCH
    return dict.fromkeys(partitions, error)


def unusable(node: Node, topic: str, index: int, version: int) -> Error:
    """Return why a partition cannot be added, if so. Only brokers add partitions of internal topics."""
    if version < 4 and topic in INTERNAL_TOPICS:
        return Error.TOPIC_AUTHORIZATION_FAILED
    known = node.cluster.topics.get(topic)
    return Error.NONE if known and index in known.partitions else Error.UNKNOWN_TOPIC_OR_PARTITION


def by_topic(errors: dict[Partition, Error]) -> list[Any]:
    topics: dict[str, list[Any]] = {}
    for (topic, index), error in errors.items():
        row = m.AddPartitionsToTxnResponse_AddPartitionsToTxnPartitionResult(index, error)
        topics.setdefault(topic, []).append(row)
    return [m.AddPartitionsToTxnResponse_AddPartitionsToTxnTopicResult(*item) for item in topics.items()]
