"""The state of queries under supervision: as JSON, as metrics, and as one line in a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from moldau.spark.progress import lag


class State(StrEnum):
    """The state of a query."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


ENDED = frozenset({State.STOPPED, State.FINISHED, State.FAILED})


@dataclass(slots=True)
class QueryStatus:
    """What is known of a query from the last progress that Spark reported."""

    name: str
    state: State = State.STARTING
    id: str | None = None
    batch: int | None = None
    batches: int = 0
    rows: int = 0
    rows_per_s: float = 0.0
    lag: int | None = None
    durations_ms: dict[str, int] = field(default_factory=dict)
    state_rows: int = 0
    state_bytes: int = 0
    restarts: int = 0
    fallbacks: int = 0  # batches of sub-topologies that a streams application processed record by record
    error: str | None = None

    def take(self, progress: Mapping[str, Any]) -> bool:
        """Note a progress as Spark's JSON has it; return whether it is of a new batch."""
        new = progress["batchId"] != self.batch
        self.id, self.batch = progress["id"], progress["batchId"]
        self.rows_per_s = number(progress.get("processedRowsPerSecond"))
        self.durations_ms = {name: int(value) for name, value in progress.get("durationMs", {}).items()}
        self.lag = lag_of(progress)
        operators = progress.get("stateOperators", ())
        self.state_rows = sum(int(one.get("numRowsTotal", 0)) for one in operators)
        self.state_bytes = sum(int(one.get("memoryUsedBytes", 0)) for one in operators)
        if new:
            self.batches += 1
            self.rows += int(progress.get("numInputRows", 0))
        return new


def number(value: Any) -> float:
    """Return a rate; Spark gives null or NaN where there is none."""
    rate = float(value or 0.0)
    return rate if math.isfinite(rate) else 0.0


def lag_of(progress: Mapping[str, Any]) -> int | None:
    """Count the records that wait in the topics of our sources; None where no source is ours."""
    waiting = [lag(source) for source in progress.get("sources", ()) if source.get("latestOffset")]
    known = [one for one in waiting if one]
    return sum(sum(one.values()) for one in known) if known else None


def to_json(statuses: Iterable[QueryStatus]) -> str:
    return json.dumps({"queries": [asdict(one) for one in statuses]})


def line(statuses: Iterable[QueryStatus], width: int) -> str:
    """Return all queries in one line of a terminal."""
    return " | ".join(_part(one) for one in statuses)[:width]


def _part(one: QueryStatus) -> str:
    if one.state is not State.RUNNING or one.batch is None:
        return f"{one.name} {one.state}"
    waiting = "" if one.lag is None else f"  lag {one.lag:,}"
    seconds = one.durations_ms.get("triggerExecution", 0) / 1000
    return f"{one.name} batch {one.batch}  {one.rows_per_s:,.0f} rows/s{waiting}  {seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class Row:
    """A metric: its name, its help text, and its field in a status."""

    name: str
    help: str
    field: str
    counter: bool = False


TABLE = (
    Row("moldau_spark_query_batches", "Batches that were completed since the runner started.", "batches", True),
    Row("moldau_spark_query_rows", "Rows that were read since the runner started.", "rows", True),
    Row("moldau_spark_query_restarts", "How often the query was started again after a failure.", "restarts", True),
    Row("moldau_spark_query_fallbacks", "Batches that were processed record by record.", "fallbacks", True),
    Row("moldau_spark_query_batch_id", "The number of the last batch.", "batch"),
    Row("moldau_spark_query_rows_per_second", "Rows that the last batch processed in a second.", "rows_per_s"),
    Row("moldau_spark_query_lag_records", "Records that wait in the topics that are read.", "lag"),
    Row("moldau_spark_query_state_rows", "Rows of state.", "state_rows"),
    Row("moldau_spark_query_state_bytes", "Memory of state.", "state_bytes"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Metrics:
    """A collector of prometheus_client over statuses that change."""

    statuses: Mapping[str, QueryStatus]

    def collect(self) -> Iterator[Metric]:
        for row in TABLE:
            family = (CounterMetricFamily if row.counter else GaugeMetricFamily)(row.name, row.help, labels=["query"])
            for one in self.statuses.values():
                if (value := getattr(one, row.field)) is not None:
                    family.add_metric([one.name], value)
            yield family
        state = GaugeMetricFamily(
            "moldau_spark_query_state", "1 for the state that it is in.", labels=["query", "state"]
        )
        seconds = GaugeMetricFamily(
            "moldau_spark_query_duration_seconds", "What parts of the last batch took.", labels=["query", "part"]
        )
        for one in self.statuses.values():
            for name in State:
                state.add_metric([one.name, name], float(one.state is name))
            for part, ms in one.durations_ms.items():
                seconds.add_metric([one.name, part], ms / 1000)
        yield state
        yield seconds
