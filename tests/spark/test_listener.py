"""The listener: a query that starts waits for no Python, and leaves nothing behind in it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.spark.session.listener import GroupCommits

from .conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.needs("javac")
def test_queries_that_start_leave_no_threads_in_python(spark: SparkSession, tmp_path: Path) -> None:
    def start_and_stop(number: int) -> int:
        writer = spark.readStream.format("rate").load().writeStream.format("noop")
        writer.option("checkpointLocation", str(tmp_path / str(number))).start().stop()
        return threading.active_count()

    counts = [start_and_stop(number) for number in range(4)]
    assert counts[0] == counts[-1]


def test_ends_of_batches_go_to_the_groups_of_their_sources(cluster: Cluster) -> None:
    commits, topics = GroupCommits(), [cluster.topic(), cluster.topic()]
    options = [
        {"kafka.bootstrap.servers": cluster.servers, "subscribe": topic, "kafka.group.id": f"g-{topic}"}
        for topic in topics
    ]
    options += [{"kafka.bootstrap.servers": cluster.servers, "subscribe": "no group"}, {"wrong": "options"}]
    ends = [{"endOffset": {topic: {"0": number}}} for number, topic in enumerate(topics, 1)]
    sources = [*ends, {"endOffset": None}, {"endOffset": {"of-another-source": {"0": 9}}}]
    commits.accept(options, json.dumps({"runId": "a run", "sources": sources}))
    for number, topic in enumerate(topics, 1):
        assert cluster.committed(f"g-{topic}") == {(topic, 0): number}
