"""Apache Kafka reads the metadata that Moldau writes: its dump tool each record, a Kafka controller all of it.

Three Moldau nodes write every kind of record that Moldau knows, then snapshots. Kafka's tool prints each of them, as
ours does. Then the metadata of one node is removed, and it comes back as Kafka's: it begins with a snapshot of
Moldau's, takes over the lead, and knows all that was there.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.wire import messages as m
from moldau.wire.schema import records
from tests.cli.kafka.running import run
from tests.cluster.clients import admin, is_placed, place, produce, read
from tests.cluster.mixed import DYNAMIC, KAFKA, MOLDAU, Cluster, cluster, eventually
from tests.conformance.cluster.test_tools import ACCESS
from tests.conformance.cluster.test_voters import active
from tests.conformance.java_tools import Tools

pytestmark = pytest.mark.needs("java", "kafka-jars")
NODES, GUEST, READY_S, ROUNDS = (1, 2, 3), 4, 150.0, 12
# What Moldau never writes: records of ZooKeeper's time, of delegation tokens, and of transactions that span batches.
UNWRITTEN = {"FenceBroker", "UnfenceBroker", "ZkMigrationState", "DelegationToken", "RemoveDelegationToken"}
UNWRITTEN |= {"BeginTransaction", "EndTransaction", "AbortTransaction"}
CHANGES = """
kafka-configs --alter --entity-type topics --entity-name kept --add-config min.insync.replicas=2,retention.ms=90000
kafka-configs --alter --entity-type topics --entity-name kept --delete-config retention.ms
kafka-configs --alter --entity-type brokers --entity-default --add-config log.cleaner.threads=2
kafka-configs --alter --entity-type clients --entity-name ada --add-config producer_byte_rate=1000000
kafka-configs --alter --entity-type users --entity-name ada --add-config SCRAM-SHA-256=[password=one]
kafka-configs --alter --entity-type users --entity-name bob --add-config SCRAM-SHA-512=[password=two]
kafka-configs --alter --entity-type users --entity-name bob --delete-config SCRAM-SHA-512
kafka-acls --add --allow-principal User:ada --operation Read --topic kept
kafka-acls --add --deny-principal User:bob --operation Write --topic gone --resource-pattern-type prefixed
kafka-acls --remove --force --deny-principal User:bob --operation Write --topic gone --resource-pattern-type prefixed
kafka-topics --alter --topic kept --partitions 5 --replica-assignment 1:2:3,1:2:3,1:2:3,1:2:3,3:2:1
kafka-topics --delete --topic gone
kafka-features downgrade --feature streams.version=0
"""
FACTS = """
kafka-topics --describe
kafka-configs --describe --entity-type topics
kafka-configs --describe --entity-type brokers --entity-default
kafka-configs --describe --entity-type clients
kafka-configs --describe --entity-type users
kafka-acls --list
kafka-features describe
"""


@pytest.fixture
def four(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = dict.fromkeys(NODES, (MOLDAU, "broker,controller")) | {GUEST: (MOLDAU, "broker")}
    with cluster(kafka_libs, tmp_path_factory.mktemp("files"), nodes, voters=DYNAMIC, **ACCESS) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == {*NODES, GUEST}, READY_S)
        yield made


def test_kafka_reads_every_record_and_snapshot_and_takes_over(four: Cluster, jvm: subprocess.Popen[str]) -> None:
    tools = Tools(jvm, four.bootstrap)
    change(four)
    dumps = [dumped(tools, path) for node in NODES for path in files(four, node, "log")]
    assert types("".join(dumps)) == {shouted(name) for name in known_records()}
    facts = told(tools)
    write_snapshots(four)
    for node in NODES:
        for path in files(four, node, "checkpoint"):
            text = dumped(tools, path)
            assert {"SnapshotHeader", "SnapshotFooter", "KRaftVersion", "KRaftVoters"} <= controls(text), text[:3000]
    begin_with_a_snapshot(four, 3)
    eventually(lambda: told(tools) == facts, READY_S)
    lead(four, 3)
    assert told(tools) == facts
    place(four, "after", NODES, 4)
    produce(four, "after", range(100))
    assert read(four, "after", 100) == read(four, "kept", 100) == list(range(100))


def change(made: Cluster) -> None:
    """Write each kind of record."""
    place(made, "kept", NODES, 4)
    place(made, "gone", NODES, 2)
    produce(made, "kept", range(100))
    for line in CHANGES.strip().splitlines():
        tool, *words = line.split(" ")
        done = run(tool, "--bootstrap-server", made.bootstrap, *words)
        assert done.code == 0, f"{line}\n{done.out}{done.err}"
    made[1].stop(signal.SIGKILL)
    eventually(lambda: is_placed(made, "kept", None, [2, 3]), READY_S)
    made[1].start()
    made[GUEST].leave()
    made[1].await_port()
    eventually(lambda: is_placed(made, "kept", None, NODES), READY_S)
    where = ("--bootstrap-server", made.bootstrap)
    eventually(lambda: run("kafka-cluster", "unregister", "--id", str(GUEST), *where).code == 0)
    del made.members[GUEST]


def files(made: Cluster, node: int, kind: str) -> list[Path]:
    return sorted(made[node].folder.glob(f"data/__cluster_metadata-0/*.{kind}"))


def dumped(tools: Tools, path: Path) -> str:
    """Return what Kafka's tool prints of a file. A node may write meanwhile, so both read a copy."""
    copy = path.parent.parent / path.name
    shutil.copyfile(path, copy)
    words = ("--cluster-metadata-decoder", "--files", str(copy))
    java, ours = tools("kafka-dump-log", *words).out, run("kafka-dump-log", *words)
    copy.unlink()
    assert ours.code == 0 and java.splitlines() == ours.lines()
    assert "Could not" not in java and "isvalid: false" not in java and "invalid bytes" not in java
    return java


def types(text: str) -> set[str]:
    return set(re.findall(r'payload: \{"type":"(\w+)"', text))


def controls(text: str) -> set[str]:
    return set(re.findall(r"(SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters|LeaderChange)", text))


def known_records() -> set[str]:
    """Return the names of the records that Moldau writes."""
    numbers = [number for kind, number in records("__cluster_metadata") if kind == "metadata"]
    names = {m.record_class("__cluster_metadata", "metadata", number).SCHEMA.name for number in numbers}
    return {name for name in names if name.removesuffix("Record") not in UNWRITTEN}


def shouted(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def told(tools: Tools) -> list[list[str]]:
    """Return what Kafka's tools tell of the cluster, without what changes by itself: leaders, orders, epochs."""
    found = []
    for line in FACTS.strip().splitlines():
        tool, *words = line.split(" ")
        text = tools(tool, *words).out
        text = re.sub(r"Leader: \d+|Isr: [\d,]+|Elr:[^\t]*|LastKnownElr:.*|Epoch: \d+", "", text)
        found.append(sorted(text.splitlines()))
    return found


def write_snapshots(made: Cluster) -> None:
    """Restart each node so that it writes a snapshot soon, and wait for it."""
    for node in NODES:
        made[node].leave()
        with made[node].properties.open("a") as settings:
            settings.write("metadata.log.max.snapshot.interval.ms=1000\n")
        made[node].start()
        made[node].await_port()
        eventually(lambda: is_placed(made, "kept", None, NODES), READY_S)
    for node in NODES:
        eventually(lambda node=node: [path for path in files(made, node, "checkpoint") if int(path.name[:20]) > 0])


def begin_with_a_snapshot(made: Cluster, node: int) -> None:
    """Take the metadata of a node away, and let it come back as Kafka's."""
    made[node].leave()
    shutil.rmtree(made[node].folder / "data" / "__cluster_metadata-0")
    made[node].kind = KAFKA
    made[node].start()
    made[node].await_port()
    eventually(lambda: is_placed(made, "kept", None, NODES), READY_S)
    assert min(int(path.name[:20]) for path in files(made, node, "log")) > 0, "its log goes on where a snapshot ends"


def lead(made: Cluster, node: int) -> None:
    """Stop whoever leads the quorum until this node does."""
    for _ in range(ROUNDS):
        leader = eventually(lambda: active(made))
        if leader == node:
            return
        made[leader].leave()
        made[leader].start()
        made[leader].await_port()
        eventually(lambda: is_placed(made, "kept", None, NODES), READY_S)
    raise AssertionError(f"node {node} never led")
