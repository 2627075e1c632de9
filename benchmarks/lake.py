"""`python -m benchmarks.lake`: topics into tables of Iceberg and Delta, beside Apache Iceberg's own sink in a worker of
Apache Connect. Writes docs/connect/benchmarks-lake.md."""

import contextlib
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from tests import needs
from tests.connect.lake.rest_catalog import rest_catalog
from tests.needs import KAFKA_VERSION, SINK_VERSION

from benchmarks import topics
from benchmarks.brokers import Broker
from benchmarks.connect import JSON, fill, running
from benchmarks.connect_page import Keep, Only, Page, Row, Runs, Sample, Scale
from benchmarks.connect_workers import Worker, java, python
from benchmarks.places import CACHE, PROJECT, BenchError
from benchmarks.table import Metric

ICEBERG = "org.apache.iceberg.connect.IcebergSinkConnector"
RECORDS, INTERVAL_MS = 500_000, 1000
NUMBERS = itertools.count(1)
SCHEMA = (
    b'{"type":"struct","fields":[{"type":"int64","field":"id","optional":false},'
    b'{"type":"string","field":"word","optional":false},{"type":"double","field":"amount","optional":false}]}'
)


@dataclass(frozen=True)
class Place:
    """Where rows are measured: a broker, a catalog, and a topic with records whose ids repeat `keys` times."""

    broker: Broker
    home: Path
    catalog: str
    topic: str
    records: int


def values(records: int) -> Iterator[bytes]:
    """Make records that have each id of half as many twice."""
    for number in range(records):
        row = b'{"schema":%s,"payload":{"id":%d,"word":"word %d","amount":%f}}'
        yield row % (SCHEMA, number % (records // 2), number, number / 7)


class Delta:
    """A table in a folder."""

    def __init__(self, place: Place, *, upsert: bool) -> None:
        self._path = place.home / f"delta-{next(NUMBERS)}"
        self.config = {
            "connector.class": "DeltaSink",
            "delta.table": str(self._path),
            "delta.auto-create-enabled": "true",
            "delta.commit.interval-ms": str(INTERVAL_MS),
            **({"delta.upsert-mode-enabled": "true", "delta.id-columns": "id"} if upsert else {}),
        }

    def size(self) -> dict[str, float]:
        """Return rows, data files and commits; nothing before there is a table."""
        deltalake = import_module("deltalake")
        try:
            table = deltalake.DeltaTable(self._path)
        except import_module("deltalake.exceptions").TableNotFoundError:
            return {"rows": 0}
        actions = table.get_add_actions(flatten=True)
        rows = sum(import_module("pyarrow").table(actions)["num_records"].to_pylist())
        return {"rows": rows, "files": len(table.file_uris()), "commits": table.version()}


class Iceberg:
    """A table of the REST catalog."""

    def __init__(self, place: Place, *, upsert: bool) -> None:
        self._name = f"db.t{next(NUMBERS)}"
        self._catalog = import_module("pyiceberg.catalog").load_catalog("rest", type="rest", uri=place.catalog)
        self.config = {
            "connector.class": ICEBERG,
            "iceberg.tables": self._name,
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": place.catalog,
            "iceberg.control.commit.interval-ms": str(INTERVAL_MS),
            "iceberg.control.topic": "control",
            "iceberg.kafka.bootstrap.servers": place.broker.address,
            **(
                {"iceberg.tables.upsert-mode-enabled": "true", "iceberg.tables.default-id-columns": "id"}
                if upsert
                else {}
            ),
        }

    def size(self) -> dict[str, float]:
        try:
            table = self._catalog.load_table(self._name)
        except import_module("pyiceberg.exceptions").NoSuchTableError:
            return {"rows": 0}
        snapshot = table.current_snapshot()
        if snapshot is None:
            return {"rows": 0}
        rows, files = (int(snapshot.summary[f"total-{what}"]) for what in ("records", "data-files"))
        return {"rows": rows, "files": files, "commits": len(table.snapshots())}


def sink(kind: Callable[..., Any], place: Place, worker: Worker, *, upsert: bool = False) -> Sample:
    """From the request that creates the connector until all records are in the table."""
    table = kind(place, upsert=upsert)
    wanted, name = place.records // (2 if upsert else 1), f"c{next(NUMBERS)}"
    more = {"topics": place.topic, "value.converter": JSON, "value.converter.schemas.enable": "true"}
    cpu, began = worker.cpu_s(), time.monotonic()
    with worker.connector(name, table.config | more):
        is_done = lambda: table.size()["rows"] >= wanted and (not upsert or at_end(place, name))  # noqa: E731
        worker.wait(is_done, "end of the run", 0.2)
        seconds, cpu = time.monotonic() - began, worker.cpu_s() - cpu
    found = table.size()
    if found["rows"] != wanted:
        raise BenchError(f"{worker.name} has {found['rows']:.0f} rows and not {wanted}.")
    return {"per_second": place.records / seconds, "cpu": cpu / place.records * 1e6, **found}


def at_end(place: Place, name: str) -> bool:
    """Tell whether all records of the topic are committed by a sink's group."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    group = ConsumerGroupTopicPartitions(f"connect-{name}")
    (found,) = topics.ask(place.broker, lambda admin: admin.list_consumer_group_offsets([group]))
    return any(one.offset >= place.records for one in found.topic_partitions)


def figures(floor: float) -> tuple[Metric, ...]:
    return (
        Metric("per_second", "records", "k/s", 1e-3, floor=floor),
        Metric("cpu", "worker CPU", "s a million"),
        Metric("files", "data files", ""),
        Metric("commits", "commits", ""),
    )


WORKLOADS = (
    Row("topic to Iceberg", partial(sink, Iceberg), figures(150.0), True),
    Row("topic to Iceberg, upsert", partial(sink, Iceberg, upsert=True), figures(30.0), True, workers=("moldau",)),
    Row("topic to Delta", partial(sink, Delta), figures(150.0), True, workers=("moldau",)),
    Row("topic to Delta, upsert", partial(sink, Delta, upsert=True), figures(30.0), True, workers=("moldau",)),
)
METHOD = """\
`make bench-connect` makes this page. Our sinks write a topic to tables of Apache Iceberg's REST catalog and of Delta;
on the left Apache Iceberg's own sink {sink}, which has no upserts, does it in a worker of Apache Connect {kafka}. Each
of {records:,} records of JSON with schemas has a number, a text and a floating-point number; in the rows of upserts
half of them replace others. Tables are committed every {interval} ms; all other settings are the defaults. Broker,
catalog, both workers and the benchmark share the cores of one machine. Figures are medians of the runs, with their
range.

- Records a second count from the request that creates the connector until the table has them all. A first run of each
  row and worker is not counted. CPU is that of the worker alone.
- The load of the machine when this began was LOAD.
"""


@contextlib.contextmanager
def place(scale: float) -> Iterator[tuple[Place, list[Worker]]]:
    found = needs.find("iceberg-sink-jars")
    if found.path is None:
        raise BenchError(f"Apache Iceberg's sink is not here ({found.reason}).")
    CACHE.mkdir(parents=True, exist_ok=True)
    records = int(RECORDS * scale)
    with tempfile.TemporaryDirectory(prefix="lake-", dir=CACHE) as name, contextlib.ExitStack() as closing:
        home = Path(name)
        catalog = closing.enter_context(rest_catalog(home)).url
        import_module("pyiceberg.catalog").load_catalog("rest", type="rest", uri=catalog).create_namespace("db")
        broker, workers = closing.enter_context(running(home, ("kafka", java, found.path), ("moldau", python, None)))
        topics.create(broker, "control", 1)
        with topics.topic(broker, 1) as topic:
            fill(broker, topic, values(records))
            yield Place(broker, home, catalog, topic, records), workers


FACTS = {"sink": SINK_VERSION, "kafka": KAFKA_VERSION, "records": RECORDS, "interval": INTERVAL_MS}
LAKE = Page(
    PROJECT / "docs" / "connect" / "benchmarks-lake.md",
    "tables of Iceberg and Delta",
    WORKLOADS,
    place,
    METHOD.format(**FACTS),
)


def main(runs: Runs = 3, scale: Scale = 1.0, only: Only = None, keep: Keep = True) -> None:
    """Measure the sinks of tables."""
    LAKE.make(runs, scale, only, keep)


if __name__ == "__main__":
    typer.run(main)
