"""Share groups with Kafka's own share consumers: what is settled is settled once, also through kill -9."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from moldau.admin import shares
from moldau.client import Client
from moldau.testing import Broker, broker, eventually
from moldau.wire import messages as m
from moldau.wire.records import Record, build
from tests.conformance.java_tools import FLAGS, MAIN, Tools

pytestmark = pytest.mark.needs("java", "javac", "kafka-jars")

QUICK = {"group.share.heartbeat.interval.ms": "1000", "group.share.min.heartbeat.interval.ms": "1000"}
PATIENCE_S = 90.0
Offset = tuple[int, int]  # partition and offset


def consume(run: Tools, topic: str, group: str, *options: str, most: int = 3) -> list[str]:
    wanted = ["--topic", topic, "--group", group, "--max-messages", str(most), "--timeout-ms", "30000"]
    return run("kafka-console-share-consumer", *wanted, *options).lines()


def from_the_beginning(run: Tools, group: str) -> None:
    setting = ["--add-config", "share.auto.offset.reset=earliest"]
    run("kafka-configs", "--alter", "--entity-type", "groups", "--entity-name", group, *setting)


def test_console_share_consumer_gets_what_was_released_again(
    run: Tools, topic: str, fresh_name: Callable[[str], str]
) -> None:
    group = fresh_name("g")
    from_the_beginning(run, group)
    run("kafka-console-producer", "--topic", topic, stdin="one\ntwo\nthree\n")
    assert consume(run, topic, group, "--release") == ["one", "two", "three"]
    assert consume(run, topic, group) == ["one", "two", "three"]
    rows = run("kafka-share-groups", "--describe", "--group", group, "--offsets").lines()
    assert rows[-1].split()[-1] == "0", rows  # the lag


@dataclass
class Consumer:
    """A verifiable share consumer: the offsets of which it was told that they are settled, and those that it could not
    settle, as far as it knows.
    """

    process: subprocess.Popen[str]
    settled: Counter[Offset] = field(default_factory=Counter[Offset])
    failed: set[Offset] = field(default_factory=set[Offset])

    def follow(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            event = json.loads(line)
            if event["name"] == "offsets_acknowledged":
                told = self.settled if event["success"] else self.failed
                told.update((row["partition"], at) for row in event["partitions"] for at in row["offsets"])


@contextmanager
def consumer(kafka_libs: Path, node: Broker, mode: str) -> Iterator[Consumer]:
    options = ["--topic", "t", "--group-id", "g", "--acknowledgement-mode", mode, "--offset-reset-strategy", "earliest"]
    command = [MAIN["kafka-verifiable-share-consumer"], "--bootstrap-server", node.bootstrap_servers, *options]
    java = ["java", *FLAGS, "-cp", f"{kafka_libs}/*", *command]
    process = subprocess.Popen(java, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    one = Consumer(process)
    thread = threading.Thread(target=one.follow)
    thread.start()
    try:
        yield one
    finally:
        process.kill()
        process.wait()
        thread.join()


def produce(node: Broker, partition: int, count: int) -> set[Offset]:
    """Some batches; returns the offsets of their records."""
    found: set[Offset] = set()
    for _ in range(count):
        data = bytes(build([Record(0, 1, None, b"v")] * 10))
        rows = [m.ProduceRequest_PartitionProduceData(partition, data)]
        answer = node.call(
            m.ProduceRequest(None, -1, 5000, [m.ProduceRequest_TopicProduceData("t", partition_data=rows)]), 9
        )
        base = answer.responses[0].partition_responses[0].base_offset
        found |= {(partition, base + place) for place in range(10)}
    return found


def test_every_record_is_settled_once_through_kill_9(kafka_libs: Path) -> None:
    with broker(QUICK) as node:
        node.create_topic("t", 2, **{"retention.ms": "-1"})
        with consumer(kafka_libs, node, "sync") as one, consumer(kafka_libs, node, "async") as two:
            written = produce(node, 0, 5)
            eventually(lambda: one.settled or two.settled, PATIENCE_S, "a record is settled")
            for _ in range(3):
                written |= produce(node, 0, 10) | produce(node, 1, 10)
                node.kill()
                node.start()
            written |= produce(node, 1, 10)
            eventually(lambda: all_settled(node), PATIENCE_S, "all records are settled")
            # An answer may be lost with the broker: then nobody was told, though the record is settled. Never are two.
            told = [one.settled, two.settled, one.failed, two.failed]
            eventually(lambda: written <= set().union(*map(set, told)), PATIENCE_S, "all were delivered")
        assert max((one.settled + two.settled).values()) == 1


def all_settled(node: Broker) -> bool:
    """By what the group has left."""
    with Client({"bootstrap.servers": node.bootstrap_servers}) as client:
        return [one.lag for one in shares.offsets(client, "g")] == [0, 0]
