"""What others found in systems like this one, by name: the table in docs/durability.md says which test is for which."""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Cluster, eventually
from moldau.wire import messages as m
from moldau.wire.records import batches
from tests.needs import ROOT

TOPIC, RECORDS = "t", 3000
QUICK = {"broker_session_timeout_ms": 2000, "broker_heartbeat_interval_ms": 200}
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_test_that_the_docs_name_exists() -> None:
    named = NAMED.findall((ROOT / "docs" / "durability.md").read_text())
    assert len(named) > 10
    for file, name in named:
        text = (ROOT / file).read_text()
        assert f"def {name}(" in text, f"docs/durability.md names {file}::{name}"


def client(made: Cluster, **more: Any) -> dict[str, Any]:
    base = {"bootstrap.servers": made.bootstrap_servers, "broker.address.family": "v4", "log_level": 0}
    return base | {name.replace("_", "."): value for name, value in more.items()}


def create(made: Cluster, replicas: list[int], **config: str) -> None:
    admin = AdminClient(client(made))
    settings = {name.replace("_", "."): value for name, value in config.items()}
    new = NewTopic(TOPIC, num_partitions=1, replica_assignment=[replicas], config=settings)
    admin.create_topics([new])[TOPIC].result(30)
    eventually(lambda: placement(made) == (replicas[0], sorted(replicas)))


def placement(made: Cluster) -> tuple[int, list[int]]:
    """Return leader and ISR."""
    try:
        part = AdminClient(client(made)).list_topics(TOPIC, timeout=20).topics[TOPIC].partitions[0]
    except (KafkaException, KeyError):
        return -1, []
    return part.leader, sorted(part.isrs)


def produce(made: Cluster, first: int, count: int) -> None:
    failures: list[Any] = []
    producer = Producer(client(made, acks="all", enable_idempotence=True))
    for number in range(first, first + count):
        value = b"%d " % number + bytes(100)
        producer.produce(TOPIC, value, on_delivery=lambda error, _: error and failures.append(error))
        producer.poll(0)
    assert producer.flush(60) == 0 and not failures, failures[:3]


def read(made: Cluster, count: int) -> list[int]:
    consumer = Consumer(client(made, group_id="unused", enable_auto_commit=False, session_timeout_ms=6000))
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    try:
        seen: list[int] = []
        while len(seen) < count and (some := consumer.consume(min(1000, count - len(seen)), 30)):
            seen += [int(record.value().split(b" ")[0]) for record in some if record.error() is None]
        return seen
    finally:
        consumer.close()


def test_an_isr_that_shrank_to_its_leader_waits_for_it(kafka_cluster: Callable[..., Cluster]) -> None:
    """Kafka 0.8: the last in-sync replica dies, and one that lacks acknowledged records takes over."""
    made = kafka_cluster(3, **QUICK)
    create(made, [1, 2], min_insync_replicas="1")
    produce(made, 0, 10)
    made.kill(2)
    eventually(lambda: placement(made) == (1, [1]))
    produce(made, 10, 10)
    made.kill(1)
    made.start_again(2)
    eventually(lambda: placement(made)[0] == -1)
    made.start_again(1)
    eventually(lambda: placement(made) == (1, [1, 2]))
    assert read(made, 20) == list(range(20))


def test_a_flipped_bit_on_one_disk_reaches_no_reader_and_no_other_disk(kafka_cluster: Callable[..., Cluster]) -> None:
    """NATS 2.12: the damage of a minority is elected, and spreads."""
    made = kafka_cluster(3, **QUICK)
    create(made, [1, 2, 3])
    produce(made, 0, RECORDS)
    made.kill(1)
    (segment,) = Path(made[1].data_dir).glob(f"{TOPIC}-0/*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    made.start_again(1)
    produce(made, RECORDS, 10)
    assert read(made, RECORDS + 10) == list(range(RECORDS + 10))
    for node in (1, 2, 3):
        for batch in batches_of(made, node):
            batch.verify()


def batches_of(made: Cluster, node: int) -> list[Any]:
    """Return what a broker itself gives to a reader: nothing, if it knows that its copy is damaged."""
    row = m.FetchRequest_FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 26)
    request = m.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 26,
        session_epoch=-1,
        topics=[m.FetchRequest_FetchTopic(TOPIC, partitions=[row])],
    )
    part = made[node].call(request, 12).responses[0].partitions[0]
    return [] if part.error_code or not part.records else list(batches(part.records))


def test_a_crash_while_others_are_frozen_loses_nothing(kafka_cluster: Callable[..., Cluster]) -> None:
    """NATS 2.12: one machine crashes while the others are paused, and what it had acknowledged is gone."""
    made, frozen = kafka_cluster(3, **QUICK), (2, 3)
    create(made, [1, 2, 3], min_insync_replicas="2")
    produce(made, 0, RECORDS)
    for node in frozen:
        made.pause(node)
    made.kill(1)
    for node in frozen:
        made.resume(node)
    eventually(lambda: placement(made)[0] in frozen)
    made.start_again(1)
    eventually(lambda: placement(made)[1] == [1, 2, 3])
    assert read(made, RECORDS) == list(range(RECORDS))
