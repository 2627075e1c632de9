"""Produce of one batch to one partition: most requests are that, and a small one costs more in messages than in work.

The request's fields are read where they lie and the answer is packed directly, which halves the cost of a request
with one record. Whatever is unusual returns None before the log is asked, and goes the way of produce.py. A test
compares the answers of both ways byte for byte.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any

from moldau.broker.admission import is_transactional
from moldau.broker.api.produce import check, refusal
from moldau.log.config import FOREVER
from moldau.wire import frames
from moldau.wire import messages as m
from moldau.wire.codec_read import uvarint
from moldau.wire.errors import WireError
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

PRODUCE = 0
Parsed = tuple[int, memoryview, int, memoryview]  # acks, the topic as it stands in the request, partition, records

# v5-7: transactional id (null), acks, time-out, topics, length of the name; partitions, index, length of the records.
PLAIN_HEAD = Struct(">hhiih").unpack_from
PLAIN_PARTITION = Struct(">iii").unpack_from
# v9-13: the same with compact lengths; the topic's name or id follows the first.
FLEXIBLE_HEAD = Struct(">BhiB").unpack_from
FLEXIBLE_PARTITION = Struct(">Bi").unpack_from
TAGS = b"\0\0\0"  # of the partition, the topic and the request

# Answers: length, correlation id, (tags,) topics, then the topic, then the partition, throttle time (, tags).
PLAIN_ANSWER = Struct(">iiih"), Struct(">iihqqqi")
FLEXIBLE_ANSWER = Struct(">iixB"), Struct(">BihqqqBBxxix")


def produce_one(node: Node, frame: memoryview, position: int, version: int, correlation_id: int) -> bytes | None:
    """Append and answer, or None."""
    try:
        parsed = parse_flexible(frame, position, version) if version >= 9 else parse_plain(frame, position, version)
        if parsed is None:
            return None
        acks, topic, index, records = parsed
        if version >= 13:
            partitions: Any = node.replicas.by_id.get(bytes(topic))
        else:
            partitions = node.replicas.by_name.get(str(topic, "utf-8"))
        partition = partitions.get(index) if partitions else None
        if partition is None or partition.log.config.flush_messages != FOREVER or is_transactional(records):
            return None
        check(partition, records, acks, version)
    except (Refused, WireError, StructError, IndexError, UnicodeDecodeError):
        return None
    try:
        base, _, append_time, start, _ = partition.append(records, node.clock.wall_ms())
    except Refused as refused:
        return refusal_frame(partition, index, version, correlation_id, refused)
    node.signal(partition)
    if version >= 9:
        head, tail = FLEXIBLE_ANSWER
        name = bytes(topic) if version >= 13 else bytes((len(topic) + 1,)) + topic
        size = head.size + len(name) + tail.size - 4
        return head.pack(size, correlation_id, 2) + name + tail.pack(2, index, 0, base, append_time, start, 1, 0, 0)
    head, tail = PLAIN_ANSWER
    size = head.size + len(topic) + tail.size - 4
    return head.pack(size, correlation_id, 1, len(topic)) + topic + tail.pack(1, index, 0, base, append_time, start, 0)


def refusal_frame(partition: Any, index: int, version: int, correlation_id: int, refused: Refused) -> bytes:
    """The log has refused the batch, and may have changed it in place: the long way could not judge it any more."""
    named = {"topic_id": partition.topic_id} if version >= 13 else {"name": partition.topic}
    row = m.ProduceResponse_TopicProduceResponse(**named, partition_responses=[refusal(partition, index, refused)])
    return b"".join(frames.response_frame(PRODUCE, version, correlation_id, m.ProduceResponse([row])))


def parse_plain(frame: memoryview, position: int, version: int) -> Parsed | None:
    transactional, acks, _, topics, length = PLAIN_HEAD(frame, position)
    if transactional != -1 or topics != 1 or acks == 0 or not 5 <= version <= 7:
        return None
    start = position + 14
    stop = start + length
    partitions, index, size = PLAIN_PARTITION(frame, stop)
    if partitions != 1 or length <= 0 or stop + 12 + size != len(frame):
        return None
    return acks, frame[start:stop], index, frame[stop + 12 :]


def parse_flexible(frame: memoryview, position: int, version: int) -> Parsed | None:
    transactional, acks, _, topics = FLEXIBLE_HEAD(frame, position)
    if transactional or topics != 2 or acks == 0:
        return None
    start = position + 8
    if version >= 13:
        stop = start + 16
    else:
        start += 1
        stop = start + frame[start - 1] - 1
        if not start < stop < start + 127:
            return None
    partitions, index = FLEXIBLE_PARTITION(frame, stop)
    size, at = uvarint(frame, stop + 5)
    end = at + size - 1
    if partitions != 2 or end + 3 != len(frame) or frame[end:] != TAGS:
        return None
    return acks, frame[start:stop], index, frame[at:end]
