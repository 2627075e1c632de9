"""Kafka's own tools move partitions on to a Moldau broker and off it, cancel a move, and elect leaders."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.clients import admin, batches_of, is_placed, logs_of, place, placements, produce, read
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually
from tests.conformance.java_tools import Tools

pytestmark = pytest.mark.needs("java", "kafka-jars")
PARTITIONS = 3
RECORDS = 3000
REASSIGN, ELECT = "kafka-reassign-partitions", "kafka-leader-election"


@pytest.fixture(scope="module")
def trio(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = {1: (KAFKA, "broker,controller"), 2: (MOLDAU, "broker"), 3: (KAFKA, "broker")}
    with cluster(kafka_libs, tmp_path_factory.mktemp("trio"), nodes) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == {1, 2, 3})
        yield made


@pytest.fixture
def tools(trio: Cluster, jvm: subprocess.Popen[str]) -> Tools:
    """They ask the Moldau broker."""
    return Tools(jvm, trio[2].address)


def plan(folder: Path, topic: str, replicas: list[int]) -> str:
    """Write what the tool is to do to a file, and return its path."""
    parts = [{"topic": topic, "partition": index, "replicas": replicas} for index in range(PARTITIONS)]
    path = folder / f"{topic}-{'-'.join(map(str, replicas))}.json"
    path.write_text(json.dumps({"version": 1, "partitions": parts}))
    return str(path)


def move(tools: Tools, file: str, *options: str) -> None:
    tools(REASSIGN, "--reassignment-json-file", file, "--execute", *options)

    def is_complete() -> bool:
        shown = tools(REASSIGN, "--reassignment-json-file", file, "--verify").out
        return shown.count("is completed") == PARTITIONS and "still in progress" not in shown

    eventually(is_complete, 60)


@pytest.mark.parametrize("options", [(), ("--throttle", "50000000")], ids=["plain", "throttled"])
def test_a_topic_moves_to_moldau_and_away_under_load(
    trio: Cluster, tools: Tools, tmp_path: Path, options: tuple[str, ...]
) -> None:
    topic = f"mover{len(options)}"
    place(trio, topic, [1, 3], PARTITIONS)
    produce(trio, topic, range(RECORDS), value=b" " * 500)
    produce(
        trio,
        topic,
        range(RECORDS, 2 * RECORDS),
        lambda: move(tools, plan(tmp_path, topic, [2, 3]), *options),
        value=b" " * 500,
    )
    eventually(lambda: is_placed(trio, topic, 2, [2, 3]))
    assert logs_of(trio, 1, topic) == {}
    eventually(lambda: batches_of(trio, 2, topic) == batches_of(trio, 3, topic))
    assert read(trio, topic, 2 * RECORDS, PARTITIONS) == list(range(2 * RECORDS))
    produce(
        trio,
        topic,
        range(2 * RECORDS, 3 * RECORDS),
        lambda: move(tools, plan(tmp_path, topic, [1, 3]), *options),
        value=b" " * 500,
    )
    eventually(lambda: is_placed(trio, topic, 1, [1, 3]))
    eventually(lambda: logs_of(trio, 2, topic) == {})
    eventually(lambda: batches_of(trio, 1, topic) == batches_of(trio, 3, topic))
    assert read(trio, topic, 3 * RECORDS, PARTITIONS) == list(range(3 * RECORDS))
    assert "throttled" not in tools("kafka-configs", "--describe", "--topic", topic).out
    assert "throttled" not in tools("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "2").out


@pytest.mark.parametrize(("old", "new"), [(1, 2), (2, 1)], ids=["to-moldau", "off-moldau"])
def test_a_slow_move_is_listed_and_cancelled(trio: Cluster, tools: Tools, tmp_path: Path, old: int, new: int) -> None:
    """The broker from which it moves leads on, and what the other one has is deleted again."""
    topic = f"halfway{new}"
    place(trio, topic, [old, 3], PARTITIONS)
    produce(trio, topic, range(2 * RECORDS), value=b" " * 2000)
    file = plan(tmp_path, topic, [new, 3])
    tools(REASSIGN, "--reassignment-json-file", file, "--execute", "--throttle", "1000")
    eventually(lambda: len(logs_of(trio, new, topic)) == PARTITIONS)
    assert tools(REASSIGN, "--list").out.count(f"adding: {new}") == PARTITIONS
    tools(REASSIGN, "--reassignment-json-file", file, "--cancel")
    assert "No partition reassignments found" in tools(REASSIGN, "--list").out
    eventually(lambda: is_placed(trio, topic, old, [old, 3]))
    eventually(lambda: logs_of(trio, new, topic) == {})
    assert read(trio, topic, 2 * RECORDS, PARTITIONS) == list(range(2 * RECORDS))


def test_the_preferred_leader_is_elected_on_both_sides(trio: Cluster, tools: Tools) -> None:
    for topic, replicas in (("ours", [2, 3]), ("theirs", [3, 2])):
        place(trio, topic, replicas, PARTITIONS)
    for node, other in ((2, 3), (3, 2)):
        trio[node].leave()
        topic = {2: "ours", 3: "theirs"}[node]
        eventually(lambda topic=topic, other=other: is_placed(trio, topic, other, [other]))
        trio[node].start()
        trio[node].await_port()
        eventually(lambda topic=topic: is_placed(trio, topic, None, [2, 3]))
        shown = tools(ELECT, "--election-type", "preferred", "--topic", topic, "--partition", "0").out
        assert "Successfully completed leader election (PREFERRED)" in shown
        eventually(lambda topic=topic, node=node: placements(trio, topic)[0][0] == node)
        again = tools(ELECT, "--election-type", "preferred", "--topic", topic, "--partition", "0").out
        assert "Valid replica already elected" in again
