"""kafka-topics, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.kafka.running import Kafka, run


def test_a_topic_is_made_described_changed_and_deleted(kafka_tools: Kafka, name: str) -> None:
    made = ["--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=100000"]
    assert kafka_tools.ok("kafka-topics", *made) == [f"Created topic {name}."]
    head, *rows = kafka_tools.ok("kafka-topics", "--describe", "--topic", name)
    shown = re.sub(r"TopicId: [\w-]{22}", "TopicId: ID", head)
    configs = "min.insync.replicas=1,retention.ms=100000"
    assert shown == f"Topic: {name}\tTopicId: ID\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: {configs}"
    assert rows == [
        f"\tTopic: {name}\tPartition: {index}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
        for index in range(2)
    ]
    assert kafka_tools.ok("kafka-topics", "--alter", "--topic", name, "--partitions", "3") == []
    assert name in kafka_tools.ok("kafka-topics", "--list")
    assert len(kafka_tools.ok("kafka-topics", "--describe", "--topic", name)) == 4
    assert kafka_tools.ok("kafka-topics", "--delete", "--topic", name) == []
    assert name not in kafka_tools.ok("kafka-topics", "--list")


def test_a_topic_is_described_by_its_id(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    head = kafka_tools.ok("kafka-topics", "--describe", "--topic", name)[0]
    found = re.search(r"TopicId: (\S+)", head)
    assert found
    assert kafka_tools.ok("kafka-topics", "--describe", "--topic-id", found[1])[0] == head
    done = kafka_tools("kafka-topics", "--describe", "--topic-id", "A" * 21 + "Q")
    assert done.code == 1 and "does not exist as expected" in done.out


def test_reports_choose_partitions(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name, 2)
    for report in ("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"):
        assert kafka_tools.ok("kafka-topics", "--describe", "--topic", name, report) == []
    assert len(kafka_tools.ok("kafka-topics", "--describe", "--topic", name, "--at-min-isr-partitions")) == 2
    assert len(kafka_tools.ok("kafka-topics", "--describe", "--topic", name, "--topics-with-overrides")) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--create", "--topic", "bad name"], "Topic name 'bad name' is illegal"),
        (["--create", "--topic", "x", "--config", "foo=1"], "Unknown topic config name: foo"),
        (
            ["--create", "--topic", "x", "--config", "retention.ms=a"],
            "Invalid value a for configuration retention.ms: Not a number of type LONG",
        ),
        (["--create", "--topic", "x", "--config", "a"], "requirement failed: Invalid topic config: all configs"),
        (["--create", "--topic", "x", "--partitions", "0"], "The partitions must be greater than 0"),
        (["--create", "--topic", "x", "--partitions", "z"], "Cannot parse argument 'z' of option partitions"),
        (["--create", "--topic", "x", "--replica-assignment", "1:1"], "Partition replica lists may not contain"),
        (["--describe", "--topic", "nowhere"], "Topic 'nowhere' does not exist as expected"),
        (["--delete", "--topic", "nowhere"], "Topic 'nowhere' does not exist as expected"),
        (["--list", "--topic", "["], "[ is an invalid regex."),
    ],
)
def test_a_refusal_is_told_on_standard_output(kafka_tools: Kafka, words: list[str], said: str) -> None:
    done = kafka_tools("kafka-topics", *words)
    assert done.code == 1 and done.out.startswith(f"Error while executing topic command : {said}")


def test_a_topic_that_is_there_may_be_wanted_again(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    again = kafka_tools("kafka-topics", "--create", "--topic", name)
    assert again.code == 1 and again.out.endswith(f"Topic '{name}' already exists.\n")
    assert kafka_tools.ok("kafka-topics", "--create", "--topic", name, "--if-not-exists") == []
    assert kafka_tools.ok("kafka-topics", "--describe", "--topic", "nowhere", "--if-exists") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bootstrap-server", "x:1"], "Command must include exactly one action: --list, --describe, --create, "),
        (["--list"], "--bootstrap-server must be specified"),
        (["--bootstrap-server", "x:1", "--create"], 'Missing required argument "[topic]"'),
        (
            ["--bootstrap-server", "x:1", "--list", "--if-exists"],
            'Option "[if-exists]" can\'t be used with option "[list]"',
        ),
        (["--foo"], "foo is not a recognized option"),
    ],
)
def test_a_mistake_is_told_on_standard_error(words: list[str], said: str) -> None:
    done = run("kafka-topics", *words)
    assert done.code == 1 and done.out == "" and done.err.startswith(said)


def test_a_broker_that_is_away_is_waited_for_and_told_of(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=400\n")
    done = run("kafka-topics", "--bootstrap-server", "127.0.0.1:1", "--command-config", str(file), "--list")
    assert done.code == 1 and done.out.startswith("Error while executing topic command : 127.0.0.1:1 cannot be reached")
    assert " WARN [AdminClient] 127.0.0.1:1 cannot be reached" in done.err


def test_settings_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\nssl.truststore.location=trust.jks\n")
    words = ("--bootstrap-server", "127.0.0.1:1", "--list", "--command-config")
    done = run("kafka-topics", *words, str(file))
    assert done.code == 1 and "it cannot be used: No such file or directory" in done.err
    assert run("kafka-topics", *words, str(tmp_path / "none")).code == 1


def test_names_that_metrics_cannot_tell_apart_are_warned_of(kafka_tools: Kafka, name: str) -> None:
    assert kafka_tools.ok("kafka-topics", "--create", "--topic", f"{name}.a")[0].startswith("WARNING: Due to limit")
