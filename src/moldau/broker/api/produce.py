"""Produce (key 0), v3-13: append record batches.

The batch stays bytes: header and checksum are checked, records are not decoded unless the topic's settings demand
it (see log/log.py). Versions 0-2 are advertised although no broker of the 4 line answers them, because older
librdkafka turns compression off where the lowest version is above 0 (KAFKA-18659).

v5 log start offset.  v7 zstd.  v8 error messages and record errors (KIP-467).  v10 current leader (KIP-951).
v12 transactions without AddPartitionsToTxn (KIP-890).  v13 topic ids (KIP-516).
Deviates: records inside a batch are not decoded, so these checks of Kafka's LogValidator are left out unless the
topic's settings demand decoding: that there are as many records as the header says, that their offset deltas count up
from 0, that compressed data decompresses, that each record's timestamp is within bounds (the batch's largest is
checked). Such a batch with a right checksum is stored as it is; readers and compaction cope with it. An unknown codec
gives INVALID_RECORD (Kafka: UNKNOWN_SERVER_ERROR), and null records INVALID_RECORD (Kafka does not answer). While the
markers of a transaction cannot be written, a client of v12 that begins the next one is told CONCURRENT_TRANSACTIONS
at once; Kafka tries for 100 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from moldau.broker.admission import barred_partitions, transactional_parts
from moldau.broker.api import Answer, Connection, api
from moldau.broker.leader_hints import with_hints
from moldau.broker.node import Node
from moldau.broker.partition import ALL, Partition
from moldau.broker.steps import follow
from moldau.broker.wait import Wait
from moldau.log.answers import Appended
from moldau.machines.metadata.topics import INTERNAL_TOPICS
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import CODEC_MASK, MAGIC
from moldau.wire.refusal import Refused

ZSTD = 4
BATCH_HEAD = 12  # offset and size: fewer bytes are no batch
MAGIC_AT, ATTRIBUTES_AT = 16, 22  # in a batch; the codec is in the low byte of the attributes
ACKS = (-1, 0, 1)
# Refusals of the log with which its start offset is not told.
UNTOLD = {Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE, Error.CORRUPT_MESSAGE, Error.KAFKA_STORAGE_ERROR}


@api(0, versions=(3, 13), advertised=0)
def produce(node: Node, connection: Connection, request: m.ProduceRequest, version: int) -> Answer:
    if not (parts := transactional_parts(request)):
        return with_hints(node, connection, append_all(node, connection, request, version, {}), version)
    outcome = follow(node, produce_in_transaction(node, connection, request, version, parts))
    if outcome.__class__ is Wait:  # the frame is gone by the time that the transaction's coordinator answers
        for topic in request.topic_data:
            for part in topic.partition_data:
                part.records = memoryview(bytearray(part.records or b""))
    return with_hints(node, connection, outcome, version)


async def produce_in_transaction(
    node: Node, connection: Connection, request: m.ProduceRequest, version: int, parts: list[Any]
) -> Any:
    """Write when the transaction's coordinator has said where the producer may write."""
    try:
        barred = await barred_partitions(node, request, version, parts)
    except Refused as refused:
        return refuse_all(connection, request, refused)
    return append_all(node, connection, request, version, barred)


def append_all(
    node: Node, connection: Connection, request: m.ProduceRequest, version: int, barred: dict[tuple[str, int], Refused]
) -> Any:
    acks, now = request.acks, node.clock.wall_ms()
    topics, unsettled, failed = [], [], False
    by_id = version >= 13
    known = node.replicas.table(by_id)
    for topic, parts in asked(request.topic_data):
        partitions = known.get(topic.topic_id if by_id else topic.name)
        answers = []
        for part in parts:
            reached = None  # the partition, once its log is asked
            try:
                partition = find(partitions, part.index, by_id)
                if barred and (partition.topic, part.index) in barred:
                    raise barred[partition.topic, part.index]
                check(partition, part.records, acks, version)
                reached = partition
                appended: Appended = partition.append(part.records, now)
            except Refused as refused:
                failed = True
                answers.append(refusal(reached, part.index, refused))
                continue
            node.signal(partition)
            if not partition.is_settled(appended.last_offset, acks):
                unsettled.append((partition, appended.last_offset))
            answers.append(
                m.ProduceResponse_PartitionProduceResponse(
                    part.index, 0, appended.base_offset, appended.log_append_time_ms, appended.log_start_offset
                )
            )
        topics.append(m.ProduceResponse_TopicProduceResponse(topic.name, topic.topic_id, answers))
    for partition, _ in unsettled:
        if partition.must_sync():
            node.replicas.flush(partition)
    if acks == 0:
        # There is no answer to carry an error: the client learns of it by losing the connection.
        connection.closing = "a produce request with acks=0 failed" if failed else connection.closing
        return None
    response = m.ProduceResponse(topics)
    if (ready := when_settled(response, unsettled, acks, expired=False)) is not None:
        return ready
    deadline = node.clock.monotonic_ms() + request.timeout_ms
    attempt, watches = partial(when_settled, response, unsettled, acks), tuple(p.log for p, _ in unsettled)
    return Wait(deadline, attempt, watches, applied=True)


def asked(topics: Sequence[Any]) -> Iterable[tuple[Any, Iterable[Any]]]:
    """Each topic once, with partitions each once: of what is named twice Kafka knows the last, and nothing of none."""
    if len(topics) == 1 == len(topics[0].partition_data):
        return ((topics[0], topics[0].partition_data),)
    found: dict[tuple[str, bytes], tuple[Any, dict[int, Any]]] = {}
    for topic in topics:
        if topic.partition_data:
            _, parts = found.setdefault((topic.name, topic.topic_id), (topic, {}))
            parts.update((part.index, part) for part in topic.partition_data)
    return ((topic, parts.values()) for topic, parts in found.values())


def find(partitions: Mapping[int, Partition] | None, index: int, by_id: bool) -> Partition:
    if partitions is None and by_id:
        raise Refused(Error.UNKNOWN_TOPIC_ID, "no topic has this id")
    partition = partitions.get(index) if partitions else None
    if partition is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, "no such topic or partition here")
    return partition


def check(partition: Partition, records: memoryview | None, acks: int, version: int) -> None:
    """Refuse what can be refused before the log looks at the batch, in Kafka's order."""
    if not records or len(records) < BATCH_HEAD:
        raise Refused(Error.INVALID_RECORD, "the request has no record batch for this partition")
    if len(records) > ATTRIBUTES_AT:
        if records[MAGIC_AT] != MAGIC:
            old = records[MAGIC_AT] < MAGIC
            error = Error.INVALID_RECORD if old else Error.CORRUPT_MESSAGE
            raise Refused(error, "only record batches of message format 2 are accepted")
        if version < 7 and records[ATTRIBUTES_AT] & CODEC_MASK == ZSTD:
            raise Refused(Error.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs a produce request of version 7 or later")
    if acks not in ACKS:
        raise Refused(Error.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {acks}")
    if partition.topic in INTERNAL_TOPICS:
        raise Refused(Error.INVALID_TOPIC_EXCEPTION, f"clients cannot write to the internal topic {partition.topic}")
    if not partition.leads:
        raise Refused(Error.NOT_LEADER_OR_FOLLOWER, "this broker does not lead the partition")
    if acks == ALL and partition.lacks_replicas():
        raise Refused(Error.NOT_ENOUGH_REPLICAS, "fewer replicas are in sync than min.insync.replicas asks for")


def refuse_all(connection: Connection, request: m.ProduceRequest, refused: Refused) -> Any:
    """Refuse all partitions of the request."""
    if request.acks == 0:
        connection.closing = "a produce request with acks=0 failed"
        return None
    rows = [
        m.ProduceResponse_TopicProduceResponse(
            topic.name, topic.topic_id, [refusal(None, part.index, refused) for part in topic.partition_data]
        )
        for topic in request.topic_data
    ]
    return m.ProduceResponse(rows)


def refusal(reached: Partition | None, index: int, refused: Refused) -> Any:
    """Return the answer for one partition that took nothing. Only one whose log was asked tells where it starts."""
    answer = m.ProduceResponse_PartitionProduceResponse(index, refused.error, -1)
    answer.error_message = refused.message
    answer.record_errors = [m.ProduceResponse_BatchIndexAndErrorMessage(*pair) for pair in refused.record_errors]
    if reached is not None and refused.error not in UNTOLD:
        answer.log_start_offset = reached.log.start_offset
    return answer


def when_settled(response: m.ProduceResponse, unsettled: list[tuple[Partition, int]], acks: int, expired: bool) -> Any:
    """Return the response when every partition has done what `acks` and flush.messages promise, or cannot do it."""
    for p, _ in unsettled:
        p.synced()  # by a compaction, it may be: what is acknowledged can be read
    if not expired and not all(p.is_settled(last_offset, acks) for p, last_offset in unsettled):
        return None
    late = [(p, error) for p, last_offset in unsettled if (error := late_error(p, last_offset, acks))]
    errors = {(name, p.index): error for p, error in late for name in (p.topic_id, p.topic)}
    for topic in response.responses:
        for part in topic.partition_responses:
            error = errors.get((topic.topic_id, part.index)) or errors.get((topic.name, part.index))
            part.error_code = error or part.error_code
    return response


def late_error(partition: Partition, last_offset: int, acks: int) -> Error:
    """Return what is wrong with an acknowledgement that was waited for, if anything."""
    if partition.log.offline is not None:
        return Error.KAFKA_STORAGE_ERROR
    if not partition.leads:
        return Error.NOT_LEADER_OR_FOLLOWER
    if not partition.is_settled(last_offset, acks):
        return Error.REQUEST_TIMED_OUT
    return Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND if acks == ALL and partition.lacks_replicas() else Error.NONE
