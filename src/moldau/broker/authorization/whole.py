"""Guards of APIs that are refused as a whole: a table of what each asks, and how each says no.

Where an answer has a code of its own, that carries the refusal; where it has one for each item, every item does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from moldau.broker.authorization import DENIED, GUARDS, Call, free
from moldau.machines.metadata.acls import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TRANSACTIONAL_ID,
    WRITE,
)
from moldau.wire import messages as m
from moldau.wire.errors import Error

Refusal = Callable[[Call, Error], Any]


class Ask(NamedTuple):
    """An operation on a resource; `field` of the request has its name."""

    operation: int
    resource_type: int = CLUSTER
    field: str | None = None


def coded(call: Call, error: Error) -> Any:
    """The answer has a code, and most have a message."""
    answer = m.response_class(call.request.SCHEMA.key)(error_code=error)
    if hasattr(answer, "error_message"):
        answer.error_message = error.message
    return answer


def quietly(call: Call, error: Error) -> Any:
    return m.response_class(call.request.SCHEMA.key)(error_code=error)


def create_acls(call: Call, error: Error) -> Any:
    rows = [m.CreateAclsResponse_AclCreationResult(error, error.message) for _ in call.request.creations]
    return m.CreateAclsResponse(results=rows)


def delete_acls(call: Call, error: Error) -> Any:
    rows = [m.DeleteAclsResponse_DeleteAclsFilterResult(error, error.message) for _ in call.request.filters]
    return m.DeleteAclsResponse(filter_results=rows)


def alter_replica_log_dirs(call: Call, error: Error) -> Any:
    topics: dict[str, dict[int, None]] = {}
    for directory in call.request.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions))
    rows = [
        m.AlterReplicaLogDirsResponse_AlterReplicaLogDirTopicResult(
            name, [m.AlterReplicaLogDirsResponse_AlterReplicaLogDirPartitionResult(index, error) for index in indexes]
        )
        for name, indexes in topics.items()
    ]
    return m.AlterReplicaLogDirsResponse(results=rows)


def elect_leaders(call: Call, error: Error) -> Any:
    rows = [
        m.ElectLeadersResponse_ReplicaElectionResult(
            topic.topic,
            [m.ElectLeadersResponse_PartitionResult(index, error, error.message) for index in topic.partitions],
        )
        for topic in call.request.topic_partitions or ()
    ]
    return m.ElectLeadersResponse(error_code=error if call.version >= 1 else 0, replica_election_results=rows)


def alter_reassignments(call: Call, error: Error) -> Any:
    row = m.AlterPartitionReassignmentsResponse_ReassignablePartitionResponse
    rows = [
        m.AlterPartitionReassignmentsResponse_ReassignableTopicResponse(
            topic.name, [row(part.partition_index, error, error.message) for part in topic.partitions]
        )
        for topic in call.request.topics
    ]
    return m.AlterPartitionReassignmentsResponse(error_code=error, error_message=error.message, responses=rows)


def describe_client_quotas(call: Call, error: Error) -> Any:
    return m.DescribeClientQuotasResponse(error_code=error, error_message=error.message, entries=None)


def alter_client_quotas(call: Call, error: Error) -> Any:
    rows = [
        m.AlterClientQuotasResponse_EntryData(
            error,
            error.message,
            [m.AlterClientQuotasResponse_EntityData(part.entity_type, part.entity_name) for part in entry.entity],
        )
        for entry in call.request.entries
    ]
    return m.AlterClientQuotasResponse(entries=rows)


def alter_scram(call: Call, error: Error) -> Any:
    users = dict.fromkeys(one.name for one in (*call.request.deletions, *call.request.upsertions))
    row = m.AlterUserScramCredentialsResponse_AlterUserScramCredentialsResult
    return m.AlterUserScramCredentialsResponse(results=[row(user, error, error.message) for user in users])


def offset_commit(call: Call, error: Error) -> Any:
    return m.OffsetCommitResponse(topics=[offset_commit_row(topic, error) for topic in call.request.topics])


def offset_commit_row(topic: Any, error: Error) -> Any:
    rows = [m.OffsetCommitResponse_OffsetCommitResponsePartition(p.partition_index, error) for p in topic.partitions]
    return m.OffsetCommitResponse_OffsetCommitResponseTopic(topic.name, topic.topic_id, rows)


def txn_offset_commit(call: Call, error: Error) -> Any:
    return m.TxnOffsetCommitResponse(topics=[txn_offset_commit_row(topic, error) for topic in call.request.topics])


def txn_offset_commit_row(topic: Any, error: Error) -> Any:
    row = m.TxnOffsetCommitResponse_TxnOffsetCommitResponsePartition
    rows = [row(part.partition_index, error) for part in topic.partitions]
    return m.TxnOffsetCommitResponse_TxnOffsetCommitResponseTopic(topic.name, rows)


def write_markers(call: Call, error: Error) -> Any:
    row = m.WriteTxnMarkersResponse_WritableTxnMarkerPartitionResult
    rows = [
        m.WriteTxnMarkersResponse_WritableTxnMarkerResult(
            marker.producer_id,
            [
                m.WriteTxnMarkersResponse_WritableTxnMarkerTopicResult(
                    topic.name, [row(index, error) for index in topic.partition_indexes]
                )
                for topic in marker.topics
            ],
        )
        for marker in call.request.markers
    ]
    return m.WriteTxnMarkersResponse(markers=rows)


def share_state(verb: str, call: Call, error: Error) -> Any:
    """The five APIs on the state of share groups look alike: topics by id, partitions, a code for each."""
    name = f"{verb}Response"
    topic_row, partition_row = getattr(m, f"{name}_{SHARE_STATE[verb]}"), getattr(m, f"{name}_PartitionResult")
    rows = [
        topic_row(
            topic_id=topic.topic_id,
            partitions=[
                partition_row(partition=part.partition, error_code=error, error_message=error.message)
                for part in topic.partitions
            ],
        )
        for topic in call.request.topics
    ]
    return getattr(m, name)(results=rows)


SHARE_STATE = {
    "InitializeShareGroupState": "InitializeStateResult",
    "ReadShareGroupState": "ReadStateResult",
    "WriteShareGroupState": "WriteStateResult",
    "DeleteShareGroupState": "DeleteStateResult",
    "ReadShareGroupStateSummary": "ReadStateSummaryResult",
}

JOIN_AS = Ask(READ, GROUP, "group_id")
WRITE_AS = Ask(WRITE, TRANSACTIONAL_ID, "transactional_id")

# What is asked before anything else, one after the other, and how it is refused.
ASKED: dict[int, tuple[tuple[Ask, ...], Refusal]] = {
    8: ((JOIN_AS,), offset_commit),
    11: ((JOIN_AS,), quietly),
    12: ((JOIN_AS,), quietly),
    13: ((JOIN_AS,), quietly),
    14: ((JOIN_AS,), quietly),
    25: ((WRITE_AS, JOIN_AS), quietly),
    26: ((WRITE_AS,), quietly),
    28: ((WRITE_AS, JOIN_AS), txn_offset_commit),
    29: ((Ask(DESCRIBE),), coded),
    30: ((Ask(ALTER),), create_acls),
    31: ((Ask(ALTER),), delete_acls),
    34: ((Ask(ALTER),), alter_replica_log_dirs),
    35: ((Ask(DESCRIBE),), quietly),
    43: ((Ask(ALTER),), elect_leaders),
    45: ((Ask(ALTER),), alter_reassignments),
    46: ((Ask(DESCRIBE),), coded),
    47: ((Ask(DELETE, GROUP, "group_id"),), quietly),
    48: ((Ask(DESCRIBE_CONFIGS),), describe_client_quotas),
    49: ((Ask(ALTER_CONFIGS),), alter_client_quotas),
    50: ((Ask(DESCRIBE),), coded),
    51: ((Ask(ALTER),), alter_scram),
    55: ((Ask(DESCRIBE),), coded),
    57: ((Ask(ALTER),), coded),
    64: ((Ask(ALTER),), coded),
    68: ((JOIN_AS,), quietly),
    74: ((Ask(DESCRIBE_CONFIGS),), quietly),
    76: ((JOIN_AS,), quietly),
    78: ((JOIN_AS,), quietly),
    79: ((JOIN_AS,), quietly),
    80: ((Ask(ALTER),), coded),
    81: ((Ask(ALTER),), coded),
    **{
        key: ((Ask(CLUSTER_ACTION),), partial(share_state, verb))
        for key, verb in zip(range(83, 88), SHARE_STATE, strict=True)
    },
    88: ((JOIN_AS,), quietly),
    91: ((JOIN_AS,), coded),
    92: ((Ask(DELETE, GROUP, "group_id"),), coded),
}
# Handshakes, and tokens, which have rules of their own.
FREE = (17, 18, 36, 38, 39, 40, 41, 71, 72)


def refusal(call: Call, key: int) -> Any:
    """The answer that refuses a call as a whole; None lets it pass."""
    asks, refuse = ASKED[key]
    for ask in asks:
        name = CLUSTER_NAME if ask.field is None else getattr(call.request, ask.field)
        if not call.may(ask.operation, ask.resource_type, name):
            return refuse(call, DENIED[ask.resource_type])
    return None


def whole(key: int, call: Call) -> Any:
    refused = refusal(call, key)
    return call.forward() if refused is None else refused


GUARDS.update({key: partial(whole, key) for key in ASKED})
GUARDS.update(dict.fromkeys(FREE, free))
