"""One trial: a broker that is killed again and again, and a producer that goes on where it was."""

from __future__ import annotations

import random
import time
from typing import Any, Self

from moldau import testing
from moldau.wire import messages as m
from tests.crash.client import Stream, Wire, produce, read_all

TOPICS = {
    "plain": {},
    "small-segments": {"segment.bytes": "1048576"},
    "synced": {"flush.messages": "1"},
}
PARTITIONS = 2
LOAD_S = (0.02, 0.4)
BATCH = (1, 40)


class Trial:
    """The broker, its streams, and the check after each crash."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.streams = [Stream(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
        self.producer_id = -1
        self.broker: Any = None

    def __enter__(self) -> Self:
        self.context = testing.broker()
        self.broker = self.context.__enter__()
        for topic, configs in TOPICS.items():
            self.broker.create_topic(topic, partitions=PARTITIONS, config=configs)
        wire = Wire(self.broker.bootstrap_servers)
        self.producer_id = wire.call(m.InitProducerIdRequest(None, 60_000), 4).producer_id
        wire.close()
        return self

    def __exit__(self, *error: object) -> None:
        self.context.__exit__(*error)

    @property
    def promised(self) -> int:
        return sum(stream.acknowledged for stream in self.streams)

    def round(self) -> None:
        """Load, kill -9 in the middle of it, start again, and look."""
        self.load_and_kill()
        self.broker.restart()
        wire = Wire(self.broker.bootstrap_servers)
        for stream in self.streams:
            self.check(wire, stream)
        wire.close()

    def load_and_kill(self) -> None:
        """Produce until the chosen moment; the broker is killed while a request is under way."""
        wire = Wire(self.broker.bootstrap_servers)
        until = time.monotonic() + self.random.uniform(*LOAD_S)
        while time.monotonic() < until:
            stream = self.random.choice(self.streams)
            padding = b"x" * self.random.randrange(0, 2000)
            produce(wire, stream, self.random.randint(*BATCH), self.producer_id, padding)
        self.kill_under_way(wire)

    def kill_under_way(self, wire: Wire) -> None:
        """Leave requests unanswered: some are written, some are not, and nobody was told."""
        for stream in self.random.sample(self.streams, 3):
            padding = b"y" * self.random.randrange(0, 200_000)
            data = m.ProduceRequest_PartitionProduceData(stream.partition, stream.batch(5, self.producer_id, padding))
            topic = m.ProduceRequest_TopicProduceData(name=stream.topic, partition_data=[data])
            wire.send(m.ProduceRequest(None, -1, 10_000, [topic]), 9)
        time.sleep(self.random.choice((0, 0, 0.001, 0.005)))
        self.broker.kill()
        wire.close()

    def check(self, wire: Wire, stream: Stream) -> None:
        """All promises are kept; then the unanswered batch is sent again, and must not be doubled."""
        before = read_all(wire, stream.topic, stream.partition)
        self.compare(stream, before, at_most=stream.sent + stream.unanswered)
        if stream.unanswered:
            produce(wire, stream, 0, self.producer_id, b"again")
            self.compare(stream, read_all(wire, stream.topic, stream.partition), at_most=stream.sent)

    def compare(self, stream: Stream, found: list[tuple[int, bytes]], at_most: int) -> None:
        where = f"{stream.topic}-{stream.partition}"
        numbers = [int(value.partition(b":")[0]) for _, value in found]
        assert [offset for offset, _ in found] == list(range(len(found))), f"{where}: offsets have gaps"
        assert numbers == list(range(len(numbers))), f"{where}: records are missing, doubled or out of order"
        assert stream.acknowledged <= len(numbers) <= at_most, (
            f"{where}: {stream.acknowledged} were promised, {len(numbers)} are there, at most {at_most} were sent"
        )
        for number, base_offset in stream.offsets:
            assert numbers[base_offset] == number, f"{where}: value {number} was promised at offset {base_offset}"
