"""`python -m benchmarks.dlt_pipeline`: a source of dlt into a topic by a worker of Moldau, and by dlt's own pipeline
into files. Writes docs/connect/benchmarks-dlt.md."""

import contextlib
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import typer

from benchmarks import topics
from benchmarks.brokers import Broker, environment
from benchmarks.connect import JSON, counted, end, running
from benchmarks.connect_page import Keep, Only, Page, Row, Runs, Sample, Scale
from benchmarks.connect_workers import Worker, python
from benchmarks.places import CACHE, PROJECT, BenchError
from benchmarks.table import Metric

ROWS, OF_PAGE = 200_000, 1000
NUMBERS = itertools.count(1)
SOURCE = """\
import dlt


@dlt.resource(primary_key="id")
def rows(count, page):
    for first in range(1, count + 1, page):
        yield [row(number) for number in range(first, first + page)]


def row(number):
    return {"id": number, "word": f"a word of row {number}", "amount": number / 7, "even": number % 2 == 0}
"""
PIPELINE = """\
import sys

import dlt
from source import rows

folder, count, page = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
to = dlt.destinations.filesystem(bucket_url=f"file://{folder}/files")
dlt.pipeline("bench", destination=to, dataset_name="d", pipelines_dir=f"{folder}/state").run(rows(count, page))
"""


@dataclass(frozen=True)
class Place:
    """Where rows are measured: a broker, and a folder with the source."""

    broker: Broker
    home: Path
    rows: int


@dataclass(frozen=True)
class Pipeline:
    """dlt's own, in the place of a worker."""

    name: str = "dlt"


def run(place: Place, worker: Worker | Pipeline) -> Sample:
    """From nothing but a worker that runs, or from exec, until all rows are in the topic or in files."""
    return by_worker(place, worker) if isinstance(worker, Worker) else by_pipeline(place)


def by_pipeline(place: Place) -> Sample:
    folder = place.home / f"pipeline-{next(NUMBERS)}"
    folder.mkdir()
    command = [sys.executable, str(place.home / "pipeline.py"), str(folder), str(place.rows), str(OF_PAGE)]
    before, began = children_s(), time.monotonic()
    done = subprocess.run(command, cwd=place.home, env=environment(), capture_output=True, check=False)
    seconds, cpu = time.monotonic() - began, children_s() - before
    if done.returncode:
        raise BenchError(f"dlt's pipeline failed: {done.stderr.decode()[-500:]}")
    return {"per_second": place.rows / seconds, "cpu": cpu / place.rows * 1e6}


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_worker(place: Place, worker: Worker) -> Sample:
    with topics.topic(place.broker, 1) as topic:
        config = {
            "connector.class": "DltSource",
            "dlt.source": "source.rows",
            "dlt.arguments": json.dumps({"count": place.rows, "page": OF_PAGE}),
            "dlt.path": str(place.home),
            "topic.name.format": topic,
            "tap.interval.ms": "3600000",
            "key.converter": JSON,
            "value.converter": JSON,
        }
        there = end(place.broker, topic)
        return counted(worker, place.rows, config, lambda: there() >= place.rows)


WORKLOADS = (
    Row(
        "rows of a resource",
        run,
        (Metric("per_second", "rows", "k/s", 1e-3, at_least=0.8), Metric("cpu", "CPU", "s a million")),
        True,
        ("dlt", "moldau"),
    ),
)
METHOD = """\
`make bench-connect` makes this page. A resource of dlt {dlt} yields {rows:,} rows of a number, a text, a floating-point
number and a boolean, {page:,} at a time. On the left dlt's own pipeline writes them to files of JSON lines on the same
disk; on the right a worker of Moldau writes them to a topic, as JSON with schemas, exactly once. Broker, worker and
benchmark share the cores of one machine. Figures are medians of the runs, with their range.

- The pipeline counts from exec to its end, the worker from the request that creates the connector until all rows are
  in the topic; it starts a program with dlt, too. A first run of each is not counted.
- CPU is that of the pipeline, or of the worker with its children; not that of the broker.
- The load of the machine when this began was LOAD.
"""


@contextlib.contextmanager
def place(scale: float) -> Iterator[tuple[Place, list[Worker | Pipeline]]]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dlt-", dir=CACHE) as name, contextlib.ExitStack() as closing:
        home = Path(name)
        (home / "source.py").write_text(SOURCE)
        (home / "pipeline.py").write_text(PIPELINE)
        broker, workers = closing.enter_context(running(home, ("moldau", python, None)))
        yield Place(broker, home, int(ROWS * scale)), [Pipeline(), *workers]


DLT = Page(
    PROJECT / "docs" / "connect" / "benchmarks-dlt.md",
    "a source of dlt",
    WORKLOADS,
    place,
    METHOD.format(dlt=version("dlt"), rows=ROWS, page=OF_PAGE),
    theirs="dlt's pipeline",
)


def main(runs: Runs = 3, scale: Scale = 1.0, only: Only = None, keep: Keep = True) -> None:
    """Measure a source of dlt."""
    DLT.make(runs, scale, only, keep)


if __name__ == "__main__":
    typer.run(main)
