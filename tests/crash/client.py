"""An idempotent producer and a reader on plain sockets, which remember exactly what was promised."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field
from typing import Any

from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.records import Batch, Record, batches, build, records

PRODUCE_VERSION, FETCH_VERSION = 9, 12


class Wire:
    """One request at a time over one connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: Any, version: int) -> None:
        self.socket.sendall(frames.request_frame(request, version, 1, "crash-test"))

    def call(self, request: Any, version: int) -> Any:
        self.send(request, version)
        (size,) = struct.unpack(">i", self.read(4))
        data = memoryview(self.read(size))
        key = request.SCHEMA.key
        _, position = frames.response_header(key, version, data)
        return codec.decode(m.response_class(key), version, data, position)

    def read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            chunk = self.socket.recv(size - len(parts))
            if not chunk:
                raise ConnectionError("the broker is gone")
            parts += chunk
        return bytes(parts)

    def close(self) -> None:
        self.socket.close()


@dataclass
class Stream:
    """What was sent to one partition: numbered values, and the batch that still waits for its acknowledgement."""

    topic: str
    partition: int
    sent: int = 0
    unanswered: int = 0
    acknowledged: int = 0
    offsets: list[tuple[int, int]] = field(default_factory=list)  # (first value, base offset) of each promise

    def batch(self, count: int, producer_id: int, padding: bytes) -> bytes:
        count = self.unanswered or count
        self.unanswered = count
        items = [Record(0, 1_700_000_000_000, None, b"%d:" % (self.sent + i) + padding) for i in range(count)]
        return bytes(build(items, producer_id=producer_id, producer_epoch=0, base_sequence=self.sent % 2**31))

    def acknowledge(self, base_offset: int) -> None:
        self.offsets.append((self.sent, base_offset))
        self.sent += self.unanswered
        self.acknowledged, self.unanswered = self.sent, 0


def produce(wire: Wire, stream: Stream, count: int, producer_id: int, padding: bytes) -> None:
    """Send one batch, or again the one without an answer, and note the promise."""
    data = m.ProduceRequest_PartitionProduceData(stream.partition, stream.batch(count, producer_id, padding))
    topic = m.ProduceRequest_TopicProduceData(name=stream.topic, partition_data=[data])
    answer = wire.call(m.ProduceRequest(None, -1, 10_000, [topic]), PRODUCE_VERSION)
    part = answer.responses[0].partition_responses[0]
    assert part.error_code == 0, f"{stream.topic}-{stream.partition}: error {part.error_code}, {part.error_message}"
    stream.acknowledge(part.base_offset)


def read_all(wire: Wire, topic: str, partition: int) -> list[tuple[int, bytes]]:
    """Every (offset, value) of a partition."""
    found: list[tuple[int, bytes]] = []
    offset = 0
    while True:
        wanted = m.FetchRequest_FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [m.FetchRequest_FetchTopic(topic=topic, partitions=[wanted])]
        answer = wire.call(m.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 22, topics=topics), FETCH_VERSION)
        part = answer.responses[0].partitions[0]
        assert part.error_code == 0, f"{topic}-{partition}: fetch error {part.error_code}"
        for batch in whole_batches(part.records):
            batch.verify()
            found += [(r.offset, bytes(r.value or b"")) for r in records(batch) if r.offset >= offset]
            offset = batch.next_offset
        if offset >= part.high_watermark:
            return found


def whole_batches(data: memoryview) -> list[Batch]:
    """The batches that came complete; a fetch may cut the last one."""
    end = position = 0
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        position += 12 + length
        if position > len(data):
            break
        end = position
    return list(batches(data[:end]))
