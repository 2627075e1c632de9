"""`moldau cluster` and `moldau topic move` on one Kafka and one Moldau broker, over the public protocol alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.admin import topics
from moldau.admin.metadata_log import MetadataLog
from moldau.cli.kafka.flags import read
from moldau.cli.kafka.replica_verification import TOOL, Watch
from moldau.client import Client, Error
from moldau.client import messages as m
from tests.cli.kafka.running import run
from tests.cli.running import Moldau
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually

pytestmark = pytest.mark.needs("java", "kafka-jars")
LINES = [str(number) for number in range(2000)]


@pytest.fixture(scope="module")
def pair(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = {1: (KAFKA, "broker,controller"), 2: (MOLDAU, "broker")}
    with cluster(kafka_libs, tmp_path_factory.mktemp("pair"), nodes) as made:
        yield made


@pytest.fixture
def moldau(pair: Cluster, tmp_path: Path) -> Moldau:
    return Moldau(pair.bootstrap, tmp_path)


@pytest.fixture
def client(pair: Cluster) -> Iterator[Client]:
    with Client({"bootstrap.servers": pair.bootstrap}) as made:
        yield made


def place(moldau: Moldau, topic: str, *replicas: str) -> str:
    """A topic with these replicas of each partition, as in 1:2, which all brokers know."""
    words = ("--create", "--topic", topic, "--replica-assignment", ",".join(replicas))
    made = run("kafka-topics", "--bootstrap-server", moldau.servers, *words)
    assert made.code == 0, made.err
    for server in moldau.servers.split(","):
        eventually(lambda server=server: topic in run("kafka-topics", "--bootstrap-server", server, "--list").lines())
    return topic


def test_each_broker_is_told_by_its_kind(moldau: Moldau) -> None:
    eventually(lambda: [row["kind"] for row in moldau.json("cluster", "brokers")] == ["Kafka", "Moldau"])
    first, second = moldau.json("cluster", "brokers")
    assert (first["quorum"], second["quorum"], first["rack"]) == ("leader", None, "r1")
    assert moldau.json("cluster", "health")["healthy"] is True
    quorum = moldau.json("cluster", "quorum")
    assert [(row["id"], row["role"]) for row in quorum["replicas"]] == [(1, "leader"), (2, "observer")]
    refused = moldau.run("cluster", "voters", "add", "2", "--endpoint", "CONTROLLER://127.0.0.1:9")
    assert refused.code == 1 and "kraft.version" in refused.err


def test_the_metadata_log_is_read_from_the_active_controller(moldau: Moldau, client: Client) -> None:
    """Kafka's, here; its brokers do not hand it out."""
    log = MetadataLog(client, 10_000)
    before = [entry.record.SCHEMA.name for entry in log.read()]
    assert before[0] == "LeaderChangeMessage" and before.count("RegisterBrokerRecord") == 2
    place(moldau, "news", "1")
    after = eventually(log.read)
    made = [entry.record for entry in after if entry.record.SCHEMA.name == "TopicRecord"]
    assert [record.name for record in made] == ["news"] and all(entry.at_ms > 0 for entry in after)
    few = MetadataLog(client, 5)
    assert 0 < len(few.read()) <= 5
    topics.delete(client, ["news"])


def test_followers_of_either_kind_are_read_and_all_replicas_are_the_same(moldau: Moldau, client: Client) -> None:
    topic = place(moldau, "both", "1:2", "2:1")
    for partition in ("0", "1"):
        moldau.write(topic, *LINES, options=("-p", partition))
    found = moldau.json("cluster", "verify", "--topic", topic)
    assert (found["same"], found["partitions"], found["offsets"]) == (True, 2, 4000)
    assert "same " in moldau("cluster", "verify", "--topic", topic, "--since", "-1h")
    topic_id = client.refresh([topic]).topics[topic].id
    for follower, index in ((2, 0), (1, 1)):
        part = m.FetchRequest_FetchPartition(index, partition_max_bytes=100)
        request = m.FetchRequest(topics=[m.FetchRequest_FetchTopic(topic, topic_id, [part])], session_epoch=-1)
        row = client.send(request, follower).responses[0].partitions[0]
        assert (row.error_code, row.high_watermark, len(row.records) > 0) == (Error.NONE, 2000, True)
        row = client.send(request, follower, at_most=10, retry=False).responses[0].partitions[0]
        assert row.error_code == Error.NOT_LEADER_OR_FOLLOWER, "older clients read from leaders"


def test_kafkas_verification_comes_to_the_end(moldau: Moldau, client: Client) -> None:
    words = ["--broker-list", moldau.servers, "--time", "-2", "--max-wait-ms", "100"]
    watch = Watch(client, read(TOOL, words), [one for one in topics.listed(client) if one.name == "both"])
    assert watch.positions == {("both", 0): 0, ("both", 1): 0}
    eventually(lambda: watch.round() and set(watch.positions.values()) == {2000})


def test_rot_on_either_disk_is_found(pair: Cluster, moldau: Moldau) -> None:
    topic = place(moldau, "rotten", "1:2", "2:1", "1:2")
    for partition in ("0", "1", "2"):
        moldau.write(topic, *LINES, options=("-p", partition))
    assert moldau.json("cluster", "verify", "--topic", topic)["same"] is True
    for node, partition in ((2, 0), (1, 1)):
        [path] = pair[node].folder.glob(f"*/{topic}-{partition}/*.log")
        with path.open("r+b") as file:
            os.pwrite(file.fileno(), b"\xff", 1000)
    done = moldau.run("cluster", "verify", "--topic", topic, "-o", "yaml")
    assert done.code == 3 and "differences: 2" in done.out
    assert f"partition: {topic}-0" in done.out and f"partition: {topic}-1" in done.out
    assert "damaged" in moldau.run("cluster", "verify", "--topic", topic).out
    moldau("topic", "delete", topic, "--yes")


def test_a_topic_is_moved_and_a_broker_is_drained(moldau: Moldau) -> None:
    topic = place(moldau, "mover", "1", "1")
    moldau.write(topic, *LINES)
    plan = moldau.json("topic", "move", topic, "--to", "2", "--plan")
    assert [(row["before"], row["after"]) for row in plan] == [([1], [2]), ([1], [2])]
    assert moldau.json("topic", "move", topic, "--to", "2")["moved"] == 2
    assert sorted(moldau.read(topic), key=int) == LINES
    assert moldau.json("topic", "move", topic, "--cancel")["cancelled"] == []
    stuck = moldau.run("cluster", "drain", "2")
    assert stuck.code == 1 and "no 2 live brokers" in stuck.err
    moldau("topic", "move", "both", "--to", "1")
    drained = moldau.json("cluster", "drain", "2", "--at-a-time", "1")
    assert drained["moved"] == 2 and drained["bytes"] > 0
    _, row = moldau.json("cluster", "brokers")
    assert (row["replicas"], row["leaders"]) == (0, 0)
    assert sorted(moldau.read(topic), key=int) == LINES
    moldau("topic", "move", "both", "--to", "1,2")


def test_the_swap_of_the_only_voter_is_planned_and_what_stops_is_told(moldau: Moldau) -> None:
    done = moldau.run("cluster", "swap", "--plan")
    assert done.code == 0 and "one voter: while one is away nothing can be changed" in done.out
    assert [(row["node"], row["role"]) for row in moldau.json("cluster", "swap", "--plan")["steps"]] == [
        (1, "quorum leader")
    ]
    assert "mover" in done.out and "one replica" in done.out, "topics with one replica are named"
    assert moldau.run("cluster", "swap").code == 2


def test_a_dead_broker_and_what_suffers_from_it_are_told(pair: Cluster, moldau: Moldau) -> None:
    moldau("topic", "alter", "both", "--set", "min.insync.replicas=2")
    moldau("topic", "move", "mover", "--to", "2", "--partition", "0")
    pair[2].stop(signal.SIGKILL)
    eventually(lambda: "does not hear" in moldau.run("cluster", "health").out)
    done = moldau.run("cluster", "health")
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert done.code == 3
    assert "broker 2 fenced the controller does not hear from it" in rows
    assert "both-0 under min ISR 1 of 2 in sync, acks=all needs 2; missing 2 (fenced)" in rows
    assert any(row.startswith("mover-0 no leader") for row in rows)
    assert [row["state"] for row in moldau.json("cluster", "brokers")] == ["up", "fenced"]
    listed = run("kafka-cluster", "list-endpoints", "--bootstrap-server", moldau.servers, "--include-fenced-brokers")
    assert [line.split()[-2] for line in listed.lines()] == ["STATE", "unfenced", "fenced"]
    pair[2].start()
    pair[2].await_port()
    eventually(lambda: moldau.run("cluster", "health").code == 0)
    assert moldau.json("cluster", "verify")["same"] is True
