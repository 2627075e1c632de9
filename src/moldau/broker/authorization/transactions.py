"""Guards of producers and their transactions."""

from __future__ import annotations

from typing import Any

from moldau.broker.authorization import Call, guard, split
from moldau.broker.authorization.whole import refusal, txn_offset_commit_row, write_markers
from moldau.machines.metadata.acls import (
    ALTER,
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

NO_CLUSTER, NO_TOPIC = Error.CLUSTER_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED
NO_TRANSACTION = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@guard(22)
def init_producer_id(call: Call) -> Any:
    """Who may write to any topic at all may do so idempotently (KIP-679)."""
    name, client, authorizer = call.request.transactional_id, call.connection, call.node.authorizer
    if name is not None:
        error = NO_TRANSACTION if not call.may(WRITE, TRANSACTIONAL_ID, name) else Error.NONE
    elif call.may(IDEMPOTENT_WRITE) or (
        authorizer and authorizer.allows_any(client.principal, client.host, WRITE, TOPIC)
    ):
        error = Error.NONE
    else:
        error = NO_CLUSTER
    if error:
        return m.InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
    return call.forward()


@guard(24)
def add_partitions_to_txn(call: Call) -> Any:
    """Clients send one transaction; since v4 brokers send many. One topic that is refused stops the others too."""
    request = call.request
    if call.version >= 4:
        if call.may(CLUSTER_ACTION):
            return call.forward()
        return m.AddPartitionsToTxnResponse(error_code=NO_CLUSTER)
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


def partition_errors(errors: dict[str, dict[int, Error]]) -> Any:
    row = m.AddPartitionsToTxnResponse_AddPartitionsToTxnPartitionResult
    rows = [
        m.AddPartitionsToTxnResponse_AddPartitionsToTxnTopicResult(name, [row(*pair) for pair in parts.items()])
        for name, parts in errors.items()
    ]
    return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)


@guard(27)
def write_txn_markers(call: Call) -> Any:
    """Brokers act for the cluster; tools that abort a hanging transaction alter it."""
    if call.may(ALTER) or call.may(CLUSTER_ACTION):
        return call.forward()
    return write_markers(call, NO_CLUSTER)


@guard(28)
def txn_offset_commit(call: Call) -> Any:
    refused = refusal(call, 28)
    if refused is not None:
        return refused
    return call.withhold(
        "topics",
        "topics",
        lambda topic: call.may(READ, TOPIC, topic.name),
        lambda topic: txn_offset_commit_row(topic, NO_TOPIC),
    )


@guard(65)
def describe_transactions(call: Call) -> Any:
    """Of a transaction only the topics are told that may be described."""
    row = m.DescribeTransactionsResponse_TransactionState
    ids = call.request.transactional_ids
    kept, refused = split(ids, lambda name: call.may(DESCRIBE, TRANSACTIONAL_ID, name))
    call.request.transactional_ids = kept

    def finish(response: Any) -> Any:
        for state in response.transaction_states:
            state.topics = [topic for topic in state.topics if call.may(DESCRIBE, TOPIC, topic.topic)]
        denied = [row(error_code=NO_TRANSACTION, transactional_id=name) for name in refused]
        response.transaction_states = [*response.transaction_states, *denied]
        return response

    return call.forward(finish)


@guard(66)
def list_transactions(call: Call) -> Any:
    def finish(response: Any) -> Any:
        states = response.transaction_states
        response.transaction_states = [s for s in states if call.may(DESCRIBE, TRANSACTIONAL_ID, s.transactional_id)]
        return response

    return call.forward(finish)
