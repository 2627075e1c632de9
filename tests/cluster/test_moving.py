"""Replicas of three real nodes with two directories each move between them, under load and by Kafka's own tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.log.checkpoints import decode_id
from moldau.machines.metadata import records as metadata_records
from moldau.machines.metadata.cluster import Cluster as Image
from moldau.settings import read_properties
from moldau.wire.records import batches, records
from tests.cli.kafka.running import Kafka
from tests.cluster.clients import admin, is_placed, logs_of, place, produce, read
from tests.cluster.mixed import MOLDAU, Cluster, cluster, eventually

NODES: tuple[int, ...] = (1, 2, 3)
TOPIC = "moving"
SECONDS = 120.0
SETTINGS = {"log_segment_bytes": str(1 << 20), "log_flush_offset_checkpoint_interval_ms": "500"}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = dict.fromkeys(NODES, (MOLDAU, "broker,controller"))
    with cluster(Path(), tmp_path_factory.mktemp("moving"), nodes, **SETTINGS) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == set(NODES), SECONDS)
        yield made


def directory_of(made: Cluster, node: int, topic: str = TOPIC) -> str:
    """Return where a replica lies; for a moment it lies in both."""
    found = eventually(lambda: some if len(some := [*made[node].folder.glob(f"*/{topic}-0")]) == 1 else None)
    assert found is not None
    return str(found[0].parent)


def other_of(made: Cluster, node: int, topic: str = TOPIC) -> str:
    return next(
        str(made[node].folder / name) for name in ("data", "more") if name not in directory_of(made, node, topic)
    )


def believed(made: Cluster, node: int, topic: str = TOPIC) -> bytes:
    """Return where the controllers believe a replica to lie, by the metadata log on the node's disk."""
    image = Image()
    for batch in batches((made[node].folder / "data" / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()):
        for record in () if batch.is_control else records(batch):
            image.replay(metadata_records.decode(record.value or b""))
    part = image.topics[topic].partitions[0]
    return part.directories[part.replicas.index(node)]


def id_of(path: str) -> bytes:
    return decode_id(read_properties(f"{path}/meta.properties")["directory.id"])


def reassign(made: Cluster, folder: Path, targets: dict[int, str], *words: str, topic: str = TOPIC) -> list[str]:
    """Run kafka-reassign-partitions with directories for some brokers."""
    row = {"topic": topic, "partition": 0, "replicas": list(NODES)}
    row["log_dirs"] = [targets.get(node, "any") for node in NODES]
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [row]}))
    return Kafka(made.bootstrap).ok("kafka-reassign-partitions", "--reassignment-json-file", str(path), *words)


def test_replicas_move_under_load_and_the_controller_hears_of_it(three: Cluster, tmp_path: Path) -> None:
    place(three, TOPIC, NODES, min_insync_replicas="2")
    produce(three, TOPIC, range(3000), value=b" " + b"x" * 100)
    eventually(lambda: is_placed(three, TOPIC, 1, NODES), SECONDS)
    targets = {node: other_of(three, node) for node in (1, 2)}  # the leader and a follower
    begin = lambda: reassign(three, tmp_path, targets, "--execute")  # noqa: E731
    produce(three, TOPIC, range(3000, 6000), begin, value=b" " + b"x" * 100)
    eventually(lambda: {node: directory_of(three, node) for node in (1, 2)} == targets, SECONDS)
    for node, path in targets.items():
        eventually(lambda node=node, path=path: believed(three, node) == id_of(path), SECONDS)
    lines = reassign(three, tmp_path, targets, "--verify")
    assert sum("completed successfully" in line for line in lines) == 2, lines
    produce(three, TOPIC, range(6000, 6100), value=b" " + b"x" * 100)
    eventually(lambda: logs_of(three, 1, TOPIC) == logs_of(three, 2, TOPIC) == logs_of(three, 3, TOPIC), SECONDS)
    assert read(three, TOPIC, 6100, partitions=1) == list(range(6100))


def test_a_throttled_move_goes_on_after_a_restart_and_is_called_off(three: Cluster, tmp_path: Path) -> None:
    topic = "slow"
    place(three, topic, NODES)
    produce(three, topic, range(20_000), value=b" " + b"x" * 200)
    eventually(lambda: is_placed(three, topic, 1, NODES), SECONDS)
    source, target = directory_of(three, 3, topic), other_of(three, 3, topic)
    reassign(three, tmp_path, {3: target}, "--execute", "--replica-alter-log-dirs-throttle", "1000", topic=topic)
    future = lambda: [path.name for path in Path(target).glob(f"{topic}-0*-future")]  # noqa: E731
    eventually(lambda: future() or None, SECONDS)
    assert three[3].stop() == 0
    three[3].start()
    three[3].await_port()
    eventually(
        lambda: "a replica is moved" in three[3].log.read_text().rpartition("role=unattached")[2] or None, SECONDS
    )
    lines = reassign(three, tmp_path, {3: target}, "--verify", topic=topic)
    assert any("still in progress" in line for line in lines), lines
    assert directory_of(three, 3, topic) == source
    reassign(three, tmp_path, {3: source}, "--execute", "--additional", topic=topic)
    eventually(lambda: not future() or None, SECONDS)
    assert directory_of(three, 3, topic) == source
    eventually(lambda: is_placed(three, topic, None, NODES), SECONDS)
    assert read(three, topic, 20_000, partitions=1) == list(range(20_000))


def test_others_lead_what_lies_in_a_directory_that_has_failed(three: Cluster) -> None:
    """It has the last word of this file: the directory does not come back."""
    names = [f"disk{number}" for number in range(6)]
    for topic in names:
        place(three, topic, (2, 1, 3))
    lost = next(topic for topic in names if directory_of(three, 2, topic).endswith("/more"))
    kept = next(topic for topic in names if directory_of(three, 2, topic).endswith("/data"))
    eventually(lambda: all(is_placed(three, topic, 2, NODES) for topic in (lost, kept)), SECONDS)
    (three[2].folder / "more").rename(three[2].folder / "gone")
    produce(three, lost, range(100))  # what the next checkpoint is about
    eventually(lambda: is_placed(three, lost, None, (1, 3)), SECONDS)
    assert is_placed(three, kept, 2, NODES), "those of the other directory stay"
    for topic in (lost, kept):
        produce(three, topic, range(100, 200))
    assert read(three, lost, 200, partitions=1) == list(range(200))
