"""`python -m benchmarks.sql_spark`: persistent queries on Spark beside the same in streams and in Java's Kafka Streams;
many of them at once; and how soon a query has its first row. Writes docs/benchmarks-sql.md.

Figures are kept between runs, so that they can be measured one at a time: `--workload group --contender SQL`.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated

import typer
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console

from benchmarks import sql_page
from benchmarks.brokers import whole_cpu_seconds
from benchmarks.places import BenchError
from benchmarks.report import memory_mb
from benchmarks.sql_page import DSL, JAVA, RATES, SPARK, SQL
from benchmarks.streams import (
    AGELESS,
    KEYS,
    LOG,
    PARTITIONS,
    Contender,
    Kept,
    Progress,
    Running,
    fill,
    java,
    launched,
    moldau,
    started,
    throughput,
)
from moldau.admin import topics
from moldau.client import Client
from moldau.testing import broker
from moldau.testing.sql import Ksql, sql_server

PAYS = (
    "CREATE STREAM pays (card STRING KEY, amount INT, shop STRING, currency STRING, item STRING) "
    "WITH (kafka_topic='pays', value_format='JSON');"
)
CARDS = (
    "CREATE TABLE cards (card STRING PRIMARY KEY, town STRING, owner STRING) "
    "WITH (kafka_topic='cards', value_format='JSON');"
)
OUT = "WITH (kafka_topic='out', value_format='JSON')"
QUERIES = {
    "filter": f"CREATE STREAM made {OUT} AS SELECT card, UCASE(shop) AS shop, amount * 2 AS twice FROM pays "
    "WHERE amount > 50;",
    "group": f"CREATE TABLE made {OUT} AS SELECT card, COUNT(*) AS n, SUM(amount) AS total FROM pays GROUP BY card;",
    "window": f"CREATE TABLE made {OUT} AS SELECT card, COUNT(*) AS n FROM pays "
    "WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 1 MINUTE) GROUP BY card;",
    "join": f"CREATE STREAM made {OUT} AS SELECT p.card AS card, p.amount AS amount, p.shop AS shop, c.town AS town "
    "FROM pays p JOIN cards c ON p.card = c.card;",
}
TO = "WITH (kafka_topic='many{0}')"
MANY = (
    f"CREATE STREAM many{{0}} {TO} AS SELECT card, amount * 2 AS twice FROM pays WHERE amount > 50;",
    f"CREATE STREAM many{{0}} {TO} AS SELECT card, UCASE(shop) AS shop FROM pays;",
    f"CREATE TABLE many{{0}} {TO} AS SELECT card, COUNT(*) AS n FROM pays GROUP BY card;",
)
COUNTS, WIDEST = (1, 10, 50), 50
LOAD = 1_000  # records a second that all queries read together
IDLE_S, LOADED_S, WARM_S = 20.0, 20.0, 10.0
FIRST = 7  # queries whose first row is waited for


def pays(count: int, first_time: int = 1_700_000_000_000) -> Iterator[tuple[bytes, bytes, int]]:
    chance = random.Random(4)
    for number in range(count):
        value = {"amount": number % 100, "shop": f"shop{number % 37}", "currency": "EUR", "item": f"item {number}"}
        yield b"card%d" % chance.randrange(KEYS), json.dumps(value).encode(), first_time + number


def cards(count: int) -> Iterator[tuple[bytes, bytes, int]]:
    for number in range(count):
        value = {"town": f"town{number % 50}", "owner": f"owner {number}"}
        yield b"card%d" % number, json.dumps(value).encode(), 1_600_000_000_000 + number


@dataclass(slots=True)
class Product:
    """A SQL server and a worker, as users run them."""

    ksql: Ksql
    worker: subprocess.Popen[bytes]
    service: str
    ids: list[str] = field(default_factory=list)

    def query(self, text: str) -> str:
        """Create a query, and return its consumer group."""
        answer = self.ksql.execute(text)
        self.ids.append(answer[-1]["commandStatus"]["queryId"])
        return f"_confluent-ksql-{self.service}query_{self.ids[-1]}"

    def states(self) -> list[str]:
        rows = self.ksql.execute("SHOW QUERIES;")[0]["queries"]
        return [row["state"] for row in rows if row["id"] in self.ids]

    def await_running(self, patience_s: float) -> None:
        until = time.monotonic() + patience_s
        while set(self.states()) != {"RUNNING:1"}:
            if time.monotonic() > until or self.worker.poll() is not None:
                raise BenchError(f"Queries do not run: {self.states()}; see {LOG}.")
            time.sleep(0.3)


@contextmanager
def product(servers: str, client: Client) -> Iterator[Product]:
    """Ended whatever happens; its command topic goes, so that no later worker runs its queries."""
    service = f"b{uuid.uuid4().hex[:8]}_"
    settings = {"ksql.runtime": "spark", "ksql.service.id": service, "ksql.streams.auto.offset.reset": "earliest"}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        ksql = stack.enter_context(sql_server(servers, settings))
        stack.callback(topics.delete, client, [f"_confluent-ksql-{service}_command_topic"])
        line = [sys.executable, "-m", "moldau", "worker", "-b", servers, "--state-dir", folder]
        worker = launched([*line, "--spark-master", "local[2]", "--stop-with-stdin"])
        stack.callback(ended, worker)
        yield Product(ksql, worker, service)


def ended(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def sql(contender: Contender, workload: str, servers: str, patience_s: float) -> Iterator[Running]:
    with Client({"bootstrap.servers": servers}) as client, product(servers, client) as made:
        made.ksql.execute(PAYS + CARDS)
        group = made.query(QUERIES[workload])
        yield Running(contender, workload, group, made.worker, patience_s)


def not_started(workload: str, identity: str, servers: str, folder: str) -> subprocess.Popen[bytes]:
    raise AssertionError("SQL is started by sql()")


CONTENDERS = (
    Contender(SQL, not_started),
    Contender(DSL, moldau("0")),
    Contender(JAVA[0], java(1, "0", "JsonBench")),
    Contender(JAVA[1], java(2, "0", "JsonBench")),
)


def rates(workloads: list[str], chosen: list[Contender], records: int, patience_s: float, again: bool) -> None:
    kept = Kept.read(Console(), RATES)
    with broker(AGELESS) as kafka, Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        servers = kafka.bootstrap_servers
        for topic in ("pays", "cards", "out"):
            kafka.create_topic(topic, PARTITIONS)
        fill(servers, "pays", pays(records))
        fill(servers, "cards", cards(KEYS))
        for name in workloads:
            for one in chosen:
                start = sql if one.title == SQL else started
                with kept.going_on(), start(one, name, servers, patience_s) as running:
                    rate = throughput(running, Progress(client, running.identity, name))
                    kept.add(name, one, rate, again)


class Latencies:
    """Reads the outputs of queries, and notes how old each record is."""

    def __init__(self, servers: str, outputs: list[str]) -> None:
        given = {"group.id": uuid.uuid4().hex, "isolation.level": "read_committed", "fetch.wait.max.ms": 20}
        self.consumer = Consumer({"bootstrap.servers": servers, "enable.auto.commit": False, **given})
        self.consumer.assign([TopicPartition(topic, part, 0) for topic in outputs for part in range(PARTITIONS)])
        self.found: list[float] = []

    def read(self, seconds: float) -> list[float]:
        """Return the ms that results took which came in so many seconds."""
        self.found, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            for message in self.consumer.consume(2000, 0.02):
                if not message.error():
                    self.found.append(time.time() * 1000 - message.timestamp()[1])
        return self.found

    def await_row(self, patience_s: float) -> None:
        """Wait for the first result."""
        began = time.monotonic()
        while not self.read(0.02):
            if time.monotonic() - began > patience_s:
                raise BenchError(f"There is no row after {patience_s:g} s; see {LOG}.")


@contextmanager
def feeding(servers: str, rate: float) -> Iterator[None]:
    """Write so many records a second, in the background."""
    producer, going = Producer({"bootstrap.servers": servers, "linger.ms": 5}), threading.Event()

    def feed() -> None:
        began, sent, given = time.monotonic(), 0, pays(sys.maxsize)
        while not going.is_set():
            for key, value, _ in islice(given, max(0, int((time.monotonic() - began) * rate) - sent)):
                producer.produce("pays", value, key, timestamp=int(time.time() * 1000))
                sent += 1
            producer.poll(0)
            time.sleep(0.005)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        going.set()
        thread.join()
        producer.flush(30)


def cores(pids: list[int], seconds: float) -> float:
    """How many cores processes and their descendants use."""
    began, before = time.monotonic(), whole_cpu_seconds(*pids)
    time.sleep(seconds)
    return (whole_cpu_seconds(*pids) - before) / (time.monotonic() - began)


def many(rows: sql_page.Kept, count: int, patience_s: float) -> None:
    """So many queries: memory, CPU at rest, latency under load."""
    with broker() as kafka, Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        servers = kafka.bootstrap_servers
        kafka.create_topic("pays", PARTITIONS)
        with product(servers, client) as made:
            made.ksql.execute(PAYS)
            for number in range(count):
                made.query(MANY[number % len(MANY)].format(number))
            made.await_running(patience_s)
            outputs = Latencies(servers, [f"many{number}" for number in range(count)])
            queries = "1 query" if count == 1 else f"{count} queries"
            with feeding(servers, LOAD / count):
                outputs.await_row(patience_s)
                outputs.read(WARM_S)
                found = outputs.read(LOADED_S)
            p50, p99 = statistics.median(found), statistics.quantiles(found, n=100)[98]
            floors = ("p50 1.5 s", "p50 0.6 s") if count == WIDEST else ("", "")
            rows.add(SPARK, f"{queries}, record to result", f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms", *floors)
            outputs.read(WARM_S)
            pids = [made.worker.pid, made.ksql.pid or 0]
            used = max(0.0, cores(pids, IDLE_S))  # a worker of Python that ends is rounded to a tick
            memory = sum(memory_mb(pid) for pid in pids) / 1024
            floors = ("0.5", "0.2") if count == WIDEST else ("", "")
            rows.add(SPARK, f"{queries}, idle, cores", f"{used:.2f}", *floors)
            floors = ("3.5 GB", "2.5 GB") if count == WIDEST else ("", "")
            rows.add(SPARK, f"{queries}, memory", f"{memory:.1f} GB", *floors)
            outputs.consumer.close()


def first_rows(rows: sql_page.Kept, patience_s: float) -> None:
    """From CREATE ... AS to the first row of its output, on a worker that runs another query already."""
    with broker() as kafka, Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        servers = kafka.bootstrap_servers
        kafka.create_topic("pays", PARTITIONS)
        fill(servers, "pays", pays(100, int(time.time() * 1000)))
        with product(servers, client) as made:
            made.ksql.execute(PAYS)
            for number, text in enumerate(MANY):
                made.query(text.format(number))
            made.await_running(patience_s)
            for kind, text in (("a filter", MANY[0]), ("GROUP BY", MANY[2])):
                took = []
                for number in range(FIRST):
                    name = f"{number}_{uuid.uuid4().hex[:4]}"
                    outputs = Latencies(servers, [])
                    began = time.monotonic()
                    made.query(text.format(name))
                    outputs.consumer.assign([TopicPartition(f"many{name}", part, 0) for part in range(PARTITIONS)])
                    outputs.await_row(patience_s)
                    took.append(time.monotonic() - began)
                    outputs.consumer.close()
                figure = f"{statistics.median(took):.1f} s (to {max(took):.1f} s)"
                rows.add(SPARK, f"CREATE ... AS of {kind} to its first row, Spark warm", figure, "3 s", "0.5 s")


def main(
    records: Annotated[
        int, typer.Option(help="In the topic that is read; a batch of Spark takes 500,000.", min=1000)
    ] = 3_000_000,
    contender: Annotated[list[str] | None, typer.Option(help="Only those whose title begins so; repeatable.")] = None,
    workload: Annotated[
        list[str] | None, typer.Option(help=f"Only these of {', '.join((*QUERIES, 'many', 'first'))}; repeatable.")
    ] = None,
    count: Annotated[list[int] | None, typer.Option(help="How many queries; repeatable.")] = None,
    patience: Annotated[float, typer.Option(help="Seconds that a contender has for a workload.")] = 600.0,
    again: Annotated[bool, typer.Option(help="Keep the better of the rates of before and now.")] = False,
    keep: Annotated[bool, typer.Option(help="Write docs/benchmarks-sql.md.")] = True,
) -> None:
    """Measure SQL on Spark."""
    wanted = workload or [*QUERIES, "many", "first"]
    chosen = [one for one in CONTENDERS if not contender or one.title.startswith(tuple(contender))]
    if rated := [name for name in QUERIES if name in wanted]:
        rates(rated, chosen, records, patience, again)
    rows = sql_page.Kept.read()
    if "many" in wanted:
        for number in count or COUNTS:
            many(rows, number, patience)
    if "first" in wanted:
        first_rows(rows, patience)
    if keep:
        sql_page.write()


if __name__ == "__main__":
    typer.run(main)
