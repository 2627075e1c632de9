"""An application on Spark reports what it does, with its group's offsets, and counts its fallbacks over all workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.admin import groups
from moldau.client import Record
from moldau.operators.columns import NO_AGGREGATE
from moldau.plan.conveyor.background import Background
from moldau.spark.runner.reports import Fallback, Report, latest
from moldau.spark.runner.status import State
from moldau.streams import StreamsBuilder, String
from moldau.streams.application import application
from moldau.testing import eventually

from .conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = {"statestore.cache.max.bytes": 0, "default.key.serde": String(), "default.value.serde": String()}
ODD, FATAL = "odd", "fatal"


def aggregate(key: str, value: str, before: str) -> Any:
    if value == FATAL:
        raise ValueError("this model has no weights")
    return None if value == ODD else value


def choose(topic: str, key: str, value: str, count: int) -> Any:
    return [0] if value == ODD else 0


class Reporting:
    """An application with a sub-topology that remembers nothing and one that does, each of two partitions."""

    def __init__(self, spark: SparkSession, cluster: Cluster, home: Path) -> None:
        self.spark, self.cluster, self.home = spark, cluster, home
        self.kept, self.passed, self.out = cluster.topic(2), cluster.topic(2), cluster.topic()

    def start(self) -> Background:
        builder = StreamsBuilder(f"app-{self.out}", TEXTS)
        builder.stream(self.kept).group_by_key().aggregate(str, aggregate).to_stream().to(self.out)
        builder.stream(self.passed).map_values(str.lower).to(self.out, partitioner=choose)
        settings = {"bootstrap.servers": self.cluster.servers, "state.dir": str(self.home)}
        return Background(application(builder.build(), settings), self.spark, lambda state: None)

    def put(self, *values: str) -> None:
        """To each partition of both topics."""
        for topic in (self.kept, self.passed):
            for partition in range(2):
                rows = [Record(timestamp=at, key=b"%d" % at, value=one.encode()) for at, one in enumerate(values)]
                self.cluster.put(topic, *rows, partition=partition)

    def seen(self) -> tuple[dict[tuple[str, int], int], Report | None]:
        found = groups.committed(self.cluster.client, f"app-{self.out}")
        return {place: one.offset for place, one in found.items()}, latest(one.metadata for one in found.values())

    def has(self, state: State, offset: int, running: Background) -> bool:
        assert running.failure is None or state is State.FAILED
        offsets, report = self.seen()
        return report is not None and report.state is state and set(offsets.values()) == {offset}


@pytest.mark.timeout(900)
def test_an_application_reports_what_it_does_and_counts_fallbacks_over_all_workers(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    reporting = Reporting(spark, cluster, tmp_path)
    reporting.put("a", ODD, "b")
    running = reporting.start()
    try:
        eventually(lambda: reporting.has(State.RUNNING, 3, running), 240, "the first batch")
        report = reporting.seen()[1]
        assert report is not None and report.batch_at_ms is not None
        several = "a partitioner chose several partitions for a record, or none"
        if not running.status.restarts:  # of a busy machine: a batch that runs again is counted again
            assert report.fallbacks == (Fallback(0, 2, NO_AGGREGATE), Fallback(1, 2, several))
        assert [(one.sub_topology, one.reason) for one in report.fallbacks] == [(0, NO_AGGREGATE), (1, several)]
        reporting.put("c")
        eventually(lambda: reporting.has(State.RUNNING, 4, running), 240, "the second batch")
        assert running.status.fallbacks == sum(one.batches for one in report.fallbacks)
    finally:
        assert running.stop(240)
    assert reporting.has(State.STOPPED, 4, running)
    running = reporting.start()
    try:
        eventually(lambda: reporting.has(State.RUNNING, 4, running), 240, "a start without anything new")
        reporting.put(FATAL)
        eventually(lambda: reporting.has(State.FAILED, 4, running), 240, "the failure")
    finally:
        assert running.stop(240)
    report = reporting.seen()[1]
    assert report is not None and report.error is not None
    assert "this model has no weights" in report.error
    assert report.fallbacks == ()
