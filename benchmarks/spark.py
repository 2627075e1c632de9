"""`python -m benchmarks.spark`: topics to Spark, beside Spark's own Kafka source in Java, on the same broker.

Spark's source is not in the wheel. It comes from Maven, of the newest version there, with a PySpark of that version in
an environment of its own (`.cache/spark-own`). Writes docs/benchmarks-spark.md; with `--only small`, say, the rows of
that page whose names have the word in them.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tests import needs
from tests.registry.running import running
from tests.spark import tables

from benchmarks.places import PROJECT, BenchError, script
from benchmarks.report import field_of
from benchmarks.serdes import ORDER, order
from moldau.serdes.arrow.converters import columns
from moldau.serdes.context import Context
from moldau.serdes.registry import Registry
from moldau.testing import Broker, broker

PAGE = PROJECT / "docs" / "benchmarks-spark.md"
REMARKS = PROJECT / "benchmarks" / "spark-remarks.md"
HEAD = ("what", "Spark's own", "Moldau", "ratio", "expected", "aim")
HOME = PROJECT / ".cache" / "spark-own"
SPARK = "4.2.0"
JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),  # the newest there
    ("org.apache.spark", "spark-avro_2.13", "4.1.1"),  # the newest there
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
    ("org.tukaani", "xz", "1.10"),
)
COMMON = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}
SMALL_SECONDS = 20
FIRST = {"kind": "first batch", "topic": "of-1", "starting": "earliest"}
GROWTH = (1, 10, 100)  # partitions
WORKER = "moldau.spark.daemon"


@dataclass(slots=True)
class Contender:
    """A Spark of either kind, running."""

    title: str
    process: subprocess.Popen[str]
    start_s: float = 0.0
    first_s: float = 0.0

    @classmethod
    def started(cls, title: str, python: Path, kafka: Broker, **given: Any) -> "Contender":
        command = [str(python), *script("spark_job.py")]
        told = json.dumps({"master": "local[2]", "conf": COMMON, **given})
        with (HOME / f"{given['format']}.log").open("w") as log:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
            made = cls(title, subprocess.Popen([*command, told], text=True, cwd=PROJECT, **pipes))
        made.start_s = made.answer()
        made.first_s = made.ask(**FIRST, servers=kafka.bootstrap_servers)
        return made

    def ask(self, **work: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(work) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("RESULT"):
                return json.loads(line[len("RESULT") :])
        raise BenchError(f"{self.title} ended before it answered (exit {self.process.wait()}): see the log in {HOME}.")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


@dataclass(slots=True)
class Row:
    title: str
    unit: str
    work: dict[str, Any]
    expected: float
    aim: float
    more_is_better: bool = True
    found: dict[str, list[float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        ours, theirs = (statistics.median(self.found[title]) for title in ("Moldau", "Spark's own"))
        return ours / theirs

    @property
    def cells(self) -> list[str]:
        theirs, ours = (shown(self.found[title]) for title in ("Spark's own", "Moldau"))
        sign = "≥" if self.more_is_better else "≤"
        bounds = [f"{sign} {bound}" for bound in (self.expected, self.aim)]
        return [f"{self.title}, {self.unit}", theirs, ours, f"{self.ratio:.2f}", *bounds]


def own_python() -> Path:
    """An environment with the PySpark that the jars belong to."""
    python, done = HOME / "bin" / "python", HOME / f"pyspark-{SPARK}"
    if not done.exists():
        venv.create(HOME, with_pip=True)
        needed = [f"pyspark=={SPARK}", "pyarrow", "pandas<3", "setuptools"]
        run("PySpark could not be installed", str(python), "-m", "pip", "install", "-q", *needed)
        done.touch()
    return python


def own_jars() -> str:
    found = needs.find("mvn")
    if not found.path:
        raise BenchError(f"No mvn here ({found.reason}). To have it: {needs.table()['mvn'].had_by}.")
    folder = HOME / "jars"
    for group, name, version in JARS:
        if not (folder / f"{name}-{version}.jar").exists():
            coordinates = f"-Dartifact={group}:{name}:{version}"
            goal = ["dependency:copy", coordinates, f"-DoutputDirectory={folder}", "-Dmdep.useBaseVersion=true"]
            run(f"{name} {version} could not be fetched", "mvn", "-q", "-B", *goal)
    return ",".join(str(folder / f"{name}-{version}.jar") for _, name, version in JARS)


def run(fault: str, *command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise BenchError(f"{fault}: {(done.stdout + done.stderr).strip()[:300]}")


def fill(kafka: Broker, topic: str, values: list[bytes], count: int, partitions: int) -> str:
    """So many records of these values in turn, evenly over the partitions."""
    kafka.create_topic(topic, partitions)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 50, "batch.size": 65536})
    for number in range(count):
        while True:
            try:
                producer.produce(topic, values[number % len(values)], b"user-%d" % (number % 1000), number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise BenchError(f"{topic} was not filled in time.")
    return topic


@contextmanager
def trickle(kafka: Broker, topic: str) -> Iterator[None]:
    """A hundred records every 200 ms, until the end."""
    over = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 1})
        while not over.wait(0.2):
            for number in range(100):
                producer.produce(topic, b"x" * 100, b"user-%d" % number)
            producer.poll(0)
        producer.flush(10)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def workloads(kafka: Broker, url: str, count: int, partitions: int) -> list[Row]:
    servers = kafka.bootstrap_servers
    plain = fill(kafka, "plain", [b"x" * 100], count, partitions)
    text = json.dumps(ORDER)
    typed = columns("avro", Registry(SchemaRegistryClient({"url": url})), text)
    here = Context("avro")
    orders = pa.array([order(number) for number in range(1000)], typed.type(here))
    avro = fill(kafka, "avro", typed.from_arrow(orders, here).values.to_pylist(), count // 2, partitions)
    for name in ("small", "copy", "small-copy"):
        kafka.create_topic(name, partitions)
    all_of = {"kind": "everything", "servers": servers, "starting": "earliest"}
    small: dict[str, Any] = {"kind": "small batches", "servers": servers, "topic": "small", "starting": "latest"}
    small["seconds"] = SMALL_SECONDS
    rows = [
        Row("topic to noop", "k rows/s", {**all_of, "topic": plain, "rows": count}, 1.0, 1.5),
        Row("Avro to columns", "k rows/s", {**all_of, "topic": avro, "rows": count // 2, "avro": text}, 1.0, 2.0),
        Row("topic to topic", "k rows/s", {**all_of, "topic": plain, "rows": count, "into": "copy"}, 1.0, 2.0),
        Row("small micro-batch topic to topic, p50", "ms", {**small, "into": "small-copy"}, 1.0, 0.5, False),
        Row("small micro-batch to noop, p50", "ms", small, 1.0, 0.5, False),
    ]
    for number in GROWTH:
        topic = fill(kafka, f"of-{number}", [b"x" * 100], count // 2, number)
        title = f"topic to noop, {number} partition{'s' if number > 1 else ''}"
        rows.append(Row(title, "k rows/s", {**all_of, "topic": topic, "rows": count // 2}, 1.0, 1.5))
    return rows


def measure(row: Row, contender: Contender, kafka: Broker, url: str) -> None:
    work = dict(row.work)
    if contender.title == "Moldau" and "avro" in work:
        work["options"] = {"value.format": "avro", "schema.registry.url": url}
    if work["kind"] == "small batches":
        with trickle(kafka, work["topic"]):
            found = contender.ask(**work)
    else:
        found = contender.ask(**work) / 1000
    row.found.setdefault(contender.title, []).append(found)


METHOD = """\
One machine: broker (Moldau's) and Spark share its cores, `local[2]`. Both Sparks are up during the run, and one works
at a time; runs alternate, the first is not counted, the figure is the median and its range. Records have 100 bytes in
{partitions} partitions, {count:,} of them; orders are those of [benchmarks-serdes.md](benchmarks-serdes.md), half as
many. Rows a second are by the time that Spark says its batches took; `noop` is Spark's sink that does nothing. Small
batches are what a hundred records every 200 ms make, without a trigger. Into a topic ours writes exactly once, Spark's
own at least once. Ours is PySpark {ours} with the session of
docs/spark.md; Spark's own source is of {theirs} with default settings, and reads Avro by `from_avro` behind the first
five bytes. `python -m benchmarks.spark` makes this page.
"""


def page(rows: list[Row], contenders: list[Contender], workers: list[tuple[int, int]], told: str) -> str:
    cores = f"{os.cpu_count()} cores, {field_of('/proc/cpuinfo', 'model name')}, Python {platform.python_version()}."
    lines = [
        "# Benchmarks: Spark",
        "",
        cores,
        "",
        "<!-- rows -->",
        tables.markdown(HEAD, (row.cells for row in rows)),
        "<!-- end of rows -->",
        "",
        "| start of a program | until the session is there | until the first batch is done |",
        "|---|---|---|",
    ]
    lines += [f"| {one.title} | {one.start_s:.1f} s | {one.first_s:.1f} s |" for one in contenders]
    own, all_of_it = (max((sizes[part] for sizes in workers), default=0) / 1024 for part in (0, 1))
    lines += ["", f"Of {len(workers)} Python workers after all that, the largest has {own:.0f} MB of its own, and"]
    lines += [f"{all_of_it:.0f} MB with what it shares with others.", "", told, REMARKS.read_text()]
    return "\n".join(lines)


def shown(found: list[float]) -> str:
    return f"{statistics.median(found):,.0f} ({min(found):,.0f}–{max(found):,.0f})"


def main(
    rows: Annotated[int, typer.Option(help="Records of the large topic.", min=1000)] = 2_000_000,
    partitions: Annotated[int, typer.Option(min=1)] = 6,
    runs: Annotated[int, typer.Option(min=1)] = 3,
    only: Annotated[str, typer.Option(help="Only what has this word in its name.")] = "",
    keep: Annotated[bool, typer.Option(help="Write docs/benchmarks-spark.md.")] = True,
) -> None:
    """Measure the source beside Spark's own."""
    console = Console()
    python, jars = own_python(), own_jars()
    with broker() as kafka, running(kafka.bootstrap_servers) as registry:
        made = [row for row in workloads(kafka, registry.url, rows, partitions) if only in row.title]
        contenders = [
            Contender.started("Spark's own", python, kafka, format="kafka", jars=jars),
            Contender.started("Moldau", Path(sys.executable), kafka, format="moldau"),
        ]
        try:
            for number in track(range(runs + 1), "runs", console=console):
                for row in made:
                    for contender in contenders:
                        measure(row, contender, kafka, registry.url)
                    if number == 0:
                        row.found.clear()
            workers = contenders[1].ask(kind="workers", module=WORKER)
        finally:
            for contender in contenders:
                contender.close()
    table = Table(*HEAD)
    for row in made:
        table.add_row(*row.cells)
    console.print(table)
    if keep and only:
        tables.put(PAGE, "rows", HEAD, [row.cells for row in made])
    elif keep:
        told = METHOD.format(partitions=partitions, count=rows, ours=metadata.version("pyspark"), theirs=SPARK)
        PAGE.write_text(page(made, contenders, workers, told))


if __name__ == "__main__":
    typer.run(main)
