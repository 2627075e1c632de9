"""`moldau perf`: measures the speed of a cluster as a producer and a consumer see it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from moldau.admin import offsets, topics
from moldau.admin.mistakes import Mistake
from moldau.cli.commands import complete_topics, noun
from moldau.cli.meter import Meter, measured
from moldau.cli.options import argument, option
from moldau.cli.produce import Codec
from moldau.cli.session import Session
from moldau.client import Client, ClientError, Error, Fetcher, Record, Sender, Sent, build, records
from moldau.records.reading import Reader
from moldau.wire.compression import Compression
from moldau.wire.records import build_encoded
from moldau.wire.records.bulk import encode_values

cli, verb = noun()

TOPIC = "moldau-perf"
MOST_BATCH = 1_000_000
SLICE_S = 0.01  # how often records are sent if there is a rate
LOST_AFTER_S = 30.0

Name = Annotated[
    str,
    typer.Argument(
        metavar="[TOPIC]",
        help="The topic; if it does not exist, it is created, and deleted afterwards.",
        autocompletion=complete_topics,
    ),
]
Size = Annotated[int, typer.Option("--size", min=1, max=10_000_000, help="Size of each value, in bytes.")]
Acks = Annotated[
    int, typer.Option("--acks", min=-1, max=1, help="Acknowledgements to wait for; -1 means all replicas in sync.")
]


@verb(
    "produce",
    "moldau perf produce",
    "moldau perf produce orders --records 100000 --size 1000 --compression lz4",
    "moldau perf produce --rate 10000 --records 50000",
)
def produce(
    session: Session,
    topic: Name = TOPIC,
    count: int = option("--records -n", "Number of records.", 1_000_000, min=1),
    size: Size = 100,
    rate: int | None = option("--rate", "Records a second; without it, as many as possible.", min=1),
    batch_bytes: int = option("--batch-bytes", "Size of a batch.", 100_000, min=1, max=MOST_BATCH),
    compression: Codec = option("--compression -z", "Compression of batches.", "none"),
    acks: Acks = -1,
    partitions: int = option("--partitions", "Partitions of a topic that is created.", 1, min=1),
) -> None:
    """Write records of random bytes, and report rates and the time until batches are acknowledged."""
    codec = Compression[compression.upper()]
    with topic_for(session.client, topic, partitions) as parts, measured("produce") as meter:
        _produce(session.client, meter, topic, parts, count, size, rate, batch_bytes, codec, acks)
    _report(session, meter)


def _produce(
    client: Client,
    meter: Meter,
    topic: str,
    partitions: int,
    count: int,
    size: int,
    rate: int | None,
    batch_bytes: int,
    codec: Compression,
    acks: int,
) -> None:
    most = max(1, batch_bytes // (size + 10))
    if rate is not None:
        most = min(most, max(1, round(rate * SLICE_S)))
    values = [os.urandom(size) for _ in range(min(most, 1000))]
    sender, waiting, sent, number = Sender(client, acks=acks), deque[tuple[Sent, float, int]](), 0, 0
    begin = time.monotonic()
    while sent < count:
        if rate is not None and (early := begin + sent / rate - time.monotonic()) > 0:
            time.sleep(early)
        n = min(most, count - sent)
        batch = _batch([values[at % len(values)] for at in range(n)], codec)
        waiting.append((sender.send(topic, number % partitions, batch), time.perf_counter(), n))
        sent, number = sent + n, number + 1
        _settle(meter, waiting, size)
    while waiting:
        sender.flush()
        _settle(meter, waiting, size)
    sender.close()


def _batch(values: list[bytes], codec: Compression) -> bytearray:
    return build_encoded(encode_values(values), len(values), time.time_ns() // 1_000_000, codec)


def _settle(meter: Meter, waiting: deque[tuple[Sent, float, int]], size: int) -> None:
    """Count the batches that have been acknowledged."""
    now = time.perf_counter()
    while waiting and waiting[0][0].base_offset is not None:
        _, at, n = waiting.popleft()
        meter.latencies_ms.append((now - at) * 1000)
        meter.add(n, n * size)


@verb("consume", "moldau perf consume orders", "moldau perf consume orders --records 1000000")
def consume(
    session: Session,
    topic: str = argument("The topic to read.", metavar="TOPIC", autocompletion=complete_topics),
    count: int | None = option("--records -n", "Stop after this many records.", min=1),
) -> None:
    """Read a topic from its start to its end, decode every record, and report rates."""
    places = topics.partitions(session.client, [topic])
    begin = offsets.one_time(session.client, places, offsets.EARLIEST)
    with measured("consume") as meter:
        for chunks in Reader(session.client, begin, to_end=True):
            for chunk in chunks:
                held = sum(len(record[2] or b"") + len(record[3] or b"") for record in chunk.records)
                meter.add(len(chunk.records), held)
            if count is not None and meter.records >= count:
                break
    if not meter.records:
        raise Mistake(f"{topic} is empty: `moldau perf produce {topic}` writes something to read.")
    _report(session, meter)


@verb("latency", "moldau perf latency", "moldau perf latency --rate 1000 --records 10000 --size 1000")
def latency(
    session: Session,
    topic: Name = TOPIC,
    count: int = option("--records -n", "Number of records.", 1000, min=1),
    size: Size = 100,
    rate: int = option("--rate", "Records a second.", 200, min=1, max=100_000),
    acks: Acks = -1,
) -> None:
    """Measure how long records take from a producer to a consumer that waits for them."""
    with topic_for(session.client, topic, 1), measured("latency") as meter:
        start = offsets.one_time(session.client, [(topic, 0)], offsets.LATEST)[topic, 0]
        reader = Receiver(session.client.sibling(), meter, topic, start, count, size)
        reader.start()
        sender = Sender(session.client, acks=acks)
        begin = time.monotonic()
        for number in range(count):
            if (early := begin + number / rate - time.monotonic()) > 0:
                time.sleep(early)
            value = time.perf_counter_ns().to_bytes(8, "big").ljust(size, b"x")
            sender.send(topic, 0, build([Record(0, time.time_ns() // 1_000_000, None, value)]))
        sender.flush()
        sender.close()
        reader.finish()
    _report(session, meter)


class Receiver(threading.Thread):
    """A thread that reads records, which hold the time when they were sent."""

    def __init__(self, client: Client, meter: Meter, topic: str, start: int, count: int, size: int) -> None:
        super().__init__(daemon=True)
        self.client, self.meter, self.place = client, meter, (topic, 0)
        self.offset, self.end, self.size = start, start + count, size
        self.failure: ClientError | None = None

    def run(self) -> None:
        fetcher = Fetcher(self.client)
        try:
            while self.offset < self.end:
                fetched = fetcher.fetch({self.place: self.offset}, max_wait_ms=500, min_bytes=1)[self.place]
                now = time.perf_counter_ns()
                for batch in fetched.batches():
                    for record in records(batch):
                        self._take(record, now)
                    self.offset = batch.next_offset
        except ClientError as error:
            self.failure = error

    def _take(self, record: Record, now: int) -> None:
        value = record.value or b""
        if record.offset >= self.offset and len(value) >= 8:
            self.meter.latencies_ms.append((now - int.from_bytes(value[:8], "big")) / 1e6)
            self.meter.add(1, len(value))

    def finish(self) -> None:
        """Wait for the last record; Mistake if some do not arrive."""
        self.join(LOST_AFTER_S)
        self.client.close()
        if self.failure is not None:
            raise self.failure
        if self.offset < self.end:
            raise Mistake(f"{self.end - self.offset} records did not arrive within {LOST_AFTER_S:.0f} s.")


@contextmanager
def topic_for(client: Client, name: str, partitions: int) -> Iterator[int]:
    """Yield the number of partitions; a missing topic is created, and deleted afterwards."""
    try:
        created, count = False, len(topics.described(client, [name])[0].partitions)
    except ClientError as error:
        if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        topics.create(client, [topics.NewTopic(name, partitions)])
        created, count = True, partitions
    try:
        yield count
    finally:
        if created:
            topics.delete(client, [name])


def _report(session: Session, meter: Meter) -> None:
    if session.for_people:
        meter.print_summary()
    else:
        session.show(meter.facts())
