"""Moldau's and Apache Kafka's controllers vote in one quorum: whoever leads it is ended, and another takes over."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Client
from moldau.machines.metadata.records import TOPIC as METADATA_TOPIC
from moldau.wire import messages as m
from tests.cluster.clients import admin, is_placed, logs_of, place, produce, read
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually

pytestmark = pytest.mark.needs("java", "kafka-jars")
NODES, PARTITIONS, RECORDS, ROUNDS = (1, 2, 3), 4, 500, 6


@pytest.fixture(
    params=[(None, MOLDAU, KAFKA, KAFKA), (None, MOLDAU, MOLDAU, KAFKA), ("4.1", MOLDAU, MOLDAU, KAFKA)],
    ids=["one", "two", "two-4.1"],
)
def trio(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three nodes, each a broker and a voter; one or two of them are Moldau's."""
    release, *kinds = request.param
    nodes = {node: (kind, "broker,controller") for node, kind in zip(NODES, kinds, strict=True)}
    with cluster(kafka_libs, tmp_path_factory.mktemp("trio"), nodes, release=release) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == set(NODES), 90)
        yield made


def active(made: Cluster) -> int:
    """Return the active controller; 0 while there is none."""
    topic = m.DescribeQuorumRequest_TopicData(METADATA_TOPIC, [m.DescribeQuorumRequest_PartitionData(0)])
    with Client({"bootstrap.servers": made.bootstrap}) as client:
        topics = client.send(m.DescribeQuorumRequest([topic])).topics
    return max(0, topics[0].partitions[0].leader_id) if topics else 0


def test_each_kind_leads_the_other_and_nothing_is_lost(trio: Cluster) -> None:
    place(trio, "t", NODES, PARTITIONS)
    led: list[str] = []
    for number in range(ROUNDS):
        leader = eventually(lambda: active(trio))
        led.append(trio[leader].kind)
        how = signal.SIGKILL if number % 2 else signal.SIGTERM
        produce(
            trio,
            "t",
            range(number * RECORDS, (number + 1) * RECORDS),
            lambda node=leader, how=how: trio[node].stop(how),
        )
        others = [node for node in NODES if node != leader]
        place(trio, f"made-{number}", others)
        trio[leader].start()
        trio[leader].await_port()
        eventually(lambda: is_placed(trio, "t", None, NODES), 90)
        if {KAFKA, MOLDAU} <= set(led) and number > 2:
            break
    assert {KAFKA, MOLDAU} <= set(led), led
    total = len(led) * RECORDS
    assert read(trio, "t", total) == list(range(total))
    for node in NODES[1:]:
        eventually(lambda node=node: logs_of(trio, 1, "t") == logs_of(trio, node, "t"))
