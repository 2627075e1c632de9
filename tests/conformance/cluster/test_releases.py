"""Clusters of an older release's metadata.version: Moldau under Kafka's controller, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.client import Client
from tests.cluster.clients import PARTITIONS, admin, batches_of, create, is_placed, placements, produce, read
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually

pytestmark = pytest.mark.needs("java", "kafka-jars")
LEVELS = {"3.9": 21, "4.0": 25, "4.1": 27, "4.2": 29}


@pytest.fixture(
    scope="module",
    params=[("3.9", KAFKA, MOLDAU), ("4.1", KAFKA, MOLDAU), ("4.1", MOLDAU, KAFKA)],
    ids=["3.9-under-kafka", "4.1-under-kafka", "4.1-under-moldau"],
)
def pair(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    release, first, second = request.param
    nodes = {1: (first, "broker,controller"), 2: (second, "broker")}
    with cluster(kafka_libs, tmp_path_factory.mktemp("pair"), nodes, release=release) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == {1, 2})
        with Client({"bootstrap.servers": made[2].address}) as client:
            assert client.features()["metadata.version"] == LEVELS[release]
        yield made


def test_both_sides_lead_follow_and_coordinate(pair: Cluster) -> None:
    create(pair, "t")
    eventually(lambda: {leader for leader, _ in placements(pair, "t").values()} == {1, 2})
    produce(pair, "t", range(2000))
    pair[2].leave()
    eventually(lambda: is_placed(pair, "t", 1, [1]))
    produce(pair, "t", range(2000, 3000))
    pair[2].start()
    pair[2].await_port()
    eventually(lambda: is_placed(pair, "t", None, [1, 2]))
    produce(pair, "t", range(3000, 3100))
    assert read(pair, "t", 3100) == list(range(3100))
    eventually(lambda: batches_of(pair, 1, "t") == batches_of(pair, 2, "t"))


def test_transactions_end_on_both_sides(pair: Cluster) -> None:
    create(pair, "exact")
    count = 0
    for number in range(6):
        producer = Producer(pair.client(transactional_id=f"t{number}", transaction_timeout_ms=30_000))
        producer.init_transactions(60)
        for commit in (True, False):
            producer.begin_transaction()
            for index in range(PARTITIONS):
                producer.produce("exact", str(count if commit else -1), partition=index)
                count += commit
            assert producer.flush(60) == 0
            producer.commit_transaction(60) if commit else producer.abort_transaction(60)
    assert {leader for leader, _ in placements(pair, "__transaction_state").values()} == {1, 2}
    assert read(pair, "exact", count, isolation_level="read_committed") == list(range(count))
    eventually(lambda: batches_of(pair, 1, "exact") == batches_of(pair, 2, "exact"))
