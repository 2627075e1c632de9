"""`python -m benchmarks.streams`: applications of streams on Spark beside Java's Kafka Streams and Quix Streams, on one
broker and the same topics. Writes docs/benchmarks-streams.md.

A contender reads a topic that is there already. How far it has come is what its group has committed; the first half is
its warm-up, and only the rest counts. So all are measured alike, and exactly once. Figures are kept between runs, each
with its commit, so that rows and contenders can be measured one at a time: `--workload words --contender Java`.
"""

import contextlib
import json
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from confluent_kafka import Consumer, Producer
from rich.console import Console
from tests import needs

from benchmarks.places import CACHE, PROJECT, BenchError, script
from benchmarks.report import field_of, memory_mb, said
from moldau.admin import offsets
from moldau.client import Client
from moldau.streams import StreamsBuilder
from moldau.testing import Broker, broker
from moldau.views.offsets import committed

PAGE = PROJECT / "docs" / "benchmarks-streams.md"
HOME = PROJECT / ".cache" / "quix"
REMARKS = PROJECT / "benchmarks" / "streams-remarks.md"
KEPT = CACHE / "streams.json"
LOG = CACHE / "streams.log"  # what the contender at work says
JAVA = PROJECT / "benchmarks" / "java"
QUIX = "quixstreams>=3.20"
PARTITIONS = 2
KEYS = 10_000
CACHED = "10485760"
TOUCHED = 1_000  # keys by chance
WARM = 60  # records before latency is measured
MARKERS = 3  # of transactions, at the end of a partition
AGELESS = {"log.retention.ms": -1}  # records have timestamps of years ago
INPUTS = {
    "words": ("lines",),
    "windows": ("events",),
    "stream-table": ("events", "table"),
    "table-table": ("events", "table"),
    "keyed": ("events",),
}
JSON_INPUTS = {
    "filter": ("pays",),
    "group": ("pays",),
    "window": ("pays",),
    "join": ("pays", "cards"),
}  # of benchmarks/sql_spark.py
WORDS = 10  # of a line
RATES = tuple(name for name in INPUTS if name != "keyed")
MORE = ("state", "latency", "views")  # what is measured besides rates

Start = Callable[[str, str, str, str], subprocess.Popen[bytes]]  # workload, id, servers, folder


@dataclass(frozen=True, slots=True)
class Contender:
    title: str
    start: Start
    workloads: tuple[str, ...] = tuple(INPUTS)


@dataclass(slots=True)
class Kept:
    """Figures by row and contender, with the commit that each was measured at: those of earlier runs too."""

    console: Console
    rows: dict[str, dict[str, tuple[float, str]]] = field(default_factory=dict)
    path: Path = KEPT

    @classmethod
    def read(cls, console: Console, path: Path = KEPT) -> "Kept":
        return cls(console, json.loads(path.read_text()) if path.exists() else {}, path)

    def add(self, row: str, contender: Contender | str, figure: float, again: bool = False) -> None:
        """`again`: the larger of what was found before and now stays."""
        title = contender if isinstance(contender, str) else contender.title
        if again and title in self.rows.get(row, {}) and self.rows[row][title][0] >= figure:
            self.console.print(f"{row}: {title} {figure:,.0f}, less than before")
            return
        self.rows.setdefault(row, {})[title] = figure, said("git", "rev-parse", "--short", "HEAD")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.rows, indent=1))
        self.console.print(f"{row}: {title} {figure:,.0f}")

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        """One contender that fails leaves the others their time."""
        try:
            yield
        except BenchError as error:
            self.console.print(str(error))


def java(threads: int, cache: str, program: str = "StreamsBench") -> Start:
    def start(workload: str, identity: str, servers: str, folder: str) -> subprocess.Popen[bytes]:
        jars = needs.find("streams-jars").path
        classes = PROJECT / ".cache" / "streams-bench"
        source = JAVA / f"{program}.java"
        made = classes / f"{program}.class"
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            classes.mkdir(parents=True, exist_ok=True)
            command = ["javac", "-cp", f"{jars}/*", "-sourcepath", str(JAVA), "-d", str(classes), str(source)]
            subprocess.run(command, check=True, timeout=300)
        flags = ["-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        own = [workload, identity, servers, folder, str(threads), cache]
        return launched(["java", *flags, "-cp", f"{classes}:{jars}/*", program, *own])

    return start


def moldau(cache: str) -> Start:
    def start(workload: str, identity: str, servers: str, folder: str) -> subprocess.Popen[bytes]:
        return launched([sys.executable, *script("streams_jobs.py"), workload, identity, servers, folder, cache])

    return start


def quix(workload: str, identity: str, servers: str, folder: str) -> subprocess.Popen[bytes]:
    python = HOME / "bin" / "python"
    if not (HOME / "done").exists():
        venv.create(HOME, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", QUIX], check=True, timeout=1800)
        (HOME / "done").touch()
    return launched([str(python), *script("quix_job.py"), workload, identity, servers, folder])


def launched(command: Sequence[str]) -> subprocess.Popen[bytes]:
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("wb") as log:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=PROJECT)


CONTENDERS = (
    Contender("Moldau, cache", moldau(CACHED)),
    Contender("Moldau, every change", moldau("0")),
    Contender("Java, 1 thread, cache", java(1, CACHED)),
    Contender("Java, 1 thread, every change", java(1, "0")),
    Contender("Java, 2 threads, cache", java(2, CACHED)),
    Contender("Java, 2 threads, every change", java(2, "0")),
    Contender("Quix", quix, ("words", "windows")),
)


@dataclass(slots=True)
class Running:
    """An application at work."""

    contender: Contender
    workload: str
    identity: str
    process: subprocess.Popen[bytes]
    patience_s: float

    def check(self, seconds: float, what: str) -> None:
        told = f"{self.contender.title} {what} {self.workload}"
        if self.process.poll() is not None:
            raise BenchError(f"{told} and has ended (exit {self.process.poll()}): see {LOG}.")
        if seconds > self.patience_s:
            raise BenchError(f"{told} in {self.patience_s:g} s.")


@contextlib.contextmanager
def started(contender: Contender, workload: str, servers: str, patience_s: float) -> Iterator[Running]:
    """Ended whatever happens."""
    identity = f"bench-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = contender.start(workload, identity, servers, folder)
        try:
            yield Running(contender, workload, identity, process, patience_s)
        finally:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            try:
                process.wait(5 if contender.title == "Quix" else 30)
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


def end_of(client: Client, topic: str, partitions: int) -> int:
    """Return how many offsets of a topic those can read who read what is committed."""
    places = [(topic, number) for number in range(partitions)]
    return sum(offsets.one_time(client, places, offsets.LATEST, committed=True).values())


class Progress:
    """How far an application is: with what it has read, and with what it has written for itself and read again."""

    def __init__(self, client: Client, identity: str, workload: str) -> None:
        self.client, self.identity = client, identity
        self.totals = {topic: end_of(client, topic, PARTITIONS) for topic in (INPUTS | JSON_INPUTS)[workload]}
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
            if self.identity in name and "repartition" in name and "changelog" not in name
        ]
        return min([read, *(self.stage(name, count) for name, count in internal)])

    def stage(self, topic: str, partitions: int) -> float:
        """Offsets of a topic that is written in transactions count markers, of which a reader may leave the last."""
        end = end_of(self.client, topic, partitions)
        reached = self.committed(topic, partitions)
        is_whole = end >= self.again and reached >= end - MARKERS * partitions
        return 1.0 if is_whole else min(0.999, reached / max(end, self.again))

    def committed(self, topic: str, partitions: int) -> int:
        return sum(max(0, one) for one in committed(self.client, self.identity, topic, range(partitions)).values())


def throughput(running: Running, progress: Progress) -> float:
    """Records a second of the second half, by what the group has committed."""
    seen: list[tuple[float, float]] = [(time.monotonic(), 0.0)]
    while seen[-1][1] < 1.0:
        running.check(time.monotonic() - seen[0][0], f"has done {seen[-1][1]:.0%} of")
        time.sleep(0.05)
        done = progress.done()
        if done > seen[-1][1]:
            seen.append((time.monotonic(), done))
    first, last = next(one for one in seen if one[1] >= 0.5), seen[-1]
    if last[1] == first[1]:
        raise BenchError(f"{running.contender.title} committed {running.workload} at once: there are too few records.")
    return (last[1] - first[1]) * progress.records / (last[0] - first[0])


def latency(kafka: Broker, contender: Contender, samples: int, patience_s: float) -> tuple[float, float]:
    """Milliseconds from a record's being sent to what comes of it being read, one at a time: half of them, and 99 %."""
    servers = kafka.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    group = {"group.id": uuid.uuid4().hex, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, "fetch.wait.max.ms": 5, **group})
    found: list[float] = []
    with started(contender, "keyed", servers, patience_s) as running:
        consumer.subscribe(["out"])
        for number in range(WARM + samples):
            mark = uuid.uuid4().hex.encode()
            began = time.monotonic()
            producer.produce("events", mark, b"key%d" % (number % 100))
            producer.flush(10)
            while (record := consumer.poll(0.5)) is None or record.value() != mark:
                running.check(time.monotonic() - began, "gave no answer to")
            if number >= WARM:
                found.append((time.monotonic() - began) * 1000)
            time.sleep(0.3)
    consumer.close()
    found.sort()
    return statistics.median(found), found[min(len(found) - 1, int(len(found) * 0.99))]


def state(kept: Kept, keys: int, records: int, chosen: Iterable[Contender], patience_s: float) -> None:
    """The latest of each of many keys: all of them first, then keys by chance; then batches of few keys by chance."""
    with broker(AGELESS) as kafka, Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        servers = kafka.bootstrap_servers
        for topic in ("events", "out"):
            kafka.create_topic(topic, PARTITIONS)
        fill(servers, "events", rows(keys))
        fill(servers, "events", events(max(records, keys), keys))
        for one in chosen:
            with kept.going_on(), started(one, "keyed", servers, patience_s) as running:
                rate = throughput(running, Progress(client, running.identity, "keyed"))
                kept.add(f"state of {keys:,} keys, records/s", one, rate)
                kept.add(f"state of {keys:,} keys, memory, MB", one, memory_mb(running.process.pid))
                touch = f"{TOUCHED:,} records of keys by chance among {keys:,}, ms"
                kept.add(touch, one, touched(client, running, keys) * 1000)


def touched(client: Client, running: Running, keys: int, times: int = 5) -> float:
    """Seconds until records of keys by chance are committed."""
    found: list[float] = []
    for number in range(times):
        began = time.monotonic()
        chance = random.Random(number)
        servers = str(client.config["bootstrap.servers"])
        fill(servers, "events", ((b"key%d" % chance.randrange(keys), b"again", number) for _ in range(TOUCHED)))
        while Progress(client, running.identity, "keyed").done() < 1.0:
            running.check(time.monotonic() - began, "has not come to the end of")
            time.sleep(0.01)
        found.append(time.monotonic() - began)
    return statistics.median(found)


def look_ups(kept: Kept, kafka: Broker, keys: int, samples: int, patience_s: float) -> None:
    """A view over a table of so many keys: how fast it is loaded and asked."""
    servers, topic = kafka.bootstrap_servers, f"view-{keys}"
    kafka.create_topic(topic, PARTITIONS)
    fill(servers, topic, rows(keys))
    texts = {"default.key.serde": "string", "default.value.serde": "string"}
    builder = StreamsBuilder(f"views-{keys}", {**texts, "topology.optimization": "all"})
    builder.table(topic, store="rows")
    chance, told = random.Random(3), f"view of {keys:,} keys"
    with builder.stores({"bootstrap.servers": servers, "views.max.bytes": 16 << 30}) as stores:
        began = time.monotonic()
        view: Any = stores.store("rows", timeout=patience_s)
        kept.add(f"{told}, loaded, records/s", CONTENDERS[0], keys / (time.monotonic() - began))
        asked = [f"key{chance.randrange(keys)}" for _ in range(samples)]
        began = time.monotonic()
        for key in asked:
            view.get(key)
        kept.add(f"{told}, look-ups a second, one thread", CONTENDERS[0], samples / (time.monotonic() - began))
        list(view.range("key1", "key10"))  # the first range sorts
        began = time.monotonic()
        for number in range(100):
            for _ in zip(range(100), view.range(f"key{number}", None), strict=False):
                pass
        kept.add(f"{told}, ranges of 100 a second, one thread", CONTENDERS[0], 100 / (time.monotonic() - began))


AIMS = {"cache": 1.5, "every change": 2.0}
JAVA_THREADS = ("Java, 1 thread", "Java, 2 threads")
METHOD = """\
One machine: the broker (Moldau's, {partitions} partitions a topic) and one contender at a time share its cores. All run
exactly once (`exactly_once_v2`), on Spark `local[2]`. A contender starts on topics that are full; the rate is that of
the second half of the records, by what its group has committed: the first half is its warm-up. Word count: {words}
words a line of {keys:,} different ones, and the figure is words. Windowed count: one-minute windows with a minute of
grace. Joins: a table of {keys:,} rows. *cache*: 10 MB, the default of Kafka Streams; *every change*: no cache. Latency
is from sending a record to reading what came of it, one record at a time, through one keyed level, after {warm} of
them. A view is asked from the process that holds it. `python -m benchmarks.streams` makes this page.
"""


def page(kept: Kept) -> str:
    titles = [one.title for one in CONTENDERS]
    cores = f"{os.cpu_count()} cores, {field_of('/proc/cpuinfo', 'model name')}, Python {platform.python_version()}."
    lines = ["# Benchmarks: streams", "", cores, ""]
    lines += [f"| what | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for name, found in kept.rows.items():
        cells = (f"{found[title][0]:,.0f}" if title in found else "" for title in titles)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", *ratios(kept), "", METHOD.format(partitions=PARTITIONS, words=WORDS, keys=KEYS, warm=WARM)]
    return "\n".join([*lines, REMARKS.read_text()])


def ratios(kept: Kept) -> Iterator[str]:
    """Ours beside the better of Java's two, cache by cache, and beside Quix."""
    yield "| records/s of Moldau beside | " + " | ".join(f"Java, {how}" for how in AIMS) + " | Quix, every change |"
    yield "|---" * (len(AIMS) + 2) + "|"
    for name, found in kept.rows.items():
        if name in map(rate_row, RATES):
            figures = {title: figure for title, (figure, _) in found.items()}
            cells = [beside(figures, how, JAVA_THREADS) for how in AIMS]
            yield f"| {name} | {' | '.join([*cells, beside(figures, 'every change', ('Quix',))])} |"
    wanted = " | ".join(f"at least 1.0, aim {aim}" for aim in AIMS.values())
    yield f"| wanted | {wanted} | at least 5 |"


def beside(figures: dict[str, float], how: str, others: Sequence[str]) -> str:
    theirs = [figures[title] for other in others for title in (other, f"{other}, {how}") if title in figures]
    ours = figures.get(f"Moldau, {how}")
    return f"{ours / max(theirs):.2f}" if ours and theirs else ""


def rate_row(workload: str) -> str:
    return f"{workload}, {'words' if workload == 'words' else 'records'}/s"


def rates(
    kept: Kept, workloads: Sequence[str], records: int, chosen: Iterable[Contender], patience_s: float, again: bool
) -> None:
    """Each workload by each contender, on topics that are full."""
    with broker(AGELESS) as kafka, Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        servers = kafka.bootstrap_servers
        for topic in ("lines", "events", "table", "out"):
            kafka.create_topic(topic, PARTITIONS)
        if "words" in workloads:
            fill(servers, "lines", lines(records // WORDS))
        if set(workloads) - {"words"}:
            fill(servers, "events", events(records))
        fill(servers, "table", rows(KEYS))
        for name in workloads:
            for one in chosen:
                if name in one.workloads:
                    with kept.going_on(), started(one, name, servers, patience_s) as running:
                        rate = throughput(running, Progress(client, running.identity, name))
                        kept.add(rate_row(name), one, rate * (WORDS if name == "words" else 1), again)


def main(
    records: Annotated[int, typer.Option(help="Events; lines are a tenth.", min=1000)] = 2_000_000,
    samples: Annotated[int, typer.Option(help="Of latency.", min=10)] = 100,
    keys: Annotated[list[int] | None, typer.Option(help="Keys of views and state; repeatable.")] = None,
    contender: Annotated[list[str] | None, typer.Option(help="Only those whose title begins so; repeatable.")] = None,
    workload: Annotated[list[str] | None, typer.Option(help=f"Only these of {', '.join((*RATES, *MORE))}.")] = None,
    patience: Annotated[float, typer.Option(help="Seconds that a contender has for a workload.")] = 900.0,
    again: Annotated[bool, typer.Option(help="Keep the better of the rates of before and now.")] = False,
    keep: Annotated[bool, typer.Option(help="Write docs/benchmarks-streams.md.")] = True,
) -> None:
    """Measure streams beside Kafka Streams and Quix."""
    kept = Kept.read(Console())
    wanted = workload or [*RATES, *MORE]
    chosen = [one for one in CONTENDERS if not contender or one.title.startswith(tuple(contender))]
    rated = [name for name in RATES if name in wanted]
    if rated:
        rates(kept, rated, records, chosen, patience, again)
    if "state" in wanted:
        for number in keys or [1_000_000]:
            state(kept, number, records, [one for one in chosen if "keyed" in one.workloads], patience)
    if "latency" in wanted:
        with broker(AGELESS) as kafka:
            for topic in ("events", "out"):
                kafka.create_topic(topic, PARTITIONS)
            for one in chosen:
                if one.title.endswith("every change"):
                    with kept.going_on():
                        half, most = latency(kafka, one, samples, patience)
                        kept.add("latency of one keyed level, p50, ms", one, half)
                        kept.add("latency of one keyed level, p99, ms", one, most)
    if "views" in wanted:
        with broker(AGELESS) as kafka:
            for number in keys or [1_000_000]:
                look_ups(kept, kafka, number, 100_000, patience)
    if keep:
        PAGE.write_text(page(kept))


if __name__ == "__main__":
    typer.run(main)
