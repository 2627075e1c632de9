"""Offsets, records and files: kafka-get-offsets, -delete-records, -log-dirs, -dump-log, and the perf tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from moldau.client import Client, Record, build, produce
from moldau.testing import Broker
from tests.cli.kafka.running import Kafka, run


@pytest.fixture
def topic(kafka_tools: Kafka, name: str) -> str:
    """Two partitions; the first has a batch of three records."""
    kafka_tools.topic(name, 2)
    records = [Record(timestamp=1_700_000_000_000 + n, key=b"k%d" % n, value=b"v%d" % n) for n in range(3)]
    with Client({"bootstrap.servers": kafka_tools.servers}) as client:
        produce(client, name, 0, build(records))
    return name


def test_offsets_are_had_by_place_and_time(kafka_tools: Kafka, topic: str) -> None:
    def offsets(*words: str) -> list[str]:
        return kafka_tools.ok("kafka-get-offsets", *words)

    assert offsets("--topic", topic) == [f"{topic}:0:3", f"{topic}:1:0"]
    assert offsets("--topic", topic, "--time", "earliest", "--partitions", "0") == [f"{topic}:0:0"]
    assert offsets("--topic-partitions", f"{topic}:0", "--time", "1700000000001") == [f"{topic}:0:1"]
    assert offsets("--topic", topic, "--time", "1900000000000") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "nowhere"], "Error occurred: Could not match any topic-partitions with the specified filters"),
        (["--topic", "x", "--time", "noon"], "Error occurred: Malformed time argument noon. Please use -1 or latest"),
        (["--topic", "x", "--partitions", "a"], "Error occurred: --partitions expects a comma separated list of num"),
        (["--topic-partitions", "a", "--topic", "b"], "Error occurred: --topic-partitions cannot be used with --topic"),
        (["--foo"], "Error occurred: foo is not a recognized option"),
    ],
)
def test_offsets_that_cannot_be_had_are_told(kafka_tools: Kafka, words: list[str], said: str) -> None:
    done = kafka_tools("kafka-get-offsets", *words)
    assert done.code == 1 and done.err.startswith(said)


def test_records_are_deleted_up_to_an_offset(kafka_tools: Kafka, topic: str, tmp_path: Path) -> None:
    order = tmp_path / "order.json"
    order.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 2}]}))
    assert kafka_tools.ok("kafka-delete-records", "--offset-json-file", str(order)) == [
        "Executing records delete operation",
        "Records delete operation completed:",
        f"partition: {topic}-0\tlow_watermark: 2",
    ]
    for text, said in (
        ("{", "The input string is not a valid JSON"),
        ('{"version": 2}', "Not supported version field value 2"),
        ("{}", "Missing partitions field"),
        ('{"partitions": [1]}', "A partition is written"),
    ):
        order.write_text(text)
        done = kafka_tools("kafka-delete-records", "--offset-json-file", str(order))
        assert done.code == 1 and done.err.startswith(said)


def test_directories_are_described_as_json(kafka_tools: Kafka, cluster: Broker, topic: str) -> None:
    first, second, document = kafka_tools.ok("kafka-log-dirs", "--describe", "--topic-list", topic)
    assert first == "Querying brokers for log directories information"
    assert second == "Received log directory information from brokers 1"
    assert document.startswith('{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"')
    (broker,) = json.loads(document)["brokers"]
    (place,) = broker["logDirs"]
    assert place["logDir"] == cluster.data_dir and place["error"] is None and len(place["partitions"]) == 2
    done = kafka_tools("kafka-log-dirs", "--describe", "--broker-list", "7")
    assert done.code == 1 and done.err.startswith(
        "ERROR: The given brokers do not exist from --broker-list: 7. Current"
    )


def segment(cluster: Broker, topic: str) -> str:
    return str(Path(cluster.data_dir) / f"{topic}-0" / "00000000000000000000.log")


def test_a_segment_is_dumped_batch_by_batch(cluster: Broker, kafka_tools: Kafka, topic: str) -> None:
    head, start, batch, *rest = kafka_tools.ok("kafka-dump-log", "--files", segment(cluster, topic))
    assert head == f"Dumping {segment(cluster, topic)}" and start == "Log starting offset: 0" and not rest
    assert re.sub(r"(crc|producerId): \d+", r"\1: #", batch) == (
        "baseOffset: 0 lastOffset: 2 count: 3 baseSequence: 0 lastSequence: 2 producerId: # producerEpoch: 0 "
        "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        "position: 0 CreateTime: 1700000000002 size: 94 magic: 2 compresscodec: none crc: # isvalid: true"
    )
    lines = kafka_tools.ok("kafka-dump-log", "--print-data-log", "--files", segment(cluster, topic))
    assert lines[4] == (
        "| offset: 1 CreateTime: 1700000000001 keySize: 2 valueSize: 2 sequence: 1 headerKeys: [] key: k1 payload: v1"
    )
    bare = kafka_tools.ok(
        "kafka-dump-log", "--print-data-log", "--skip-record-metadata", "--files", segment(cluster, topic)
    )
    assert bare[3] == "| key: k0 payload: v0"
    by_class = kafka_tools("kafka-run-class", "kafka.tools.DumpLogSegments", "--files", segment(cluster, topic))
    assert by_class.out.splitlines()[2] == batch


def test_metadata_is_dumped_as_json(cluster: Broker, kafka_tools: Kafka, topic: str) -> None:
    file = Path(cluster.data_dir) / "__cluster_metadata-0" / "00000000000000000000.log"
    lines = kafka_tools.ok("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(file))
    assert any(f'payload: {{"type":"TOPIC_RECORD","version":0,"data":{{"name":"{topic}"' in line for line in lines)
    assert any("LeaderChange: {" in line for line in lines)


def test_files_that_are_none_are_told(kafka_tools: Kafka, tmp_path: Path) -> None:
    odd = tmp_path / "notes.txt"
    odd.write_text("x")
    done = kafka_tools("kafka-dump-log", "--files", str(odd))
    assert done.code == 0 and done.err == f"Ignoring unknown file {odd}\n"
    torn = tmp_path / "00000000000000000000.log"
    torn.write_bytes(b"x" * 100)
    assert kafka_tools.ok("kafka-dump-log", "--files", str(torn))[-1] == (
        f"Found 100 invalid bytes at the end of {torn.name}"
    )
    assert kafka_tools("kafka-dump-log", "--files", str(tmp_path / "7.log")).code == 1
    assert kafka_tools("kafka-dump-log", "--files", str(torn), "--value-decoder-class", "com.example.Mine").code == 1
    assert run("kafka-run-class", "com.example.Mine").code == 1


def test_perf_tests_count_what_they_write_and_read(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    words = ("--topic", name, "--num-records", "200", "--record-size", "50", "--throughput", "-1")
    (line,) = kafka_tools.ok("kafka-producer-perf-test", *words)
    number = r"\d+\.\d+"
    assert re.fullmatch(
        rf"200 records sent, \d+\.\d{{6}} records/sec \({number} MB/sec\), {number} ms avg latency, {number} ms max "
        r"latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th\.",
        line,
    )
    head, line = kafka_tools.ok("kafka-consumer-perf-test", "--topic", name, "--num-records", "200")
    assert len(head.split(", ")) == len(line.split(", ")) == 10 and line.split(", ")[4] == "200"
    assert kafka_tools("kafka-producer-perf-test", *words[:-2], "--throughput", "x").code == 1
    assert kafka_tools("kafka-producer-perf-test", *words[:4], "--throughput", "1").code == 1


def test_verifiable_clients_tell_in_json(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    words = ("--topic", name, "--max-messages", "2", "--value-prefix", "7", "--repeating-keys", "1")
    events = [json.loads(line) for line in kafka_tools.ok("kafka-verifiable-producer", *words)]
    names = ["startup_complete", *["producer_send_success"] * 2, "shutdown_complete", "tool_data"]
    assert [one["name"] for one in events] == names
    assert [(one["key"], one["value"], one["offset"]) for one in events[1:3]] == [("0", "7.0", 0), ("0", "7.1", 1)]
    words = ("--topic", name, "--group-id", name, "--max-messages", "2", "--verbose")
    events = [json.loads(line) for line in kafka_tools.ok("kafka-verifiable-consumer", *words)]
    assert [one["value"] for one in events if one["name"] == "record_data"] == ["7.0", "7.1"]
    assert events[-1]["name"] == "shutdown_complete"


def test_a_share_group_is_given_records_once(kafka_tools: Kafka, topic: str) -> None:
    share = f"{topic}-s"
    kafka_tools.ok(
        "kafka-share-groups", "--reset-offsets", "--group", share, "--topic", topic, "--to-earliest", "--execute"
    )
    words = ("--topic", topic, "--group", share, "--timeout-ms", "20000")
    first = kafka_tools.ok("kafka-console-share-consumer", *words, "--max-messages", "2")
    assert first == ["v0", "v1"]
    assert kafka_tools.ok("kafka-console-share-consumer", *words, "--max-messages", "1") == ["v2"]
