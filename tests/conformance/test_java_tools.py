"""Kafka's own command-line tools, which are Java's producer, consumer and admin client in their plainest form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.java_tools import Tools

pytestmark = pytest.mark.needs("java", "javac", "kafka-jars")

MakeTopic = Callable[..., str]


def offsets(run: Tools, topic: str, *arguments: str) -> dict[int, int]:
    rows = [line.rsplit(":", 2) for line in run("kafka-get-offsets", "--topic", topic, *arguments).lines()]
    return {int(partition): int(offset) for _, partition, offset in rows}


def fill(run: Tools, topic: str, *lines: str) -> None:
    keyed = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    run("kafka-console-producer", "--topic", topic, *keyed, stdin="\n".join(lines) + "\n")


def test_topics_are_created_described_altered_and_deleted(run: Tools, fresh_name: Callable[[str], str]) -> None:
    name = fresh_name("jt")
    made = run("kafka-topics", "--create", "--topic", name, "--partitions", "3", "--config", "retention.ms=100000")
    assert made.lines() == [f"Created topic {name}."]
    head, *rows = run("kafka-topics", "--describe", "--topic", name).lines()
    assert re.search(r"TopicId: [\w-]{22}\tPartitionCount: 3\tReplicationFactor: 1\t", head)
    assert "retention.ms=100000" in head
    assert [re.sub(r".*Partition: (\d+)\tLeader: (\d+).*Isr: (\d+)\t.*", r"\1 \2=\3", row) for row in rows] == [
        f"{n} {leader}={leader}" for n, leader in enumerate([leader_of(rows[0])] * 3)
    ]
    run("kafka-topics", "--alter", "--topic", name, "--partitions", "4")
    assert name in run("kafka-topics", "--list").lines()
    assert len(run("kafka-topics", "--describe", "--topic", name).lines()) == 5
    run("kafka-topics", "--delete", "--topic", name)
    assert run("kafka-topics", "--describe", "--topic", name, check=False).exit == 1


def leader_of(row: str) -> str:
    found = re.search(r"Leader: (\d+)", row)
    assert found
    return found[1]


def test_a_refusal_names_the_topic(run: Tools, topic: str) -> None:
    again = run("kafka-topics", "--create", "--topic", topic, check=False)
    assert again.exit == 1 and f"Topic '{topic}' already exists." in again.out
    assert run("kafka-topics", "--create", "--if-not-exists", "--topic", topic).exit == 0


def test_sound_partitions_are_not_listed_as_unsound(run: Tools, topic: str) -> None:
    for flag in ("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"):
        assert run("kafka-topics", "--describe", "--topic", topic, flag).lines() == []


def test_topic_settings_are_altered_described_and_removed(run: Tools, topic: str) -> None:
    entity = ["--entity-type", "topics", "--entity-name", topic]
    added = "segment.bytes=2000000,cleanup.policy=[compact,delete]"
    run("kafka-configs", "--alter", *entity, "--add-config", added)
    head, *rows = run("kafka-configs", "--describe", *entity).lines()
    assert head == f"Dynamic configs for topic {topic} are:"
    # Elsewhere the broker's file may set the same (STATIC_BROKER_CONFIG), so only the first and last source are told.
    assert [re.sub(r", STATIC_BROKER_CONFIG:[^=]*=[^,}]*", "", row) for row in rows] == [
        "cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "segment.bytes=2000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=2000000, "
        "DEFAULT_CONFIG:log.segment.bytes=1073741824}",
    ]
    run("kafka-configs", "--alter", *entity, "--delete-config", "segment.bytes,cleanup.policy")
    assert len(run("kafka-configs", "--describe", *entity).lines()) == 1
    everything = run("kafka-configs", "--describe", "--all", *entity).lines()
    assert len(everything) > 30
    assert "index.interval.bytes=4096 sensitive=false synonyms={DEFAULT_CONFIG:log.index.interval.bytes=4096}" in (
        everything
    )


def test_a_wrong_setting_is_refused_by_name(run: Tools, topic: str) -> None:
    entity = ["--entity-type", "topics", "--entity-name", topic]
    wrong = run("kafka-configs", "--alter", *entity, "--add-config", "no.such.setting=1", check=False)
    assert wrong.exit == 1 and "no.such.setting" in wrong.out + wrong.err


def test_broker_settings_and_quotas_are_stored(run: Tools) -> None:
    brokers = ["--entity-type", "brokers", "--entity-default"]
    run("kafka-configs", "--alter", *brokers, "--add-config", "log.cleaner.threads=2")
    described = run("kafka-configs", "--describe", *brokers).out
    assert "log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.threads=2" in (
        described
    )
    run("kafka-configs", "--alter", *brokers, "--delete-config", "log.cleaner.threads")
    assert "log.cleaner.threads" not in run("kafka-configs", "--describe", *brokers).out
    client = ["--entity-type", "clients", "--entity-name", "some-client"]
    run("kafka-configs", "--alter", *client, "--add-config", "producer_byte_rate=1000")
    (line,) = run("kafka-configs", "--describe", *client).lines()
    assert line == "Quota configs for client-id 'some-client' are producer_byte_rate=1000.0"
    run("kafka-configs", "--alter", *client, "--delete-config", "producer_byte_rate")
    assert run("kafka-configs", "--describe", *client).lines() == []


def test_what_the_console_producer_writes_the_console_consumer_reads(run: Tools, topic: str) -> None:
    fill(run, topic, "a:1", "b:2", "c:3")
    shown = ["--formatter-property", "print.key=true", "--formatter-property", "print.offset=true"]
    reader = ["--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "3", *shown]
    assert run("kafka-console-consumer", *reader, "--timeout-ms", "10000").lines() == [
        "Offset:0\ta\t1",
        "Offset:1\tb\t2",
        "Offset:2\tc\t3",
    ]
    committed = run("kafka-console-consumer", *reader, "--isolation-level", "read_committed", "--timeout-ms", "10000")
    assert len(committed.lines()) == 3


def test_offsets_are_got_by_place_and_time(run: Tools, new_topic: MakeTopic) -> None:
    topic = new_topic(2)
    fill(run, topic, "a:1", "b:2", "c:3", "d:4", "e:5")
    latest = offsets(run, topic)
    assert sum(latest.values()) == 5 and min(latest.values()) >= 1
    assert offsets(run, topic, "--time", "earliest") == {0: 0, 1: 0}
    assert offsets(run, topic, "--time", "latest") == latest
    assert offsets(run, topic, "--time", "0") == {0: 0, 1: 0}
    assert offsets(run, topic, "--time", "max-timestamp").keys() == {0, 1}
    assert offsets(run, topic, "--time", "earliest-local") == {0: 0, 1: 0}


def test_records_are_deleted_up_to_an_offset(run: Tools, topic: str, tmp_path: Path) -> None:
    fill(run, topic, "a:1", "b:2", "c:3")
    order = tmp_path / "order.json"
    order.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 2}]}))
    done = run("kafka-delete-records", "--offset-json-file", str(order))
    assert f"partition: {topic}-0\tlow_watermark: 2" in done.lines()
    assert offsets(run, topic, "--time", "earliest") == {0: 2}


def log_directory(run: Tools, topic: str) -> tuple[Path, int]:
    """Where the partition 0 of a topic lies on this machine, and its size."""
    described = json.loads(run("kafka-log-dirs", "--describe", "--topic-list", topic).lines()[-1])
    (broker,) = described["brokers"]
    (place,) = [entry for entry in broker["logDirs"] if entry["partitions"]]
    assert place["error"] is None
    (partition,) = place["partitions"]
    assert partition["partition"] == f"{topic}-0"
    return Path(place["logDir"]) / f"{topic}-0", partition["size"]


def test_the_log_on_disk_is_read_by_kafkas_own_dump(run: Tools, topic: str) -> None:
    fill(run, topic, *(f"key{n}:value{n}" for n in range(50)))
    folder, size = log_directory(run, topic)
    segment = folder / f"{0:020}.log"
    assert segment.stat().st_size == size
    dump = run("kafka-dump-log", "--print-data-log", "--files", str(segment)).out
    assert "starting offset: 0" in dump and dump.count("isvalid: true") >= 1 and "isvalid: false" not in dump
    assert [int(n) for n in re.findall(r"payload: value(\d+)", dump)] == list(range(50))


def test_the_indexes_of_a_full_segment_are_sound_to_kafkas_own_dump(run: Tools, new_topic: MakeTopic) -> None:
    topic = new_topic(segment_bytes="1048576")
    load = ["--num-records", "15000", "--record-size", "200", "--throughput", "-1"]
    run("kafka-producer-perf-test", "--topic", topic, *load)
    folder, _ = log_directory(run, topic)
    full = sorted(folder.glob("*.log"))[:-1]
    assert full
    indexes = ",".join(str(segment.with_suffix(kind)) for segment in full for kind in (".index", ".timeindex"))
    for check in ("--index-sanity-check", "--verify-index-only"):
        found = run("kafka-dump-log", check, "--files", indexes).out
        assert "Mismatches" not in found and "Found" not in found, found
    assert run("kafka-dump-log", "--index-sanity-check", "--files", indexes).out.count("passed sanity check") >= 2


def test_the_metadata_log_is_read_by_kafkas_own_dump(run: Tools, topic: str) -> None:
    folder, _ = log_directory(run, topic)
    segments = sorted(folder.parent.glob("__cluster_metadata-0/*.log"))
    assert segments
    dump = run("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(segments[-1])).out
    assert f'"type":"TOPIC_RECORD","version":0,"data":{{"name":"{topic}"' in dump
    assert "isvalid: false" not in dump


@pytest.mark.parametrize("props", ["acks=1", "acks=all", "acks=0", "compression.type=lz4", "compression.type=zstd"])
def test_the_performance_producer_loses_nothing(run: Tools, new_topic: MakeTopic, props: str) -> None:
    topic = new_topic(3)
    load = ["--num-records", "20000", "--record-size", "100", "--throughput", "-1", "--command-property", props]
    said = run("kafka-producer-perf-test", "--topic", topic, *load).lines()[-1]
    assert said.startswith("20000 records sent")
    assert sum(offsets(run, topic).values()) == 20000


def test_versions_of_every_request_are_told(run: Tools, bootstrap: str) -> None:
    head, *rows = run("kafka-broker-api-versions").lines()
    assert head.startswith(f"{bootstrap} (id: ") and "isFenced: false" in head
    usable = {row.split("(")[0] for row in rows if "[usable: " in row}
    assert usable >= NEEDED, NEEDED - usable
    assert not [row for row in rows if row.split("(")[0] in NEEDED and "UNSUPPORTED" in row]


NEEDED = {
    *("Produce", "Fetch", "ListOffsets", "Metadata", "ApiVersions", "CreateTopics", "DeleteTopics", "DeleteRecords"),
    *("InitProducerId", "OffsetForLeaderEpoch", "DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs"),
    *("AlterReplicaLogDirs", "DescribeLogDirs", "CreatePartitions", "ElectLeaders", "AlterPartitionReassignments"),
    *("ListPartitionReassignments", "DescribeQuorum", "UpdateFeatures", "UnregisterBroker", "DescribeCluster"),
    *("DescribeClientQuotas", "AlterClientQuotas", "DescribeProducers", "DescribeTopicPartitions"),
    "ListConfigResources",
}


def test_the_quorum_and_its_features_are_described(run: Tools) -> None:
    status = dict(line.split(":", 1) for line in run("kafka-metadata-quorum", "describe", "--status").lines())
    assert len(status["ClusterId"].strip()) == 22
    assert int(status["LeaderId"]) >= 0 and int(status["HighWatermark"]) > 0
    assert status["CurrentObservers"].strip() == "[]"
    _, row = run("kafka-metadata-quorum", "describe", "--replication").lines()
    assert row.split()[0] == status["LeaderId"].strip() and row.split()[-1] == "Leader"
    features = run("kafka-features", "describe").lines()
    versions = {row.split()[1]: re.findall(r"VersionLevel: (\S+)", row) for row in features}
    assert versions["metadata.version"] == ["4.3-IV0"]
    assert versions.keys() >= {"group.version", "transaction.version", "share.version", "kraft.version"}


def test_the_cluster_names_itself_and_its_endpoints(run: Tools, bootstrap: str) -> None:
    (line,) = run("kafka-cluster", "cluster-id").lines()
    assert re.fullmatch(r"Cluster ID: [\w-]{22}", line)
    _, row = run("kafka-cluster", "list-endpoints").lines()
    host, port = bootstrap.split(":")
    assert row.split()[1:3] == [host, port] and "unfenced" in row


def test_there_is_nothing_to_move_or_to_elect(run: Tools, topic: str) -> None:
    assert run("kafka-reassign-partitions", "--list").lines() == ["No partition reassignments found."]
    preferred = ["--election-type", "preferred"]
    (line,) = run("kafka-leader-election", *preferred, "--topic", topic, "--partition", "0").lines()
    assert line == f"Valid replica already elected for partitions {topic}-0"
    assert run("kafka-leader-election", *preferred, "--all-topic-partitions").lines() == []


def test_a_move_to_where_it_is_is_carried_out_at_once(run: Tools, topic: str, tmp_path: Path) -> None:
    leader = int(leader_of(run("kafka-topics", "--describe", "--topic", topic).lines()[1]))
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [leader]}]}))
    run("kafka-reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
    done = run("kafka-reassign-partitions", "--verify", "--reassignment-json-file", str(plan)).out
    assert f"Reassignment of partition {topic}-0 is completed." in done


def test_idempotent_writers_of_a_partition_are_listed(run: Tools, topic: str) -> None:
    fill(run, topic, "a:1", "b:2", "c:3")
    where = ["--topic", topic, "--partition", "0"]
    _, row = run("kafka-transactions", "describe-producers", *where).lines()
    _, epoch, coordinator_epoch, last_sequence, _, transaction_start = row.split()
    assert (epoch, coordinator_epoch, last_sequence, transaction_start) == ("0", "-1", "2", "None")


def test_nobody_has_delegation_tokens_where_nobody_authenticates(run: Tools, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("")
    life = "--renew-time-period", "--expiry-time-period", "--max-life-time-period"
    for order in (
        ["--create", life[2], "-1"],
        ["--describe"],
        ["--renew", "--hmac", "AAAA", life[0], "-1"],
        ["--expire", "--hmac", "AAAA", life[1], "-1"],
    ):
        said = run("kafka-delegation-tokens", *order, "--command-config", str(config), check=False)
        assert said.exit == 1 and "PLAINTEXT" in said.out + said.err, (order, said)


def test_the_last_voter_cannot_be_removed(run: Tools) -> None:
    leader = run("kafka-metadata-quorum", "describe", "--replication").lines()[1].split()[0]
    order = ["remove-controller", "--controller-id", leader, "--controller-directory-id", "A" * 21 + "Q"]
    said = run("kafka-metadata-quorum", *order, check=False)
    assert said.exit == 1 and re.search("UnsupportedVersion|VoterNotFound", said.out + said.err), said


def test_subscriptions_to_client_metrics_are_altered_listed_and_deleted(run: Tools, fresh_name: Callable[[str], str]):
    name = fresh_name("metrics")
    wanted = ["--metrics", "org.apache.kafka.consumer.,org.apache.kafka.producer.", "--interval", "5000"]
    run("kafka-client-metrics", "--alter", "--name", name, *wanted, "--match", "client_id=a.*")
    assert name in run("kafka-client-metrics", "--list").lines()
    told = run("kafka-client-metrics", "--describe", "--name", name).out
    assert "interval.ms=5000" in told and "match=client_id=a.*" in told and "metrics=org.apache.kafka.consumer." in told
    run("kafka-client-metrics", "--delete", "--name", name)
    assert name not in run("kafka-client-metrics", "--list").lines()
