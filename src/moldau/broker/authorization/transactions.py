"""Guards of producers and their transactions."""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer
from moldau.broker.authorization import DENIED, Call, refuse_all, split
from moldau.broker.authorization.whole import each, guard
from moldau.machines.metadata.acls import (
    ALTER,
    CLUSTER,
    CLUSTER_ACTION,
    DESCRIBE,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from moldau.wire import messages as m
from moldau.wire.errors import Error

NO_CLUSTER, NO_TOPIC, NO_TRANSACTION = DENIED[CLUSTER], DENIED[TOPIC], DENIED[TRANSACTIONAL_ID]


@guard(22)
def init_producer_id(call: Call[m.InitProducerIdRequest]) -> Answer:
    """Who may write to any topic at all may do so idempotently (KIP-679)."""
    name, client, authorizer = call.request.transactional_id, call.connection, call.node.authorizer
    if name is not None:
        error = Error.NONE if call.may(WRITE, TRANSACTIONAL_ID, name) else NO_TRANSACTION
    else:
        writes = authorizer is None or authorizer.allows_any(client.principal, client.host, WRITE, TOPIC)
        error = Error.NONE if writes or call.may(IDEMPOTENT_WRITE) else NO_CLUSTER
    if error:
        return m.InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
    return call.forward()


@guard(24)
def add_partitions_to_txn(call: Call[m.AddPartitionsToTxnRequest]) -> Answer:
    """Clients send one transaction; since v4 brokers send many. One topic that is refused stops the others too."""
    request = call.request
    if call.version >= 4:
        return call.forward() if call.may(CLUSTER_ACTION) else m.AddPartitionsToTxnResponse(error_code=NO_CLUSTER)
    topics = request.v3_and_below_topics
    if not call.may(WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        return partition_errors({topic.name: dict.fromkeys(topic.partitions, NO_TRANSACTION) for topic in topics})
    unwritable = {topic.name for topic in topics if not call.may(WRITE, TOPIC, topic.name)}
    if not unwritable:
        return call.forward()
    known = call.node.cluster.topics
    errors: dict[str, dict[int, Error]] = {}
    for topic in topics:
        there = known[topic.name].partitions if topic.name in known else ()
        for index in topic.partitions:
            missing = Error.OPERATION_NOT_ATTEMPTED if index in there else Error.UNKNOWN_TOPIC_OR_PARTITION
            errors.setdefault(topic.name, {})[index] = NO_TOPIC if topic.name in unwritable else missing
    return partition_errors(errors)


def partition_errors(errors: dict[str, dict[int, Error]]) -> m.AddPartitionsToTxnResponse:
    row = m.AddPartitionsToTxnResponse_AddPartitionsToTxnPartitionResult
    rows = [
        m.AddPartitionsToTxnResponse_AddPartitionsToTxnTopicResult(name, [row(*pair) for pair in parts.items()])
        for name, parts in errors.items()
    ]
    return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)


@guard(27)
def write_txn_markers(call: Call[m.WriteTxnMarkersRequest]) -> Answer:
    """Brokers act for the cluster; tools that abort a hanging transaction alter it."""
    if call.may(ALTER) or call.may(CLUSTER_ACTION):
        return call.forward()
    return each("markers", "markers")(call, NO_CLUSTER)


@guard(28)
def txn_offset_commit(call: Call[m.TxnOffsetCommitRequest]) -> Answer:
    return call.withhold("topics", "topics", lambda topic: call.may(READ, TOPIC, topic.name))


@guard(65)
def describe_transactions(call: Call[m.DescribeTransactionsRequest]) -> Answer:
    """Of a transaction only the topics are told that may be described."""
    asked = call.request.transactional_ids
    call.request.transactional_ids, refused = split(asked, lambda name: call.may(DESCRIBE, TRANSACTIONAL_ID, name))

    def finish(response: m.DescribeTransactionsResponse) -> Any:
        for state in response.transaction_states:
            state.topics = [topic for topic in state.topics if call.may(DESCRIBE, TOPIC, topic.topic)]
        denied = refuse_all(m.DescribeTransactionsResponse, "transaction_states", refused, NO_TRANSACTION)
        response.transaction_states = [*response.transaction_states, *denied]
        return response

    return call.forward(finish)


@guard(66)
def list_transactions(call: Call[m.ListTransactionsRequest]) -> Answer:
    def finish(response: m.ListTransactionsResponse) -> Any:
        states = response.transaction_states
        response.transaction_states = [s for s in states if call.may(DESCRIBE, TRANSACTIONAL_ID, s.transactional_id)]
        return response

    return call.forward(finish)
