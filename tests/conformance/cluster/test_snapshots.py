"""A Moldau broker that gets its metadata as a snapshot: Kafka's controllers have let go of the log that it lacks."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource, NewPartitions, ResourceType

from moldau.machines.metadata.cluster import BROKER, TOPIC
from tests.cluster.clients import (
    PARTITIONS,
    admin,
    configure,
    create,
    is_placed,
    logs_of,
    place,
    placements,
    produce,
    read,
)
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually

pytestmark = pytest.mark.needs("java", "kafka-jars")
CLEANED_S = 150.0  # Kafka looks every minute for what it can let go of
SMALL = {
    "metadata_log_max_record_bytes_between_snapshots": "2000",
    "metadata_max_retention_bytes": "4000",
    "controller_quorum_fetch_snapshot_max_bytes": "1000",  # a snapshot comes in pieces
}


@pytest.fixture(scope="module")
def pair(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = {1: (KAFKA, "broker,controller"), 2: (MOLDAU, "broker")}
    with cluster(kafka_libs, tmp_path_factory.mktemp("pair"), nodes, **SMALL) as made:
        yield made


def offsets_of(made: Cluster, node: int, kind: str) -> list[int]:
    """Return the offsets that a node's metadata folder has in the names of its files of a kind."""
    names = [path.name for path in made[node].folder.glob(f"data/__cluster_metadata-0/{'[0-9]' * 20}*.{kind}")]
    return sorted(int(name[:20]) for name in names)


def config(made: Cluster, kind: ResourceType, name: str, setting: str) -> str | None:
    """Return a setting as the Moldau broker knows it."""
    resource = ConfigResource(kind, name)
    client = admin(made, 2)
    return client.describe_configs([resource])[resource].result(30)[setting].value


def change_much(made: Cluster) -> None:
    """Create, delete, grow, recreate, configure: all of it through Kafka, while the Moldau broker is away."""
    client = admin(made, 1)
    client.delete_topics(["gone", "again"])["gone"].result(30)
    for number in range(3):
        place(made, f"new{number}", [1, 2], 2)
    eventually(lambda: "again" not in client.list_topics(timeout=10).topics)
    place(made, "again", [1, 2], 1)
    client.create_partitions([NewPartitions("kept", PARTITIONS + 1)])["kept"].result(30)
    configure(made, TOPIC, "kept", retention_ms=None, segment_bytes="2000000")
    configure(made, BROKER, "", log_cleaner_threads=None, message_max_bytes="2000000")


def prepare(made: Cluster) -> None:
    for topic in ("kept", "gone", "again"):
        create(made, topic)
        produce(made, topic, range(1000))
    configure(made, TOPIC, "kept", retention_ms="1000000000")
    configure(made, BROKER, "", log_cleaner_threads="2")
    assert eventually(lambda: config(made, ResourceType.TOPIC, "kept", "retention.ms") == "1000000000")


def topics_of(made: Cluster, node: int) -> set[str]:
    return {name for name in admin(made, node).list_topics(timeout=10).topics if not name.startswith("__")}


def check(made: Cluster) -> None:
    topics = {"kept", "again", "new0", "new1", "new2"}
    eventually(lambda: topics_of(made, 2) == topics)
    for topic in topics:
        eventually(lambda topic=topic: is_placed(made, topic, None, [1, 2]))
    assert config(made, ResourceType.TOPIC, "kept", "retention.ms") == "604800000"
    assert config(made, ResourceType.TOPIC, "kept", "segment.bytes") == "2000000"
    assert config(made, ResourceType.BROKER, "2", "log.cleaner.threads") == "1"
    assert config(made, ResourceType.BROKER, "2", "message.max.bytes") == "2000000"
    produce(made, "kept", range(1000, 2000))
    produce(made, "again", range(500))
    assert read(made, "kept", 2000, PARTITIONS + 1) == list(range(2000))
    assert read(made, "again", 500, 1) == list(range(500))
    for topic in topics:
        eventually(lambda topic=topic: logs_of(made, 1, topic) == logs_of(made, 2, topic))
    assert logs_of(made, 2, "gone") == {}


def clear(made: Cluster) -> None:
    client = admin(made, 1)
    for future in client.delete_topics(list(topics_of(made, 1))).values():
        future.result(30)
    configure(made, BROKER, "", message_max_bytes=None)


@pytest.mark.parametrize("how", ["stopped", "frozen"])
def test_a_broker_that_was_away_for_long_is_right_after_a_snapshot(pair: Cluster, how: str) -> None:
    """Stopped it has nothing open when the snapshot comes; frozen it has all of it open."""
    eventually(lambda: set(admin(pair).list_topics(timeout=10).brokers) == {1, 2})
    prepare(pair)
    if how == "stopped":
        assert pair[2].stop() == 0
    else:
        pair[2].send(signal.SIGSTOP)
    eventually(lambda: all(leader == 1 for leader, _ in placements(pair, "kept", 1).values()))
    change_much(pair)
    before = offsets_of(pair, 1, "checkpoint")[-1]
    eventually(lambda: offsets_of(pair, 1, "checkpoint")[0] > before, CLEANED_S)
    kept = offsets_of(pair, 1, "checkpoint")
    pair[2].start() if how == "stopped" else pair[2].send(signal.SIGCONT)
    pair[2].await_port()
    check(pair)
    assert set(kept) & set(offsets_of(pair, 2, "log*")), "its log goes on where a snapshot ends"
    clear(pair)
