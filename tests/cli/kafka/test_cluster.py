"""The cluster: elections, moves, transactions, features, the quorum, storage, and brokers by Kafka's commands."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.cli.kafka.reassign_partitions import alternate, assign
from moldau.cli.kafka.reassignment_json import BadPlan, checked, read_plan
from moldau.cli.kafka.releases import LATEST, RELEASES, levels_of
from moldau.cli.kafka.server import servers
from tests.cli.kafka.running import Kafka, run


def test_a_partition_that_is_well_led_needs_no_election(kafka_tools: Kafka, name: str, tmp_path: Path) -> None:
    kafka_tools.topic(name)
    words = ("--election-type", "preferred")
    done = kafka_tools.ok("kafka-leader-election", *words, "--topic", name, "--partition", "0")
    assert done == [f"Valid replica already elected for partitions {name}-0"]
    file = tmp_path / "elect.json"
    file.write_text(json.dumps({"partitions": [{"topic": name, "partition": 9}]}))
    lost = kafka_tools("kafka-leader-election", *words, "--path-to-json-file", str(file))
    assert lost.code == 1 and lost.err == "1 replica(s) could not be elected\n"
    assert lost.out.startswith(
        f"Error completing leader election (PREFERRED) for partition: {name}-9: org.apache.kafka."
    )
    said = "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file\n"
    assert kafka_tools("kafka-leader-election", *words).err == said


def test_moves_are_planned_begun_and_looked_after(kafka_tools: Kafka, name: str, tmp_path: Path) -> None:
    kafka_tools.topic(name)
    tool = "kafka-reassign-partitions"
    assert kafka_tools.ok(tool, "--list") == ["No partition reassignments found."]
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    lines = kafka_tools.ok(tool, "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1")
    assert (
        lines[0] == "Current partition replica assignment"
        and lines[3] == "Proposed partition reassignment configuration"
    )
    plan = tmp_path / "plan.json"
    plan.write_text(lines[4])
    begun = kafka_tools.ok(tool, "--execute", "--reassignment-json-file", str(plan), "--throttle", "1000")
    assert begun[-1] == f"Successfully started partition reassignment for {name}-0"
    assert "The inter-broker throttle limit was set to 1000 B/s" in begun
    assert kafka_tools.ok(tool, "--verify", "--reassignment-json-file", str(plan)) == [
        "Status of partition reassignment:",
        f"Reassignment of partition {name}-0 is completed.",
        "",
        "Clearing broker-level throttles on broker 1",
        f"Clearing topic-level throttles on topic {name}",
    ]
    called_off = kafka_tools.ok(tool, "--cancel", "--reassignment-json-file", str(plan), "--preserve-throttles")
    assert called_off == [
        "None of the specified partition reassignments are active.",
        "None of the specified partition moves are active.",
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [1, 7]}]}))
    assert kafka_tools(tool, "--execute", "--reassignment-json-file", str(plan)).out == "Error: Unknown broker id 7\n"


def test_replicas_are_spread_over_brokers_and_racks() -> None:
    spread = assign([1, 2, 3], 6, 2)
    assert all(len(set(replicas)) == 2 for replicas in spread)
    assert sorted(replicas[0] for replicas in spread) == [1, 1, 2, 2, 3, 3]
    assert alternate([1, 2, 3, 4], {1: "a", 2: "a", 3: "b", 4: "b"}) == [1, 3, 2, 4]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "The input string is not a valid JSON"),
        ({"version": 3}, "Not supported version field value 3"),
        ({"partitions": []}, "Partition reassignment list cannot be empty"),
        (
            {"partitions": [{"topic": "t", "partition": 0, "replicas": []}]},
            "Partition replica list cannot be empty for t-0",
        ),
        (
            {"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]},
            "may not contain duplicate entries: t-0",
        ),
        ({"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": []}]}, "Size of replicas list"),
        ({"partitions": [{"topic": "t"}]}, "A partition is written"),
    ],
)
def test_plans_that_cannot_be_carried_out_are_refused(document: object, said: str) -> None:
    with pytest.raises(BadPlan, match=re.escape(said)):
        checked(read_plan(document))


def test_transactions_are_listed_described_and_ended(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    producer = Producer({"bootstrap.servers": kafka_tools.servers, "transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(name, "x")
    producer.flush()
    rows = [line.split() for line in kafka_tools.ok("kafka-transactions", "list")]
    assert rows[0] == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    assert [name, "1", "Ongoing"] in [[row[0], row[1], row[3]] for row in rows]
    described = kafka_tools.ok("kafka-transactions", "describe", "--transactional-id", name)
    assert described[1].split()[-1] == f"{name}-0"
    producers = kafka_tools.ok("kafka-transactions", "describe-producers", "--topic", name, "--partition", "0")
    assert producers[1].split()[-1] == "0"
    assert len(kafka_tools.ok("kafka-transactions", "find-hanging", "--topic", name)) == 1
    place = ("--topic", name, "--partition", "0")
    assert kafka_tools("kafka-transactions", "abort", *place, "--start-offset", "9").code == 1
    kafka_tools.ok("kafka-transactions", "forceTerminateTransaction", "--transactionalId", name)
    lost = kafka_tools("kafka-transactions", "describe", "--transactional-id", "nowhere")
    assert lost.code == 1 and "failed because the ID could not be found. Enable debug logging" in lost.err


def test_features_have_levels_and_releases(kafka_tools: Kafka) -> None:
    lines = kafka_tools.ok("kafka-features", "describe")
    assert any(re.match(r"Feature: metadata.version {26}SupportedMinVersion: 3.3-IV3 {10}Supp", line) for line in lines)
    assert run("kafka-features", "--bootstrap-server", "x:1", "version-mapping").lines()[0] == (
        f"metadata.version={RELEASES[LATEST]} ({LATEST})"
    )
    assert levels_of("4.0-IV2")["transaction.version"] == 2 and levels_of("3.3-IV3")["kraft.version"] == 0
    done = kafka_tools("kafka-features", "upgrade", "--feature", "group.version=9")
    assert done.code == 1 and done.err == "1 out of 1 operation(s) failed.\n"
    assert done.out.startswith("Could not upgrade group.version to 9. ")
    assert kafka_tools("kafka-features", "upgrade").err == "You must specify at least one feature to upgrade\n"


def test_the_quorum_is_described(kafka_tools: Kafka) -> None:
    lines = kafka_tools.ok("kafka-metadata-quorum", "describe", "--status")
    assert lines[1] == "LeaderId:               1" and lines[-1] == "CurrentObservers:       []"
    head, row = kafka_tools.ok("kafka-metadata-quorum", "describe", "--replication", "--human-readable")
    assert head.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"] and head.split()[-1] == "Status"
    assert row.split()[-1] == "Leader"
    assert kafka_tools("kafka-metadata-quorum", "describe").code == 1
    assert kafka_tools("kafka-metadata-quorum", "add-controller").code == 1


def test_versions_of_requests_are_listed(kafka_tools: Kafka) -> None:
    lines = kafka_tools.ok("kafka-broker-api-versions")
    assert lines[0] == f"{kafka_tools.servers} (id: 1 rack: null isFenced: false) -> ("
    assert re.fullmatch(r"\tProduce\(0\): 0 to \d+ \[usable: \d+\],", lines[1]) and lines[-1] == ")"


def test_an_application_begins_anew(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    kafka_tools.topic(f"{name}-app-store-changelog")
    words = ("--application-id", f"{name}-app", "--input-topics", f"{name},nowhere")
    done = kafka_tools("kafka-streams-application-reset", *words, "--dry-run")
    assert done.code == 1 and done.lines() == [
        "----Dry run displays the actions which will be performed when running Streams Reset Tool----",
        f"Reset-offsets for input topics [{name}, nowhere]",
        "Following input topics are not found, skipping them",
        "Topic: nowhere",
        f"Following input topics offsets will be reset to (for consumer group {name}-app)",
        f"Topic: {name} Partition: 0 Offset: 0",
        "Done.",
        f"Deleting inferred internal topics [{name}-app-store-changelog]",
        "Done.",
    ]
    kafka_tools("kafka-streams-application-reset", *words)
    assert f"{name}-app-store-changelog" not in kafka_tools.ok("kafka-topics", "--list")


def test_storage_is_formatted_once(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}\nnode.id=3\n")
    cluster = run("kafka-storage", "random-uuid").out.strip()
    assert re.fullmatch(r"[\w-]{22}", cluster)
    before = run("kafka-storage", "info", "-c", str(config))
    assert before.code == 1 and before.lines()[0] == "Found problems:"
    words = ("format", "-t", cluster, "--config", str(config))
    made = run("kafka-storage", *words)
    assert made.code == 0 and f"Formatting data directory {tmp_path / 'b'} with metadata.version {LATEST}." in made.out
    again = run("kafka-storage", *words)
    assert again.code == 1 and re.match(r"Log directory \S+/[ab] is already formatted\.", again.err)
    assert run("kafka-storage", *words, "--ignore-formatted").code == 0
    after = run("kafka-storage", "info", "-c", str(config))
    assert after.code == 0 and f"cluster.id={cluster}" in after.out and "node.id=3" in after.out


def test_a_broker_is_started_by_kafkas_command_and_keeps_what_storage_wrote(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path / 'data'}\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    cluster = run("kafka-storage", "random-uuid").out.strip()
    assert run("kafka-storage", "format", "-t", cluster, "-c", str(config)).code == 0
    command = [sys.executable, "-m", "moldau", "kafka-server-start.sh", str(config), "--override", "num.partitions=2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            address = process.stdout.readline().split()[1]
            lines = Kafka(address).ok("kafka-metadata-quorum", "describe", "--status")
            assert lines[0] == f"ClusterId:              {cluster}"
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def test_brokers_to_stop_are_found_among_processes() -> None:
    lines = [
        "  10 /usr/bin/python -m moldau broker --listen 127.0.0.1:9092",
        "  11 /venv/bin/python /venv/bin/kafka-server-start.sh server.properties --override node.id=4",
        "  12 vim moldau-broker.txt",
        "  13 /venv/bin/moldau broker",
    ]
    assert servers(lines) == [10, 11, 13] and servers(lines, "4") == [11]
    assert run("kafka-server-stop", "--node-id=987654").code == 1
    assert run("kafka-server-start").code == 1
