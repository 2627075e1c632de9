"""Tasks and drivers of the sink without Spark: each can be stopped where it likes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from moldau.client import Client, Fetcher, Record, TransactionalProducer, end, records
from moldau.spark.sink.marker_topic import Ledger
from moldau.spark.sink.markers import Decision
from moldau.spark.sink.options import SinkOptions
from moldau.spark.sink.place import Outcome, Place
from moldau.spark.sink.task import run
from moldau.spark.sink.writers import abort, commit


def frame(values: Sequence[str | None], **columns: Sequence[object]) -> list[pa.RecordBatch]:
    made = {"key": pa.array(values, pa.string()), "value": pa.array(values, pa.string())}
    made |= {name: pa.array(column) for name, column in columns.items()}
    return [pa.RecordBatch.from_pydict(made)]


@dataclass
class Query:
    """A query whose batches are rows of each task."""

    bootstrap: str
    topic: str
    id: str = "query"
    options: dict[str, str] = field(default_factory=dict)
    run: str = "first"

    @property
    def sink(self) -> SinkOptions:
        given = {"kafka.bootstrap.servers": self.bootstrap, "topic": self.topic, **self.options}
        return SinkOptions.of(given)

    @property
    def application(self) -> str:
        return self.sink.application or self.id

    def task(self, batch: int, task: int, values: Sequence[str]) -> Outcome:
        return run(self.sink, Place(self.application, self.id, batch, task, self.id + self.run), frame(values))

    def tasks(self, batch: int, rows: Sequence[Sequence[str]]) -> list[Outcome]:
        return [self.task(batch, task, values) for task, values in enumerate(rows)]

    def whole(self, batch: int, rows: Sequence[Sequence[str]]) -> None:
        """As Spark does it: what fails is aborted."""
        done: list[Outcome] = []
        try:
            done += (self.task(batch, task, values) for task, values in enumerate(rows))
            commit(self.sink, done)
        except BaseException:
            abort(self.sink, done)
            raise

    def half(self, client: Client, done: Sequence[Outcome], ended: Sequence[int]) -> None:
        """A driver that dies after it has decided, and committed some."""
        open_ones = [one.transaction for one in done]
        rows = tuple((one.producer_id, one.epoch, one.version) if one else None for one in open_ones)
        Ledger(client, self.sink.markers, self.application).decide(Decision(self.id, done[0].place.batch, rows))
        for task in ended:
            if (transaction := open_ones[task]) is not None:
                end(client, transaction, commit=True)

    def lose(self, client: Client, done: Sequence[Outcome], tasks: Sequence[int]) -> None:
        """What the broker does when nobody has come for too long: what is open is aborted."""
        for task in tasks:
            TransactionalProducer(client, done[task].place.transactional_id).close()


def committed(client: Client, topic: str) -> Counter[str]:
    """How often each value is in a topic, for readers of committed records."""
    return Counter((record.value or b"").decode() for _, record in stored(client, topic))


def stored(client: Client, topic: str) -> list[tuple[int, Record]]:
    """Partition and record of all that is committed. All of the topic must become readable: nothing is left open."""
    found: list[tuple[int, Record]] = []
    for partition in client.topic(topic).partitions:
        place, at = (topic, partition), 0
        fetcher, deadline = Fetcher(client, isolation_level="read_committed"), time.monotonic() + 60
        while True:
            part = fetcher.fetch({place: at}, max_wait_ms=100)[place]
            assert not part.error
            for batch in part.committed():
                found += ((partition, record) for record in records(batch))
            at = max([at, *(batch.next_offset for batch in part.batches())])
            if at >= part.high_watermark:
                break
            assert time.monotonic() < deadline, f"a transaction is open in {topic}-{partition}"
    return found
