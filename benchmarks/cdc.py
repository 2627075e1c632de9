"""`python -m benchmarks.cdc`: changes of PostgreSQL, captured by Debezium in a worker of Apache Connect, by our own
connector, and by Debezium's jar in our worker. Writes docs/connect/benchmarks-cdc.md."""

import contextlib
import itertools
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import typer
from tests import needs
from tests.needs import DEBEZIUM_PLUGINS, KAFKA_VERSION
from tests.spark.postgres import postgres

from benchmarks import topics
from benchmarks.brokers import Broker
from benchmarks.connect import JSON, end, reader, running, timed
from benchmarks.connect_page import Keep, Only, Page, Row, Runs, Sample, Scale
from benchmarks.connect_workers import Worker, java, python
from benchmarks.places import CACHE, PORT, PROJECT, BenchError
from benchmarks.table import Metric

ROWS, OF_TRANSACTION = 100_000, 100
NUMBERS = itertools.count(1)
INSERT = "INSERT INTO {} SELECT n, 'a word of row ' || n, n / 7.0, now() FROM generate_series({}, {}) n"


@dataclass(frozen=True)
class Place:
    """Where rows are measured: a broker, and a database."""

    broker: Broker
    home: Path
    dsn: str
    scale: float

    @property
    def rows(self) -> int:
        return int(ROWS * self.scale)

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as line:
            for one in statements:
                line.execute(one)


@dataclass(frozen=True)
class Capture:
    """A table of its own, and the connector that captures it."""

    place: Place
    worker: Worker
    name: str

    def insert(self, first: int, last: int) -> None:
        self.place.execute(INSERT.format(self.name, first, last))

    @contextlib.contextmanager
    def running(self, **more: str) -> Iterator[None]:
        given = dict(pair.split("=") for pair in self.place.dsn.split())
        config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": given["port"],
            "database.user": given["user"],
            "database.password": "-",
            "database.dbname": given["dbname"],
            "topic.prefix": "bench",
            "table.include.list": f"public.{self.name}",
            "plugin.name": "pgoutput",
            "slot.name": self.name,
            "publication.name": self.name,
            "publication.autocreate.mode": "filtered",
            "key.converter": JSON,
            "value.converter": JSON,
            **{name.replace("_", "."): text for name, text in more.items()},
        }
        with self.worker.connector(self.name, config):
            yield

    @property
    def topic(self) -> str:
        return f"bench.public.{self.name}"

    def is_streaming(self) -> bool:
        with psycopg.connect(self.place.dsn) as line:
            found = line.execute(
                "SELECT active FROM pg_replication_slots WHERE slot_name = %s", (self.name,)
            ).fetchone()
        return bool(found and found[0])


@contextlib.contextmanager
def capture(place: Place, worker: Worker) -> Iterator[Capture]:
    name = f"t{next(NUMBERS)}"
    made = Capture(place, worker, name)
    place.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, word TEXT, amount NUMERIC(12, 2), at TIMESTAMPTZ)")
    topics.create(place.broker, made.topic, 1)
    try:
        yield made
        worker.wait(lambda: not made.is_streaming(), "end of its connection", 0.05)
        place.execute(f"SELECT pg_drop_replication_slot('{name}')", f"DROP PUBLICATION {name}", f"DROP TABLE {name}")
    finally:
        topics.delete(place.broker, made.topic)


def rate(worker: Worker, records: int, begin: Callable[[], Any], is_done: Callable[[], bool]) -> Sample:
    cpu, began = worker.cpu_s(), time.monotonic()
    begin()
    worker.wait(is_done, "end of the run", 0.01)
    seconds, cpu = time.monotonic() - began, worker.cpu_s() - cpu
    return {"per_second": records / seconds, "cpu": cpu / records * 1e6, "memory": worker.memory_mb()}


def snapshot(place: Place, worker: Worker) -> Sample:
    """A table that is there, from the request that creates the connector until all of it is in the topic."""
    with capture(place, worker) as one, contextlib.ExitStack() as stack:
        one.insert(1, place.rows)
        there = end(place.broker, one.topic)
        found = rate(worker, place.rows, lambda: stack.enter_context(one.running()), lambda: there() >= place.rows)
        worker.wait(one.is_streaming, "end of the snapshot", 0.05)
        return found


def stream(place: Place, worker: Worker) -> Sample:
    """Changes that are in the database's log, in small transactions: the connector rests until it is resumed."""
    with capture(place, worker) as one, one.running(snapshot_mode="no_data"):
        worker.await_running(one.name)
        worker.wait(one.is_streaming, "stream", 0.05)
        worker.ask("PUT", f"/connectors/{one.name}/pause")
        time.sleep(2.0)
        for first in range(1, place.rows, OF_TRANSACTION):
            one.insert(first, first + OF_TRANSACTION - 1)
        there = end(place.broker, one.topic)
        resume = lambda: worker.ask("PUT", f"/connectors/{one.name}/resume")  # noqa: E731
        return rate(worker, place.rows, resume, lambda: there() >= place.rows)


def latency(place: Place, worker: Worker) -> Sample:
    """Rows that are committed one by one, until a consumer has them."""
    with capture(place, worker) as one, one.running(snapshot_mode="no_data"):
        worker.await_running(one.name)
        worker.wait(one.is_streaming, "stream", 0.05)
        changed = lambda value: json.loads(value)["payload"]["after"]["id"]  # noqa: E731
        with reader(place.broker, one.topic, changed) as read, psycopg.connect(place.dsn, autocommit=True) as line:
            return timed(lambda number: line.execute(INSERT.format(one.name, number, number)), read)


def figures(at_least: float, aim: float | None = None) -> tuple[Metric, ...]:
    return (
        Metric("per_second", "rows", "k/s", 1e-3, at_least=at_least, aim=aim),
        Metric("cpu", "worker CPU", "s a million"),
        Metric("memory", "memory after it", "MB", at_most=1.0),
    )


LATENCY = (Metric("p50", "p50", "ms", 1e3, limit=150.0), Metric("longest", "longest", "ms", 1e3))
WORKLOADS = (
    Row("snapshot", snapshot, figures(1.0), True),
    Row("stream", stream, figures(0.7, 1.0), True),
    Row("commit to topic", latency, LATENCY),
    Row("Debezium in our worker: snapshot", snapshot, figures(0.8)[:2], True, ("kafka", "hosted")),
    Row("Debezium in our worker: stream", stream, figures(0.8)[:2], True, ("kafka", "hosted")),
)
METHOD = """\
`make bench-connect` makes this page. A table of PostgreSQL is captured by Debezium {debezium} in a worker of Apache
Connect {kafka} on the left; on the right by our own connector, and by Debezium's jar in our worker. All workers have
`exactly.once.source.support=enabled`, JsonConverter with schemas and the rest of their defaults, and work on one broker
of Moldau's. Database, broker, the workers and the benchmark share the cores of one machine; only one worker has
something to do at a time. Figures are medians of the runs, with their range.

- A row has a number, a text, a decimal and a moment; there are {rows:,} of them.
- A snapshot counts from the request that creates the connector until all rows are in the topic.
- A stream counts from the request that resumes a connector: {rows:,} rows were inserted while it was paused, {each} in
  a transaction. What a connector has read ahead by then is in its buffer, of 8,192 changes at most.
- A first run of these rows is not counted. CPU and memory are those of the worker with its children; memory is the
  proportional set size.
- The load of the machine when this began was LOAD.
"""


@contextlib.contextmanager
def place(scale: float) -> Iterator[tuple[Place, list[Worker]]]:
    found = needs.find("debezium-postgres-jars")
    if found.path is None:
        raise BenchError(f"There is no Debezium here ({found.reason}).")
    CACHE.mkdir(parents=True, exist_ok=True)
    port = str(PORT + 3)
    with tempfile.TemporaryDirectory(prefix="cdc-", dir=CACHE) as name, contextlib.ExitStack() as closing:
        home = Path(name)
        dsn = closing.enter_context(
            postgres(wal_level="logical", listen_addresses="127.0.0.1", port=port, max_replication_slots="20")
        )
        kinds = (("kafka", java, found.path), ("moldau", python, None), ("hosted", python, found.path))
        broker, workers = closing.enter_context(running(home, *kinds))
        yield Place(broker, home, f"{dsn} port={port}", scale), workers


FACTS = {"debezium": DEBEZIUM_PLUGINS["postgres"], "kafka": KAFKA_VERSION, "rows": ROWS, "each": OF_TRANSACTION}
CDC = Page(
    PROJECT / "docs" / "connect" / "benchmarks-cdc.md",
    "changes of PostgreSQL",
    WORKLOADS,
    place,
    METHOD.format(**FACTS),
)


def main(runs: Runs = 3, scale: Scale = 1.0, only: Only = None, keep: Keep = True) -> None:
    """Measure the capture of changes beside Debezium."""
    CDC.make(runs, scale, only, keep)


if __name__ == "__main__":
    typer.run(main)
