"""`python -m benchmarks.flows`: deployed applications in lanes, on one broker. Writes docs/benchmarks-flows.md.

Figures are kept between runs, each with its commit and the load of the machine, so that parts can be measured one at a
time: `--part beside --workload words`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console
from tests.spark.chaos import Driver

from benchmarks import streams
from benchmarks.brokers import whole_cpu_seconds
from benchmarks.places import CACHE, PROJECT, BenchError
from benchmarks.report import machine, memory_mb, said
from benchmarks.streams import PARTITIONS, Contender, Progress, Start
from moldau.client import Client
from moldau.flows import deploying
from moldau.flows.catalog import Catalog, opened
from moldau.flows.lanes import lane_of
from moldau.flows.loading import builder_of
from moldau.flows.overview import overviews
from moldau.testing import Broker, broker

PAGE = PROJECT / "docs" / "benchmarks-flows.md"
REMARKS = PROJECT / "benchmarks" / "flows-remarks.md"
KEPT = CACHE / "flows.json"
JOBS = PROJECT / "benchmarks" / "streams_jobs.py"
CROWDS = (1, 10, 50)
SETTLE_S, IDLE_S = 15.0, 30.0
RATE, FLOWING_S, WARM_S = 1000, 30.0, 10.0
TIMES = 5  # that an application is deployed on a warm lane
DEATHS, SHARED = 3, 10  # workers that are killed, and the flows that two share
PAUSE_S = 0.2  # between two records for each flow of a worker that was killed
PATIENCE_S = 300.0
SPARK = ("--spark-master", "local[2]")
BESIDE = """
from streams_jobs import TEXTS, WORKLOADS

from moldau.streams import StreamsBuilder

builder = StreamsBuilder({name!r}, {{**TEXTS, "statestore.cache.max.bytes": {cache!r}}})
WORKLOADS[{workload!r}](builder)
"""
APP = """
from moldau.streams import StreamsBuilder

texts = {{"default.key.serde": "string", "default.value.serde": "string", "statestore.cache.max.bytes": 0}}
builder = StreamsBuilder({name!r}, texts)
builder.stream({source!r}){body}.to({target!r})
"""
WITHOUT_STATE = ".map_values(lambda value: value)"
WITH_STATE = ".group_by_key().reduce(lambda one, other: other, store='latest').to_stream()"
IN_RUN, IN_LANE = "builder.run()", "in a lane"
HEAD = """# Benchmarks: deployed applications

`python -m benchmarks.flows` makes this page. One machine: the broker, one worker (two in the last row) with Spark
`local[2]`, and what measures share its cores. Rows may be of different runs: each shows the load of the machine when it
began. On a machine with other loads everything takes longer.

"""
METHOD = """
An application alone: the workloads of [the benchmarks of streams](benchmarks-streams.md), with their settings, records
and way of measuring; once by `builder.run()`, once deployed to a worker, which carries it in a shared lane. The figure
of each is its best run; both ways have as many.

Many applications: each has an input topic and an output topic of {partitions} partitions; every third keeps state (the
latest value of a key), the others change values. Memory and CPU are those of the worker with all its processes, over
{idle:.0f} seconds without records. Latency is from sending a record to reading what came of it, at {rate:,} records a
second in all for {flowing:.0f} seconds, of which the first {warm:.0f} do not count.

Deploying: from the beginning of packing an application to its first record at a reader, on a worker with ten others.
A killed worker: `kill -9` of all its processes; the time until all of its applications have written what came of
records that were sent after that. Median and most of {times} and {deaths} times.
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the page."""

    text: str
    commit: str
    load: str


@dataclass(slots=True)
class Kept:
    """Figures by row, those of earlier runs too."""

    console: Console
    rows: dict[str, Figure] = field(default_factory=dict)
    rates: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # of all runs, by workload and way

    @classmethod
    def read(cls, console: Console) -> Kept:
        found = json.loads(KEPT.read_text()) if KEPT.exists() else {"rows": {}, "rates": {}}
        return cls(console, {name: Figure(*row) for name, row in found["rows"].items()}, found["rates"])

    def add(self, row: str, text: str, load: float) -> None:
        self.rows[row] = Figure(text, said("git", "rev-parse", "--short", "HEAD"), f"{load:.1f}")
        self.write()
        self.console.print(f"{row}: {text}")

    def rate(self, workload: str, way: str, found: float) -> None:
        self.rates.setdefault(workload, {}).setdefault(way, []).append(found)
        self.write()
        self.console.print(f"{workload}, {way}: {found:,.0f}/s")

    def write(self) -> None:
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        rows = {name: (one.text, one.commit, one.load) for name, one in self.rows.items()}
        KEPT.write_text(json.dumps({"rows": rows, "rates": self.rates}, indent=1))


def load() -> float:
    return os.getloadavg()[0]


# One application, in a lane and by itself.


def deploy(
    catalog: Catalog, client: Client, file: Path, more: Iterable[Path] = (), settings: Mapping[str, str] | None = None
) -> None:
    """Deploy what a file makes, as the command does."""
    given, place = settings or {}, {"bootstrap.servers": str(client.config["bootstrap.servers"])}
    made = deploying.packed(builder_of(str(file)).build(), {**place, **given}, file, more)
    new, _ = deploying.defined(made, given, client, catalog.flows.get(made.name))
    deploying.deploy(catalog, client, new, made.data)


def lane(cache: str) -> Start:
    def start(workload: str, identity: str, servers: str, folder: str) -> subprocess.Popen[bytes]:
        from benchmarks.streams_jobs import BATCHES

        home = Path(folder, "app")
        home.mkdir()
        (home / JOBS.name).write_bytes(JOBS.read_bytes())
        (home / "app.py").write_text(BESIDE.format(name=identity, workload=workload, cache=cache))
        settings = {"spark.maxOffsetsPerTrigger": str(BATCHES[workload])} if workload in BATCHES else {}
        with opened({"bootstrap.servers": servers}) as catalog, Client({"bootstrap.servers": servers}) as client:
            deploy(catalog, client, home / "app.py", [home / JOBS.name], settings)
        command = ("worker", "-b", servers, "--state-dir", f"{folder}/state", "--stop-with-stdin", *SPARK)
        return streams.launched([sys.executable, "-m", "moldau", *command])

    return start


def contenders(how: str, cache: str) -> Iterator[tuple[str, Contender]]:
    yield IN_RUN, Contender(f"{IN_RUN}, {how}", streams.moldau(cache))
    yield IN_LANE, Contender(f"{IN_LANE}, {how}", lane(cache))


def beside(kept: Kept, workloads: Sequence[str], records: int, runs: int) -> None:
    """Each workload in both ways, in turn. Each run has a broker of its own: an application stays deployed."""
    for name in workloads:
        for how, cache in (("cache", streams.CACHED), ("every change", "0")):
            for way, one in [pair for _ in range(runs) for pair in contenders(how, cache)]:
                with broker(streams.AGELESS) as kafka:
                    kept.rate(f"{name}, {how}", way, rate_of(kafka, name, one, records))
            ways = kept.rates[f"{name}, {how}"]
            kept.add(f"{name}, {how}", f"{max(ways[IN_LANE]) / max(ways[IN_RUN]):.2f}", load())


def rate_of(kafka: Broker, workload: str, one: Contender, records: int) -> float:
    servers = kafka.bootstrap_servers
    for topic in ("lines", "events", "table", "out"):
        kafka.create_topic(topic, PARTITIONS)
    is_words = workload == "words"
    filling = streams.lines(records // streams.WORDS) if is_words else streams.events(records)
    streams.fill(servers, "lines" if is_words else "events", filling)
    streams.fill(servers, "table", streams.rows(streams.KEYS))
    with (
        Client({"bootstrap.servers": servers}) as client,
        streams.started(one, workload, servers, PATIENCE_S) as running,
    ):
        found = streams.throughput(running, Progress(client, running.identity, workload))
    return found * (streams.WORDS if is_words else 1)


# Many applications.


class Crowd:
    """Applications on one broker, whose records are the time at which they were sent."""

    def __init__(self, stack: ExitStack, kafka: Broker, folder: Path) -> None:
        self.kafka, self.folder, self.servers = kafka, folder, kafka.bootstrap_servers
        settings = {"bootstrap.servers": self.servers}
        self.client = stack.enter_context(Client(settings))
        self.catalog = stack.enter_context(opened(settings))
        self.producer = Producer({**settings, "linger.ms": 0})
        group = {"group.id": "bench", "enable.auto.commit": False, "isolation.level": "read_committed"}
        self.consumer = Consumer({**settings, **group, "fetch.wait.max.ms": 5, "auto.offset.reset": "earliest"})
        stack.callback(self.consumer.close)
        self.names: list[str] = []

    def add(self, name: str, has_state: bool) -> None:
        source, target, home = f"in-{name}", f"out-{name}", self.folder / name
        for topic in (source, target):
            self.kafka.create_topic(topic, PARTITIONS)
        self.consumer.incremental_assign([TopicPartition(target, number, 0) for number in range(PARTITIONS)])
        home.mkdir(parents=True)
        body = WITH_STATE if has_state else WITHOUT_STATE
        (home / "app.py").write_text(APP.format(name=name, source=source, target=target, body=body))
        self.names.append(name)

    def deploy(self, name: str) -> None:
        deploy(self.catalog, self.client, self.folder / name / "app.py")

    def fill(self, count: int) -> None:
        """Deploy so many applications, of which a third keep state."""
        for number in range(count):
            self.add(f"f{number}", number % 3 == 0)
            self.deploy(f"f{number}")

    def send(self, names: Iterable[str]) -> None:
        for name in names:
            self.producer.produce(f"in-{name}", key=name, value=repr(time.time()))
        self.producer.poll(0)

    def read(self, seconds: float) -> list[tuple[str, float, float]]:
        """Return what has come: the application, when its record was sent, and when it was read."""
        found: list[tuple[str, float, float]] = []
        for message in self.consumer.consume(1000, seconds):
            if message.error() is None:
                topic, value = str(message.topic()), message.value()
                assert value is not None
                found.append((topic.removeprefix("out-"), float(value), time.time()))
        return found

    def await_all(self, names: Iterable[str], since: float, worker: Driver, *, again: bool = False) -> None:
        """Wait until each application has written what came of a record since then. `again`: send more meanwhile."""
        late, until, sent = set(names), time.monotonic() + PATIENCE_S, 0.0
        while late:
            worker.check()
            if time.monotonic() > until:
                raise BenchError(f"{', '.join(sorted(late))} wrote nothing for {PATIENCE_S:g} s: {worker.tail()}")
            if again and time.monotonic() > sent + PAUSE_S:
                sent = time.monotonic()
                self.send(late)
            late -= {name for name, at, _ in self.read(0.05) if at >= since}

    def begin(self, worker: Driver) -> None:
        """Wait until all applications run."""
        began = time.time()
        self.send(self.names)
        self.await_all(self.names, began, worker)


@contextmanager
def crowd() -> Iterator[tuple[Crowd, Callable[..., Driver]]]:
    """A broker, and what starts workers on it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        kafka = stack.enter_context(broker())
        made = Crowd(stack, kafka, folder)

        def worker(name: str, *more: str) -> Driver:
            home = folder / f"worker-{name}"
            home.mkdir()
            command = ("-b", made.servers, "--name", name, "--state-dir", str(folder / "state"), *SPARK, *more)
            started = Driver(str(home), "moldau", "worker", *command)
            stack.callback(started.close)
            return started

        yield made, worker


def crowds(kept: Kept, counts: Sequence[int]) -> None:
    """So many applications on one worker: idle, and with records."""
    for count in counts:
        named, began = f"{count} application{'s' if count > 1 else ''}", load()
        with crowd() as (flows, start):
            flows.fill(count)
            worker = start("one")
            flows.begin(worker)
            time.sleep(SETTLE_S)
            before, pid = whole_cpu_seconds(worker.process.pid), worker.process.pid
            time.sleep(IDLE_S)
            cores, memory = (whole_cpu_seconds(pid) - before) / IDLE_S, memory_mb(pid) / 1000
            kept.add(f"{named}, idle", f"{memory:.1f} GB, {cores:.2f} cores", began)
            found = flowing(flows, worker)
            points = statistics.quantiles(found, n=100)
            kept.add(f"{named}, {RATE:,} records/s in all", f"p50 {points[49]:.2f} s, p99 {points[98]:.2f} s", began)


def flowing(flows: Crowd, worker: Driver) -> list[float]:
    """Return the latencies of records that are sent to all in turn."""
    began, sent = time.monotonic(), 0
    found: list[float] = []
    while (now := time.monotonic() - began) < FLOWING_S:
        due = int(now * RATE) - sent
        flows.send(flows.names[number % len(flows.names)] for number in range(sent, sent + due))
        sent += due
        rows = flows.read(0.01)
        found += [read - at for _, at, read in rows if now > WARM_S]
        worker.check()
    if not found:
        raise BenchError(f"Nothing was written within {FLOWING_S:g} s: {worker.tail()}")
    return found


def deployed(kept: Kept) -> None:
    """An application with state that comes to ten others."""
    began, took = load(), list[float]()
    with crowd() as (flows, start):
        flows.fill(SHARED)
        worker = start("one")
        flows.begin(worker)
        time.sleep(SETTLE_S)
        for number in range(TIMES):
            name = f"new{number}"
            flows.add(name, has_state=True)
            since = time.time()
            flows.send([name])
            flows.producer.flush(10)
            at = time.monotonic()
            flows.deploy(name)
            flows.await_all([name], since, worker)
            took.append(time.monotonic() - at)
    kept.add("deploy to first output on a warm lane", f"{statistics.median(took):.1f} s, most {max(took):.1f} s", began)


def killed(kept: Kept) -> None:
    """Two workers share applications; one is killed, and comes back for the next time."""
    began, took = load(), list[float]()
    with crowd() as (flows, start):
        flows.fill(SHARED)
        workers = {name: start(name) for name in ("one", "two")}
        for number in range(DEATHS):
            flows.begin(workers["one"])
            victims = shared_by(flows, workers)
            victim = sorted(victims)[number % 2]
            other = next(one for name, one in workers.items() if name != victim)
            workers[victim].kill()
            since, at = time.time(), time.monotonic()
            flows.await_all(victims[victim], since, other, again=True)
            took.append(time.monotonic() - at)
            workers[victim].start()
    kept.add("flows of a killed worker elsewhere", f"{statistics.median(took):.1f} s, most {max(took):.1f} s", began)


def shared_by(flows: Crowd, workers: Mapping[str, Driver]) -> dict[str, list[str]]:
    """Wait until each worker runs some of the applications, and return which."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        found: dict[str, list[str]] = {}
        for one in overviews(flows.catalog.known, flows.client):
            at_home = one.lane == lane_of(flows.catalog.flows[one.name])
            if one.state == "running" and one.worker is not None and one.worker in workers and at_home:
                found.setdefault(one.worker, []).append(one.name)
        if len(found) == len(workers) and sum(map(len, found.values())) == len(flows.names):
            return found
        for one in workers.values():
            one.check()
        time.sleep(0.5)
    raise BenchError("The workers did not share the applications.")


# The page.

FLOORS = {
    "1 application, idle": "",
    "10 applications, idle": "",
    "50 applications, idle": "3 GB and 0.5 cores, aim 2.2 GB and 0.2",
    f"1 application, {RATE:,} records/s in all": "p50 1.2 s, aim 0.6 s",
    f"10 applications, {RATE:,} records/s in all": "p50 1.2 s, aim 0.6 s",
    f"50 applications, {RATE:,} records/s in all": "p50 1.2 s, aim 0.6 s",
    "deploy to first output on a warm lane": "3 s, aim 0.5 s",
    "flows of a killed worker elsewhere": "15 s, aim 12 s",
}


def page(kept: Kept) -> str:
    alone, many = list[str](), list[str]()
    for name, ways in kept.rates.items():
        if name in kept.rows:
            one = kept.rows[name]
            cells = f"{max(ways[IN_RUN]):,.0f} | {max(ways[IN_LANE]):,.0f} | {one.text}"
            alone.append(f"| {name} | {cells} | 0.95, aim 1.0 | {len(ways[IN_LANE])} | {one.load} |")
    for name, wanted in FLOORS.items():
        if name in kept.rows:
            many.append(f"| {name} | {kept.rows[name].text} | {wanted} | {kept.rows[name].load} |")
    lines = table(f"| an application alone, records/s | {IN_RUN} | {IN_LANE} | ratio | wanted | runs | load |", alone)
    lines += table("| many applications | figure | wanted | load |", many)
    lines += [f"- {name}: {text}" for name, text in machine().items()]
    about = {"idle": IDLE_S, "rate": RATE, "flowing": FLOWING_S, "warm": WARM_S, "times": TIMES, "deaths": DEATHS}
    method = METHOD.format(partitions=PARTITIONS, **about)
    return HEAD + "\n".join(lines) + "\n" + method + (REMARKS.read_text() if REMARKS.exists() else "")


def table(head: str, rows: list[str]) -> list[str]:
    """Return a table with an empty line after it; nothing where it has no rows."""
    return [head, "|---" * (head.count("|") - 1) + "|", *rows, ""] if rows else []


def main(
    part: Annotated[list[str] | None, typer.Option(help="beside, crowds, deploy or kill; repeatable.")] = None,
    workload: Annotated[list[str] | None, typer.Option(help="Only these for `beside`; repeatable.")] = None,
    count: Annotated[list[int] | None, typer.Option(help="Applications for `crowds`; repeatable.")] = None,
    records: Annotated[int, typer.Option(help="Events for `beside`; lines are a tenth.", min=1000)] = 2_000_000,
    runs: Annotated[int, typer.Option(help="For `beside`, of which the best counts.", min=1)] = 2,
    keep: Annotated[bool, typer.Option(help="Write docs/benchmarks-flows.md.")] = True,
) -> None:
    """Measure deployed applications."""
    kept, failed = Kept.read(Console()), False
    parts = {
        "beside": partial(beside, kept, workload or streams.RATES, records, runs),
        "crowds": partial(crowds, kept, count or CROWDS),
        "deploy": partial(deployed, kept),
        "kill": partial(killed, kept),
    }
    for name in part or parts:
        try:
            parts[name]()
        except BenchError as error:
            failed = True
            kept.console.print(f"{name}: {error}")
    if keep:
        PAGE.write_text(page(kept))
    sys.exit(failed)


if __name__ == "__main__":
    typer.run(main)
