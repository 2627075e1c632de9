"""DescribeTransactions (key 65), v0: what the coordinator knows of transactional ids (KIP-664).

Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(65, versions=(0, 0), reads="transactions")
def describe_transactions(
    node: Node, connection: Connection, request: m.DescribeTransactionsRequest, version: int
) -> Answer:
    return m.DescribeTransactionsResponse(
        transaction_states=[describe(node, name) for name in request.transactional_ids]
    )


def describe(node: Node, name: str) -> Any:
    if not name:
        return m.DescribeTransactionsResponse_TransactionState(Error.INVALID_REQUEST, name)
    try:
        one = node.transactions.of(name)[1].by_id.get(name)
    except Refused as refused:
        return m.DescribeTransactionsResponse_TransactionState(refused.error, name)
    if one is None:
        return m.DescribeTransactionsResponse_TransactionState(Error.TRANSACTIONAL_ID_NOT_FOUND, name)
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(one.partitions):
        topics.setdefault(topic, []).append(index)
    return m.DescribeTransactionsResponse_TransactionState(
        transactional_id=name,
        transaction_state=one.state.title,
        transaction_timeout_ms=one.timeout_ms,
        transaction_start_time_ms=one.start_ms,
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        topics=[m.DescribeTransactionsResponse_TopicData(*item) for item in topics.items()],
    )
