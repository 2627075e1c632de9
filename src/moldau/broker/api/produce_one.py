"""Produce of one batch to one partition, again and again: most requests are that, and a small one costs more in
messages than in work.

All that stands before the records (client id, acks, topic, partition) is the same in request after request, and so is
the answer but for three numbers. So once produce.py has served such a request, `learn` keeps its head and its answer;
a request that begins with the same bytes is served by `produce_one` without being decoded, for half of the cost.
What was learnt is forgotten whenever the metadata changes. Whatever is unusual returns None before the log is asked,
and goes the way of produce.py. A test compares the answers of both ways byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any

from moldau.broker.api.produce import ATTRIBUTES_AT, MAGIC_AT, ZSTD, refusal
from moldau.log.config import FOREVER
from moldau.wire import codec_write, frames
from moldau.wire import messages as m
from moldau.wire.codec_read import longer
from moldau.wire.errors import WireError
from moldau.wire.records import MAGIC
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.connection import Connection
    from moldau.broker.node import Node
    from moldau.broker.partition import Partition

PRODUCE = 0
FIRST_VERSION = 5  # whose answer has the three numbers
FIRST_FLEXIBLE = 9
HEAD_START = 8  # behind key, version and correlation id
HEADS = 4096  # that are kept, for each version
HEAD_ENDS = 32  # that are tried, for each connection: one for each length of a topic's name

START = Struct(">ii")  # key and version, correlation id
LENGTH = Struct(">i")  # of the records; in flexible versions a varint of one more
TAGS = b"\0\0\0"  # of the partition, the topic and the request, which end a flexible one
HOLE = Struct(">qqq")  # base offset, append time and start offset, in an answer
FILLING = (-2, -3, -4)  # no name and no topic id holds these


@dataclass(frozen=True, slots=True)
class Known:
    """What a head means, and the answer around its three numbers."""

    client_id: str | None
    partition: Partition
    index: int
    version: int
    last_codec: int
    size: int
    before: bytes
    after: bytes
    pack: Callable[..., bytes]


def produce_one(node: Node, connection: Connection, frame: memoryview) -> bytes | None:
    """Append and answer, or None."""
    try:
        api, correlation_id = START.unpack_from(frame)
        heads = node.produce_heads.get(api)
        if heads is None:
            return None
        for end in connection.head_ends:
            known = heads.get(frame[HEAD_START:end].tobytes())
            if known is not None:
                break
        else:
            return None
        records = flexible_records(frame, end) if known.version >= FIRST_FLEXIBLE else plain_records(frame, end)
        if records is None or records[MAGIC_AT] != MAGIC or records[ATTRIBUTES_AT] > known.last_codec:
            return None
    except (StructError, IndexError, WireError):
        return None
    connection.client_id = known.client_id
    partition = known.partition
    try:
        base, _, append_time, start, _ = partition.append(records, node.clock.wall_ms())
    except Refused as refused:
        return refusal_frame(known, correlation_id, refused)
    node.signal(partition)
    return known.pack(known.size, correlation_id, known.before, base, append_time, start, known.after)


def plain_records(frame: memoryview, end: int) -> memoryview | None:
    """The records behind a head, if the request ends with them."""
    (size,) = LENGTH.unpack_from(frame, end)
    start = end + 4
    return frame[start:] if start + size == len(frame) else None


def flexible_records(frame: memoryview, end: int) -> memoryview | None:
    """The same where lengths are varints, and empty tagged fields end the request."""
    size, start = frame[end], end + 1
    if size > 127:
        more = frame[start]  # most often the last byte of the varint
        size, start = (size & 127 | more << 7, start + 1) if more < 128 else longer(frame, start, size)
    stop = start + size - 1
    return frame[start:stop] if stop + 3 == len(frame) and frame[stop:] == TAGS else None


def refusal_frame(known: Known, correlation_id: int, refused: Refused) -> bytes:
    """The log has refused the batch, and may have changed it in place: the long way could not judge it any more."""
    answer = refusal(known.partition, known.index, refused)
    return answer_frame(known.partition, known.version, correlation_id, answer)


def answer_frame(partition: Partition, version: int, correlation_id: int, answer: Any) -> bytes:
    """The whole response, with the answer for the only partition."""
    named: dict[str, Any] = {"topic_id": partition.topic_id} if version >= 13 else {"name": partition.topic}
    row = m.ProduceResponse_TopicProduceResponse(**named, partition_responses=[answer])
    return b"".join(frames.response_frame(PRODUCE, version, correlation_id, m.ProduceResponse([row])))


def learn(node: Node, connection: Connection, frame: memoryview, version: int, request: Any, response: Any) -> None:
    """Keep the head and the answer of a request that was served, if it is one for `produce_one`."""
    if version < FIRST_VERSION or len(request.topic_data) != 1 or request.transactional_id is not None:
        return
    (topic,) = request.topic_data
    if len(topic.partition_data) != 1 or response.responses[0].partition_responses[0].error_code:
        return
    known = node.replicas.by_id[topic.topic_id] if version >= 13 else node.replicas.by_name[topic.name]
    part = topic.partition_data[0]
    partition = known[part.index]
    end = end_of_head(frame, version, len(part.records))
    if end is None or partition.log.config.flush_messages != FOREVER:
        return
    heads = node.produce_heads.setdefault(START.unpack_from(frame)[0], {})
    head = frame[HEAD_START:end].tobytes()
    if head not in heads:
        if len(heads) >= HEADS:
            heads.clear()
        heads[head] = what_is_known(connection.client_id, partition, version)
    if end not in connection.head_ends:
        connection.head_ends = (end, *connection.head_ends)[:HEAD_ENDS]


def end_of_head(frame: memoryview, version: int, size: int) -> int | None:
    """Where the length of the records begins, if the request ends as `produce_one` expects."""
    flexible = version >= FIRST_FLEXIBLE
    length, tail = (codec_write.uvarint(size + 1), TAGS) if flexible else (LENGTH.pack(size), b"")
    stop = len(frame) - len(tail)
    start = stop - size
    end = start - len(length)
    return end if frame[stop:] == tail and frame[end:start] == length else None


def what_is_known(client_id: str | None, partition: Partition, version: int) -> Known:
    filled = m.ProduceResponse_PartitionProduceResponse(partition.index, 0, *FILLING)
    answer = answer_frame(partition, version, 0, filled)
    before, after = answer[START.size :].split(HOLE.pack(*FILLING))
    pack = Struct(f">ii{len(before)}sqqq{len(after)}s").pack
    last_codec = ZSTD if version >= 7 else ZSTD - 1
    size = len(answer) - LENGTH.size
    return Known(client_id, partition, partition.index, version, last_codec, size, before, after, pack)
