"""Produce of one batch to one partition, again and again: most requests are that, and a small one costs more in
messages than in work.

What stands before the records (client id, acks, topic, partition) is the head, see learned_requests.py; the answer is
the same in request after request but for three numbers. In a transaction the partition must have records of it already:
the first ones go the way of produce.py, which asks the transaction's coordinator.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any

from moldau.broker.api.produce import ATTRIBUTES_AT, MAGIC_AT, ZSTD, late_error, refusal
from moldau.broker.learned_requests import START, Ask, keep
from moldau.broker.wait import Wait
from moldau.machines.metadata.acls import TOPIC, TRANSACTIONAL_ID, WRITE
from moldau.wire import frames
from moldau.wire import messages as m
from moldau.wire.codec_read import longer
from moldau.wire.numbers import uvarint
from moldau.wire.records import MAGIC, TRANSACTIONAL
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.connection import Connection
    from moldau.broker.node import Node
    from moldau.broker.partition import Partition

PRODUCE = 0
FIRST_VERSION = 5  # whose answer has the three numbers
FIRST_FLEXIBLE = 9

LENGTH = Struct(">i")  # of the records; in flexible versions a varint of one more
# The most that a varint of one more has together with the records, by how long it is: from one byte on.
LENGTHS = tuple((1 << 7 * length) - 2 + length for length in range(1, 6))
TAGS = b"\0\0\0"  # of the partition, the topic and the request, which end a flexible one
HOLE = Struct(">qqq")  # base offset, append time and start offset, in an answer
FILLING = (-2, -3, -4)  # no name and no topic id holds these
PRODUCER = Struct(">43xqh")  # id and epoch, in a batch


@dataclass(frozen=True, slots=True, eq=False)
class Appends:
    """Requests with one batch for one partition, and the answer around its three numbers."""

    client_id: str | None
    partition: Partition
    version: int
    attributes: range  # of its low byte: codecs, in a transaction or in none
    size: int
    before: bytes
    after: bytes
    pack: Callable[..., bytes]
    asks: tuple[Ask, ...]
    acks: int
    timeout_ms: int
    key: int = field(default=PRODUCE, init=False)

    def measure(self, frame: memoryview, end: int) -> int:
        rest = len(frame) - end
        if self.version < FIRST_FLEXIBLE:
            return rest - LENGTH.size
        rest -= len(TAGS)
        return rest - 1 - bisect_left(LENGTHS, rest)

    def serve(self, node: Node, frame: memoryview, end: int, correlation_id: int) -> bytes | Wait | None:
        """Append and answer, at once or when that is settled, or None."""
        records = flexible_records(frame, end) if self.version >= FIRST_FLEXIBLE else plain_records(frame, end)
        if records is None or records[MAGIC_AT] != MAGIC or records[ATTRIBUTES_AT] not in self.attributes:
            return None
        partition = self.partition
        if self.attributes.start and not goes_on(partition, records):
            return None
        try:
            base, last, append_time, start, _ = partition.append(records, node.clock.wall_ms())
        except Refused as refused:
            return refusal_frame(self, correlation_id, refused)
        node.signal(partition)
        answer = self.pack(self.size, correlation_id, self.before, base, append_time, start, self.after)
        return answer if partition.log.high_watermark > last else self.wait(node, last, correlation_id, answer)

    def wait(self, node: Node, last: int, correlation_id: int, answer: bytes) -> bytes | Wait:
        """Give the answer when the acknowledgement is due, as produce.py does."""
        partition = self.partition

        def attempt(expired: bool) -> bytes | None:
            partition.synced()
            if not partition.is_settled(last, self.acks) and not expired:
                return None
            error = late_error(partition, last, self.acks)
            return refusal_frame(self, correlation_id, Refused(error, error.message)) if error else answer

        if partition.must_sync():
            node.replicas.flush(partition)
        deadline = node.clock.monotonic_ms() + self.timeout_ms
        return attempt(expired=False) or Wait(deadline, attempt, (partition.log,), applied=True)


def goes_on(partition: Partition, records: memoryview) -> bool:
    """Tell whether the partition has records of the batch's transaction already."""
    producer_id, epoch = PRODUCER.unpack_from(records)
    known = partition.log.producer_state.by_id.get(producer_id)
    return known is not None and known.epoch == epoch and known.txn_first_offset >= 0 and bool(known.batches)


def plain_records(frame: memoryview, end: int) -> memoryview | None:
    """Return the records after a head, if the request ends with them."""
    (size,) = LENGTH.unpack_from(frame, end)
    start = end + 4
    return frame[start:] if start + size == len(frame) else None


def flexible_records(frame: memoryview, end: int) -> memoryview | None:
    """Return the same where lengths are varints, and empty tagged fields end the request."""
    size, start = frame[end], end + 1
    if size > 127:
        more = frame[start]  # most often the last byte of the varint
        size, start = (size & 127 | more << 7, start + 1) if more < 128 else longer(frame, start, size)
    stop = start + size - 1
    return frame[start:stop] if stop + 3 == len(frame) and frame[stop:] == TAGS else None


def refusal_frame(known: Appends, correlation_id: int, refused: Refused) -> bytes:
    """Answer with a refusal. The log may have changed the batch in place, so the handler cannot judge it again."""
    answer = refusal(known.partition, known.partition.index, refused)
    return answer_frame(known.partition, known.version, correlation_id, answer)


def answer_frame(partition: Partition, version: int, correlation_id: int, answer: Any) -> bytes:
    """Return the whole response, with the answer for the only partition."""
    named: dict[str, Any] = {"topic_id": partition.topic_id} if version >= 13 else {"name": partition.topic}
    row = m.ProduceResponse_TopicProduceResponse(**named, partition_responses=[answer])
    return b"".join(frames.response_frame(PRODUCE, version, correlation_id, m.ProduceResponse([row])))


def learn(
    node: Node,
    connection: Connection,
    frame: memoryview,
    version: int,
    request: m.ProduceRequest,
    response: m.ProduceResponse,
) -> None:
    """Keep the head and the answer of a request that was served, if more like it can be served by them."""
    # A guard takes out of the request what is not allowed: only the answer tells of all that was asked.
    if version < FIRST_VERSION or not len(request.topic_data) == len(response.responses) == 1:
        return
    (topic,) = request.topic_data
    if len(topic.partition_data) != 1 or response.responses[0].partition_responses[0].error_code:
        return
    part, by_id = topic.partition_data[0], version >= 13
    partition = node.replicas.table(by_id)[topic.topic_id if by_id else topic.name][part.index]
    end = end_of_head(frame, version, len(part.records))
    if end is not None:
        keep(node, connection, frame, end, lambda: appends(connection.client_id, request, partition, version))


def end_of_head(frame: memoryview, version: int, size: int) -> int | None:
    """Return where the length of the records begins, if the request ends as `Appends` expects."""
    flexible = version >= FIRST_FLEXIBLE
    length, tail = (uvarint(size + 1), TAGS) if flexible else (LENGTH.pack(size), b"")
    stop = len(frame) - len(tail)
    start = stop - size
    end = start - len(length)
    return end if frame[stop:] == tail and frame[end:start] == length else None


def appends(client_id: str | None, request: m.ProduceRequest, partition: Partition, version: int) -> Appends:
    transactional_id = request.transactional_id
    filled = m.ProduceResponse_PartitionProduceResponse(partition.index, 0, *FILLING)
    answer = answer_frame(partition, version, 0, filled)
    before, after = answer[START.size :].split(HOLE.pack(*FILLING))
    pack = Struct(f">ii{len(before)}sqqq{len(after)}s").pack
    first, last_codec = TRANSACTIONAL if transactional_id else 0, ZSTD if version >= 7 else ZSTD - 1
    attributes = range(first, first + last_codec + 1)
    asks = ((WRITE, TOPIC, partition.topic),)
    if transactional_id:
        asks = (*asks, (WRITE, TRANSACTIONAL_ID, transactional_id))
    around = len(answer) - LENGTH.size, before, after, pack
    return Appends(client_id, partition, version, attributes, *around, asks, request.acks, request.timeout_ms)
