"""`python -m benchmarks.streams`: applications of streams on Spark beside Java's Kafka Streams and Quix Streams, on one
broker and the same topics. Writes docs/benchmarks-streams.md.

A contender reads a topic that is there already. How far it has come is what its group has committed; the first half is
its warm-up, and only the rest counts. So all are measured alike, and exactly once.
"""

import contextlib
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from confluent_kafka import Consumer, Producer
from rich.console import Console
from tests import needs

from benchmarks.places import PROJECT, BenchError
from benchmarks.report import field_of
from moldau.client import Client
from moldau.streams import StreamsBuilder
from moldau.testing import Broker, broker
from moldau.views.offsets import committed, ends_of

PAGE = PROJECT / "docs" / "benchmarks-streams.md"
HOME = PROJECT / ".cache" / "quix"
JAVA = PROJECT / "benchmarks" / "java"
QUIX = "quixstreams>=3.20"
PARTITIONS = 2
KEYS = 10_000
CACHE = "10485760"
WAIT_S = 900.0
MARKERS = 3  # of transactions, at the end of a partition
INPUTS = {
    "words": ("lines",),
    "windows": ("events",),
    "stream-table": ("events", "table"),
    "table-table": ("events", "table"),
    "keyed": ("events",),
}
WORDS = 10  # of a line

Start = Callable[[str, str, str, str], subprocess.Popen[bytes]]  # workload, id, servers, folder


@dataclass(frozen=True, slots=True)
class Contender:
    title: str
    start: Start
    workloads: tuple[str, ...] = tuple(INPUTS)


@dataclass(slots=True)
class Row:
    """Figures of a workload, by contender."""

    title: str
    unit: str
    found: dict[str, float] = field(default_factory=dict)


def java(threads: int, cache: str) -> Start:
    def start(workload: str, identity: str, servers: str, folder: str) -> subprocess.Popen[bytes]:
        jars = needs.find("streams-jars").path
        classes = PROJECT / ".cache" / "streams-bench"
        source = JAVA / "StreamsBench.java"
        made = classes / "StreamsBench.class"
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            classes.mkdir(parents=True, exist_ok=True)
            subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(source)], check=True, timeout=300)
        flags = ["-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        own = [workload, identity, servers, folder, str(threads), cache]
        return launched(["java", *flags, "-cp", f"{classes}:{jars}/*", "StreamsBench", *own])

    return start


def moldau(cache: str) -> Start:
    def start(workload: str, identity: str, servers: str, folder: str) -> subprocess.Popen[bytes]:
        script = str(PROJECT / "benchmarks" / "streams_jobs.py")
        return launched([sys.executable, script, workload, identity, servers, folder, cache])

    return start


def quix(workload: str, identity: str, servers: str, folder: str) -> subprocess.Popen[bytes]:
    python = HOME / "bin" / "python"
    if not (HOME / "done").exists():
        venv.create(HOME, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", QUIX], check=True, timeout=1800)
        (HOME / "done").touch()
    return launched([str(python), str(PROJECT / "benchmarks" / "quix_job.py"), workload, identity, servers, folder])


def launched(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=PROJECT
    )


CONTENDERS = (
    Contender("Moldau, cache", moldau(CACHE)),
    Contender("Moldau, every change", moldau("0")),
    Contender("Java, 1 thread, cache", java(1, CACHE)),
    Contender("Java, 1 thread, every change", java(1, "0")),
    Contender("Java, 2 threads, cache", java(2, CACHE)),
    Contender("Java, 2 threads, every change", java(2, "0")),
    Contender("Quix", quix, ("words", "windows")),
)


@contextlib.contextmanager
def running(contender: Contender, workload: str, servers: str) -> Iterator[tuple[str, int]]:
    """The id of an application that runs, and its process; ended whatever happens."""
    identity = f"bench-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as folder:
        process = contender.start(workload, identity, servers, folder)
        try:
            yield identity, process.pid
            if process.poll() is not None:
                raise BenchError(f"{contender.title} ended while it did {workload} (exit {process.poll()}).")
        finally:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            try:
                process.wait(5 if contender.title == "Quix" else 90)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def fill(servers: str, topic: str, records: Iterator[tuple[bytes, bytes, int]]) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "batch.size": 262_144})
    for key, value, timestamp in records:
        while True:
            try:
                producer.produce(topic, value, key, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise BenchError(f"{topic} was not filled in time.")


def lines(count: int) -> Iterator[tuple[bytes, bytes, int]]:
    chance = random.Random(1)
    for number in range(count):
        text = " ".join(f"word{chance.randrange(KEYS)}" for _ in range(WORDS))
        yield b"%d" % number, text.encode(), 1_700_000_000_000 + number


def events(count: int, keys: int = KEYS) -> Iterator[tuple[bytes, bytes, int]]:
    chance = random.Random(2)
    for number in range(count):
        yield b"key%d" % chance.randrange(keys), b"value%d" % (number % 100), 1_700_000_000_000 + number


def rows(count: int) -> Iterator[tuple[bytes, bytes, int]]:
    for number in range(count):
        yield b"key%d" % number, b"row%d" % number, 1_600_000_000_000 + number


class Progress:
    """How far an application is: with what it has read, and with what it has written for itself and read again."""

    def __init__(self, client: Client, identity: str, workload: str) -> None:
        self.client, self.identity = client, identity
        self.totals = {topic: sum(ends_of(client, topic, range(PARTITIONS)).values()) for topic in INPUTS[workload]}
        self.records = sum(self.totals.values())
        self.again = (
            self.records * WORDS if workload == "words" else 0
        )  # records of a repartition topic, if there is one

    def done(self) -> float:
        """From 0 to 1: that of the last stage."""
        read = sum(self.committed(topic, PARTITIONS) for topic in self.totals) / self.records
        internal = [
            (name, len(topic.partitions))
            for name, topic in self.client.refresh(None).topics.items()
            if self.identity in name and "repartition" in name
        ]
        return min([read, *(self.stage(name, count) for name, count in internal)])

    def stage(self, topic: str, partitions: int) -> float:
        """Offsets of a topic that is written in transactions count markers, of which a reader may leave the last."""
        end = sum(ends_of(self.client, topic, range(partitions)).values())
        reached = self.committed(topic, partitions)
        is_whole = end >= self.again and reached >= end - MARKERS * partitions
        return 1.0 if is_whole else min(0.999, reached / max(end, self.again))

    def committed(self, topic: str, partitions: int) -> int:
        return sum(max(0, one) for one in committed(self.client, self.identity, topic, range(partitions)).values())


def throughput(kafka: Broker, contender: Contender, workload: str) -> tuple[float, float]:
    """Records a second of the second half, by what the group has committed; and megabytes at the end."""
    servers = kafka.bootstrap_servers
    with Client({"bootstrap.servers": servers}) as client, running(contender, workload, servers) as (identity, pid):
        progress = Progress(client, identity, workload)
        seen: list[tuple[float, float]] = [(time.monotonic(), 0.0)]
        while seen[-1][1] < 1.0:
            if time.monotonic() - seen[0][0] > WAIT_S:
                raise BenchError(f"{contender.title} has done {seen[-1][1]:.0%} of {workload} in {WAIT_S:g} s.")
            time.sleep(0.05)
            done = progress.done()
            if done > seen[-1][1]:
                seen.append((time.monotonic(), done))
        memory = megabytes(pid)
    first, last = next(one for one in seen if one[1] >= 0.5), seen[-1]
    if last[1] == first[1]:
        raise BenchError(f"{contender.title} committed {workload} at once: there are too few records.")
    return (last[1] - first[1]) * progress.records / (last[0] - first[0]), memory


def megabytes(pid: int) -> float:
    """What a process and all below it have in memory."""
    try:
        fields = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()
        below = [text for task in Path(f"/proc/{pid}/task").glob("*/children") for text in task.read_text().split()]
    except FileNotFoundError:
        return 0.0  # it has just ended
    return (int(fields[0]) / 1024 if fields else 0.0) + sum(megabytes(int(text)) for text in below)


def latency(kafka: Broker, contender: Contender, samples: int) -> tuple[float, float]:
    """Milliseconds from a record's being sent to what comes of it being read, one at a time."""
    servers = kafka.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    group = {"group.id": uuid.uuid4().hex, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, "fetch.wait.max.ms": 5, **group})
    found: list[float] = []
    with running(contender, "keyed", servers):
        consumer.subscribe(["out"])
        for number in range(samples + 10):
            mark = uuid.uuid4().hex.encode()
            began = time.monotonic()
            producer.produce("events", mark, b"key%d" % (number % 100))
            producer.flush(10)
            while time.monotonic() - began < WAIT_S:
                record = consumer.poll(0.5)
                if record is not None and record.value() == mark:
                    break
            else:
                raise BenchError(f"{contender.title} gave no answer in {WAIT_S:g} s.")
            if number >= 10:
                found.append((time.monotonic() - began) * 1000)
            time.sleep(0.3)
    consumer.close()
    found.sort()
    return statistics.median(found), found[min(len(found) - 1, int(len(found) * 0.99))]


def look_ups(kafka: Broker, keys: int, samples: int) -> list[Row]:
    """A view over a table of so many keys: how fast it is loaded and asked."""
    servers, topic = kafka.bootstrap_servers, f"view-{keys}"
    kafka.create_topic(topic, PARTITIONS)
    fill(servers, topic, rows(keys))
    texts = {"default.key.serde": "string", "default.value.serde": "string"}
    builder = StreamsBuilder(f"views-{keys}", {**texts, "topology.optimization": "all"})
    builder.table(topic, store="rows")
    chance = random.Random(3)
    with builder.stores({"bootstrap.servers": servers, "views.max.bytes": 16 << 30}) as stores:
        began = time.monotonic()
        view: Any = stores.store("rows", timeout=WAIT_S)
        loaded = keys / (time.monotonic() - began)
        asked = [f"key{chance.randrange(keys)}" for _ in range(samples)]
        began = time.monotonic()
        for key in asked:
            view.get(key)
        gets = samples / (time.monotonic() - began)
        list(view.range("key1", "key10"))  # the first range sorts
        began = time.monotonic()
        for number in range(100):
            first = f"key{number}"
            for _ in zip(range(100), view.range(first, None), strict=False):
                pass
        ranges = 100 / (time.monotonic() - began)
    told = f"view of {keys:,} keys"
    return [
        Row(f"{told}, loaded", "records/s", {"Moldau, cache": loaded}),
        Row(f"{told}, look-ups", "a second, one thread", {"Moldau, cache": gets}),
        Row(f"{told}, ranges of 100", "a second, one thread", {"Moldau, cache": ranges}),
    ]


METHOD = """\
One machine: the broker (Moldau's, {partitions} partitions a topic) and one contender at a time share its cores. All run
exactly once (`exactly_once_v2`), on Spark `local[2]`. A contender starts on topics that are full; the rate is that of
the second half of the records, by what its group has committed: the first half is its warm-up. Word count: {words}
words a line of {keys:,} different ones, and the figure is words. Windowed count: one-minute windows with a minute of
grace.
Joins: a table of {keys:,} rows. *cache*: 10 MB, the default of Kafka Streams; *every change*: no cache. Latency is from
sending a record to reading what came of it, one record at a time, through one keyed level. A view is asked from the
process that holds it. `python -m benchmarks.streams` makes this page.
"""


def page(found: Sequence[Row], note: str) -> str:
    titles = [one.title for one in CONTENDERS]
    cores = f"{os.cpu_count()} cores, {field_of('/proc/cpuinfo', 'model name')}, Python {platform.python_version()}."
    lines = ["# Benchmarks: streams", "", cores + (f" {note}" if note else ""), ""]
    lines += [f"| what | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for row in found:
        cells = (f"{row.found[title]:,.0f}" if title in row.found else "" for title in titles)
        lines.append(f"| {row.title}, {row.unit} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", METHOD.format(partitions=PARTITIONS, words=WORDS, keys=KEYS)])


def main(
    records: Annotated[int, typer.Option(help="Events; lines are a tenth.", min=1000)] = 2_000_000,
    samples: Annotated[int, typer.Option(help="Of latency.", min=10)] = 100,
    keys: Annotated[list[int] | None, typer.Option(help="Keys of views and state; repeatable.")] = None,
    contender: Annotated[list[str] | None, typer.Option(help="Only those whose title begins so; repeatable.")] = None,
    workload: Annotated[list[str] | None, typer.Option(help="Only these; repeatable.")] = None,
    note: Annotated[str, typer.Option(help="What is to be said of this run.")] = "",
    keep: Annotated[bool, typer.Option(help="Write docs/benchmarks-streams.md.")] = True,
) -> None:
    """Measure streams beside Kafka Streams and Quix."""
    console = Console()
    chosen = [one for one in CONTENDERS if not contender or one.title.startswith(tuple(contender))]
    found: list[Row] = []
    with broker() as kafka:
        servers = kafka.bootstrap_servers
        for topic in ("lines", "events", "table", "out"):
            kafka.create_topic(topic, PARTITIONS)
        fill(servers, "lines", lines(records // WORDS))
        fill(servers, "events", events(records))
        fill(servers, "table", rows(KEYS))
        for name in workload or [one for one in INPUTS if one != "keyed"]:
            row = Row(name, "words/s" if name == "words" else "records/s")
            found.append(row)
            for one in chosen:
                if name in one.workloads:
                    rate = throughput(kafka, one, name)[0] * (WORDS if name == "words" else 1)
                    row.found[one.title] = rate
                    console.print(f"{name}: {one.title} {rate:,.0f} {row.unit}")
    for number in keys or [1_000_000]:
        found += state(number, records, chosen, console)
    with broker() as kafka:
        for topic in ("events", "out"):
            kafka.create_topic(topic, PARTITIONS)
        half, most = Row("latency of one keyed level, p50", "ms"), Row("latency of one keyed level, p99", "ms")
        for one in chosen:
            if one.title.endswith("every change"):
                half.found[one.title], most.found[one.title] = latency(kafka, one, samples)
                console.print(
                    f"latency: {one.title} {half.found[one.title]:.0f} ms, p99 {most.found[one.title]:.0f} ms"
                )
        found += [half, most]
        for number in keys or [1_000_000]:
            found += look_ups(kafka, number, 100_000)
    for row in found:
        console.print(f"{row.title}, {row.unit}: {row.found}")
    if keep:
        PAGE.write_text(page(found, note))


def state(keys: int, records: int, chosen: Sequence[Contender], console: Console) -> list[Row]:
    """The latest of each of many keys: all of them first, then keys by chance."""
    row, memory = Row(f"state of {keys:,} keys", "records/s"), Row(f"state of {keys:,} keys, memory", "MB")
    with broker() as kafka:
        for topic in ("events", "out"):
            kafka.create_topic(topic, PARTITIONS)
        fill(kafka.bootstrap_servers, "events", rows(keys))
        fill(kafka.bootstrap_servers, "events", events(max(records, keys), keys))
        for one in chosen:
            if "keyed" in one.workloads:
                row.found[one.title], memory.found[one.title] = throughput(kafka, one, "keyed")
                console.print(f"{row.title}: {one.title} {row.found[one.title]:,.0f} {row.unit}")
    return [row, memory]


if __name__ == "__main__":
    typer.run(main)
