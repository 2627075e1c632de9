"""Queries under supervision: started again where that helps, stopped with a sentence where not, ended by a signal."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.spark.runner import START_S, Policy, QueryFailed, Supervised, Supervisor, run
from moldau.spark.runner.status import QueryStatus, State
from moldau.testing.ports import free_port
from tests.spark.conftest import Cluster
from tests.spark.sinks import committed
from tests.spark.test_sink import fill, once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = Policy(first_pause_s=0.1, most_pause_s=0.2, restarts=3, stop_s=30)


def copy(cluster: Cluster, source: str, target: str, change: Any = None, now: bool = True) -> Any:
    def query(spark: SparkSession) -> Any:
        frame = cluster.stream(spark, source, maxOffsetsPerTrigger=10).selectExpr("value")
        if change is not None:
            frame = frame.mapInArrow(change, "value binary")
        writer = frame.writeStream.format("moldau").option("kafka.bootstrap.servers", cluster.servers)
        writer = writer.option("topic", target)
        return writer.trigger(availableNow=True) if now else writer.trigger(processingTime="0 seconds")

    return query


def test_a_query_whose_worker_dies_is_started_again_and_comes_to_its_end(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, target = cluster.topic(partitions=2), cluster.topic()
    fill(cluster, source, 0, 30)
    definition = copy(cluster, source, target, once(tmp_path / "died"))
    found = run({"copy": definition}, spark, state_dir=str(tmp_path / "state"), policy=QUICK, progress=True)
    assert found["copy"].state is State.FINISHED
    assert found["copy"].restarts >= 1
    assert found["copy"].rows >= 20
    assert committed(cluster.client, target) == Counter(str(number) for number in range(30))
    assert "copy finished" in capfd.readouterr().err


def test_a_failure_that_does_not_pass_is_told_in_a_sentence(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    source = cluster.topic()
    cluster.put(source, "a")

    def broken(batches: Any) -> Any:
        raise ValueError("this model has no weights")

    with pytest.raises(QueryFailed, match=r"^Query copy failed: ValueError: this model has no weights$") as caught:
        run({"copy": copy(cluster, source, "never", broken)}, spark, state_dir=str(tmp_path), policy=QUICK)
    assert "Traceback" in caught.value.details


def test_an_option_that_is_wrong_is_not_tried_twice(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    def wrong(spark: SparkSession) -> Any:
        return copy(cluster, "nothing", "x")(spark).option("topc", "y")

    with pytest.raises(QueryFailed, match=r"nothing|topc"):
        run({"copy": wrong}, spark, state_dir=str(tmp_path), policy=QUICK)


def test_a_signal_ends_a_query_after_its_batch_and_the_page_tells_its_state(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    source, target = cluster.topic(partitions=2), cluster.topic()
    fill(cluster, source, 0, 10)
    seen: list[dict[str, Any]] = []
    port = free_port()

    def watch() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=5) as answer:
                    found = json.load(answer)["queries"][0]
            except OSError:
                found = {"batch": None}
            if found["batch"] is not None:
                seen.append(found)
                break
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=watch)
    thread.start()
    definition = copy(cluster, source, target, now=False)
    found = run({"copy": definition}, spark, state_dir=str(tmp_path), policy=QUICK, status_port=port)
    thread.join()
    assert found["copy"].state is State.STOPPED
    assert seen[0]["state"] == "running"
    assert committed(cluster.client, target) == Counter(str(number) for number in range(10))


class Slow:
    """A query as its supervisor sees it: a writer that is started, and then takes its time."""

    def __init__(self) -> None:
        self.isActive, self.lastProgress, self.status = False, None, {"message": "Initializing sources"}

    def queryName(self, name: str) -> Slow:
        return self

    def start(self) -> Slow:
        self.isActive = True
        return self


def test_few_queries_start_their_processes_at_a_time() -> None:
    slow: list[Any] = [Slow() for _ in range(5)]
    queries = [Supervised(str(n), lambda spark, one=one: one, QueryStatus(str(n))) for n, one in enumerate(slow)]
    spark: Any = object()
    supervisor = Supervisor(spark, queries, Policy(at_once=2))

    def started_at(now: float) -> int:
        supervisor.step(now)
        return sum(one.isActive for one in slow)

    assert [started_at(1.0), started_at(2.0)] == [2, 2]
    slow[0].status = {"message": "Waiting for data to arrive"}
    assert [started_at(3.0), started_at(4.0)] == [3, 3], "another one follows"
    assert started_at(1.0 + START_S) == 4, "Spark has given up the second by now"
    slow[2].isActive, slow[2].exception = False, lambda: RuntimeError("Python worker failed to connect back")
    assert started_at(12.0) == 4 and queries[2].status.state is State.RESTARTING
    assert queries[4].query is not None, "one that has failed is not waited for"
