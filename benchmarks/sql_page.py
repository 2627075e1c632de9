"""docs/benchmarks-sql.md: the figures of `benchmarks.sql` and `benchmarks.sql_spark`, kept between runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.places import CACHE, PROJECT
from benchmarks.report import machine, said
from benchmarks.streams import Kept as Rates

PAGE = PROJECT / "docs" / "benchmarks-sql.md"
REMARKS = PROJECT / "benchmarks" / "sql-remarks.md"
KEPT, RATES, CPU_RATES = CACHE / "sql.json", CACHE / "sql-rates.json", CACHE / "sql-cpu.json"
SERVER, SPARK = "server", "spark"  # the tables of rows
SQL, DSL = "SQL", "Moldau's DSL"
JAVA = ("Java, 1 thread", "Java, 2 threads")
CONTENDERS = (SQL, DSL, *JAVA)
HEAD = """# Benchmarks of SQL

`python -m benchmarks.sql` makes the first table of this page, `python -m benchmarks.sql_spark` the others. Figures are
kept between runs.

## The server
Broker, server and client share the cores of one machine, over loopback. A caller waits for each answer before it asks
again; callers are threads of one process with Python's `http.client`, which takes about as much CPU as the server for a
request. Every pull query asks for another key, and sees all that is in the table's topic when it begins. A row that is
measured several times shows the median. On a machine with other loads everything takes longer.
"""
ON_SPARK = """
## Queries on Spark
The same over JSON values: in SQL (a server and `moldau worker`), in [streams](streams.md), and in Java's Kafka Streams
with hand-written classes and Jackson. All run exactly once, on one broker and 2 partitions a topic, and forward every
change; Spark is `local[2]`. A contender starts on a topic that is full; the rate is that of the second half of the
records, by what its group has committed. *filter*: a condition, an upper case and a product. *group*: COUNT and SUM by
key, 10,000 keys. *window*: COUNT in windows of a minute. *join*: a stream with a table of 10,000 rows.
"""
CPU = """
## CPU time
A batch of the same in one process, without Spark (`python -m benchmarks.sql_cpu`): records for a second of CPU time.
What Spark and the broker add is the same for both.
"""
MANY = """
## Many queries
Persistent queries, a third of them with state, in a server and a worker. Memory is the proportional set size of both
with all that the worker starts; CPU is that of both, too, in cores. Under load all queries together read 1,000 records
a second. A latency is from the time of a record to its result, read with `read_committed`.
"""


@dataclass(slots=True)
class Kept:
    """Rows of both tables of figures: by title the figure, the floor, the aim, and when they were measured."""

    rows: dict[str, dict[str, list[str]]] = field(default_factory=lambda: {SERVER: {}, SPARK: {}})

    @classmethod
    def read(cls) -> Kept:
        return cls(json.loads(KEPT.read_text())) if KEPT.exists() else cls()

    def add(self, table: str, title: str, figure: str, floor: str = "", aim: str = "") -> None:
        self.rows[table][title] = [figure, floor, aim, when()]
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(json.dumps(self.rows, indent=1))
        print(f"{title}: {figure} ({self.rows[table][title][-1]})", flush=True)


def when() -> str:
    """The commit, the date and the load of the machine."""
    load = f"{os.getloadavg()[0]:.1f}"
    return f"{said('git', 'rev-parse', '--short', 'HEAD')}, {time.strftime('%Y-%m-%d')}, load {load}"


def page(kept: Kept, rates: Rates, cpu: Rates) -> str:
    return "\n".join(
        [
            HEAD,
            *table(kept.rows[SERVER]),
            ON_SPARK,
            *rates_table(rates, CONTENDERS),
            CPU,
            *rates_table(cpu, (SQL, DSL)),
            MANY,
            *table(kept.rows[SPARK]),
            "",
            *(f"- {name}: {text}" for name, text in machine().items() if name != "date"),
            "",
            REMARKS.read_text().strip() if REMARKS.exists() else "",
            "",
        ]
    )


def table(rows: dict[str, list[str]]) -> Iterator[str]:
    if not rows:
        yield "Not measured yet."
        return
    yield "| | figure | floor of the design | aim | measured |"
    yield "|---|---|---|---|---|"
    for title, cells in rows.items():
        yield f"| {title} | {' | '.join(cells)} |"


def rates_table(rates: Rates, contenders: tuple[str, ...]) -> Iterator[str]:
    """A row for each workload; beside Java only where it took part."""
    if not rates.rows:
        yield "Not measured yet."
        return
    others: dict[str, tuple[tuple[str, ...], str]] = {"SQL : DSL": ((DSL,), "at least 0.9, aim 1.2")}
    if set(JAVA) & set(contenders):
        others["SQL : Java"] = (JAVA, "at least 1.0, aim 1.5")
    yield f"| records/s | {' | '.join([*contenders, *others])} |"
    yield "|---" * (len(contenders) + len(others) + 1) + "|"
    for workload, found in rates.rows.items():
        figures = {title: figure for title, (figure, _) in found.items()}
        cells = [f"{figures[title]:,.0f}" if title in figures else "" for title in contenders]
        yield f"| {workload} | {' | '.join([*cells, *(ratio(figures, theirs) for theirs, _ in others.values())])} |"
    yield f"| wanted |{' |' * len(contenders)} {' | '.join(wanted for _, wanted in others.values())} |"


def ratio(figures: dict[str, float], others: tuple[str, ...]) -> str:
    """SQL beside the better of others."""
    theirs = [figures[title] for title in others if title in figures]
    return f"{figures[SQL] / max(theirs):.2f}" if SQL in figures and theirs else ""


def write() -> None:
    from rich.console import Console

    rates, cpu = (Rates.read(Console(), path) for path in (RATES, CPU_RATES))
    PAGE.write_text(page(Kept.read(), rates, cpu), "utf-8")
