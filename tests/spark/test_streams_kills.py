"""A short campaign of kills under a streams application, in the Java that all tests share: `make chaos-streams` is the
long one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.client import Client, Record, build, produce
from moldau.plan.conveyor.background import Background
from moldau.testing import Broker
from moldau.wire.numbers import murmur2

from .chaos import FIRST_MS, KEYS, PARTITIONS, Reader, kill, make_topics, python_workers
from .chaos_streams import Counts, expected
from .chaos_streams_driver import made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUND = 200
PATIENCE_S = 240.0


def feed(client: Client, numbers: range) -> None:
    """As the feed of the campaign, at once."""
    for topic in ("in", "right"):
        batches: dict[int, list[Record]] = {}
        for number in numbers:
            key = str(number % KEYS).encode()
            row = Record(timestamp=FIRST_MS + number, key=key, value=str(number).encode())
            batches.setdefault(murmur2(key) % PARTITIONS, []).append(row)
        for partition, rows in batches.items():
            produce(client, topic, partition, build(rows))


@contextmanager
def running(servers: str, folder: Path, spark: SparkSession) -> Iterator[Background]:
    application = Background(made(servers, str(folder), 150), spark, lambda state: None)
    try:
        yield application
    finally:
        application.stop(PATIENCE_S)


@pytest.mark.timeout(1500)
def test_each_record_is_counted_and_joined_once_though_workers_and_the_broker_are_killed(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    servers = kafka.bootstrap_servers
    make_topics(servers, "in", "right", "out", "counts")
    joined, counts = Reader(servers, "out"), Counts(servers)
    with running(servers, tmp_path, spark) as application, Client({"bootstrap.servers": servers}) as client:
        for number in range(3):
            feed(client, range(number * ROUND, (number + 1) * ROUND))
            if number == 1:
                for worker in python_workers(os.getpid()):
                    kill(worker)
            elif number == 2:
                kafka.kill()
                kafka.start()
            fed, until = (number + 1) * ROUND, time.monotonic() + PATIENCE_S
            while len(joined.seen) < fed or counts.last != expected(fed):
                assert application.failure is None, application.failure
                assert time.monotonic() < until, f"{len(joined.seen)} of {fed} records came"
                joined.read(0.5)
                counts.read(0.5)
    joined.close()
    counts.close()
    assert (joined.doubled, joined.disorder, counts.wrong) == (0, 0, 0)
