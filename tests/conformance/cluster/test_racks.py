"""Consumers that read from the replica in their own rack (KIP-392), each side leading in turn."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.cluster.clients import admin, is_placed, place, produce
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually

pytestmark = pytest.mark.needs("java", "kafka-jars")
SIDES = {"moldau": (2, 3), "kafka": (3, 2)}  # who leads -> its broker, and the one that is read from
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
COUNT, SIZE = 2000, 500


@pytest.fixture(scope="module")
def trio(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = {1: (KAFKA, "controller"), 2: (MOLDAU, "broker"), 3: (KAFKA, "broker")}
    with cluster(kafka_libs, tmp_path_factory.mktemp("trio"), nodes, replica_selector_class=SELECTOR) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == {2, 3})
        yield made


class Reader:
    """A consumer in a rack, which counts the bytes that each broker has sent it."""

    def __init__(self, made: Cluster, topic: str, rack: str, **more: Any) -> None:
        self.received: dict[int, int] = {}
        settings = made.client(group_id="racks", client_rack=rack, statistics_interval_ms=100, **more)
        self.consumer = Consumer(settings | {"stats_cb": self.count})
        self.consumer.assign([TopicPartition(topic, 0, 0)])

    def count(self, text: str) -> None:
        for broker in json.loads(text)["brokers"].values():
            self.received[broker["nodeid"]] = broker["rxbytes"]

    def read(self, count: int, seconds: float = 30.0) -> list[int]:
        seen: list[int] = []
        deadline = time.monotonic() + seconds
        while len(seen) < count and time.monotonic() < deadline:
            records = self.consumer.consume(min(500, count - len(seen)), 0.2)
            seen += [int((record.value() or b"").split(b" ")[0]) for record in records if not record.error()]
        self.consumer.poll(0.3)  # for the statistics
        return seen


@pytest.mark.parametrize("leads", SIDES)
def test_a_consumer_reads_from_the_follower_in_its_rack(trio: Cluster, leads: str) -> None:
    leader, follower = SIDES[leads]
    topic = f"near-{leads}"
    place(trio, topic, [leader, follower])
    produce(trio, topic, range(COUNT), value=b" " * SIZE)
    eventually(lambda: is_placed(trio, topic, leader, [2, 3]))
    reader = Reader(trio, topic, f"r{follower}", auto_offset_reset="error")
    try:
        assert reader.read(COUNT) == list(range(COUNT))
        assert reader.received[follower] > COUNT * SIZE > reader.received[leader]
        produce(trio, topic, range(COUNT, COUNT + 100))
        assert reader.read(100) == list(range(COUNT, COUNT + 100)), "the follower learns what is committed"
        trio[follower].leave()
        produce(trio, topic, range(COUNT + 100, COUNT + 200))
        assert reader.read(100) == list(range(COUNT + 100, COUNT + 200)), "the leader serves it when nobody else does"
    finally:
        reader.consumer.close()
        trio[follower].start()
        trio[follower].await_port()
    eventually(lambda: is_placed(trio, topic, leader, [2, 3]))


@pytest.mark.parametrize("leads", SIDES)
def test_others_are_served_by_the_leader(trio: Cluster, leads: str) -> None:
    leader, follower = SIDES[leads]
    topic = f"far-{leads}"
    place(trio, topic, [leader, follower])
    produce(trio, topic, range(COUNT), value=b" " * SIZE)
    for rack in ("elsewhere", f"r{leader}"):
        reader = Reader(trio, topic, rack)
        assert reader.read(COUNT) == list(range(COUNT))
        reader.consumer.close()
        assert reader.received[leader] > COUNT * SIZE > reader.received.get(follower, 0)


@pytest.mark.parametrize("leads", SIDES)
def test_a_follower_shows_committed_transactions_alone(trio: Cluster, leads: str) -> None:
    leader, follower = SIDES[leads]
    topic = f"exact-{leads}"
    place(trio, topic, [leader, follower])
    producer = Producer(trio.client(transactional_id=topic))
    producer.init_transactions(60)
    for number in range(20):
        producer.begin_transaction()
        for value in range(10):
            producer.produce(topic, b"%d" % (10 * number + value) + b" " * SIZE, partition=0)
        assert producer.flush(30) == 0
        producer.abort_transaction(30) if number % 2 else producer.commit_transaction(30)
    eventually(lambda: is_placed(trio, topic, leader, [2, 3]))
    reader = Reader(trio, topic, f"r{follower}", isolation_level="read_committed")
    expected = [10 * number + value for number in range(0, 20, 2) for value in range(10)]
    assert reader.read(len(expected)) == expected
    reader.consumer.close()
    assert reader.received[follower] > len(expected) * SIZE > reader.received[leader]
