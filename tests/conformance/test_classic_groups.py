"""Classic groups with confluent-kafka, kafka-python and aiokafka: sharing, static members, commits, administration."""
# pyright: reportPrivateImportUsage=false, reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false, reportCallIssue=false

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

WAIT = 120
MakeTopic = Callable[..., str]
Join = Callable[..., Consumer]


@pytest.fixture
def group(fresh_name: Callable[[str], str]) -> str:
    return fresh_name("g")


@pytest.fixture
def join(bootstrap: str, group: str) -> Iterator[Join]:
    with ExitStack() as stack:

        def make(topic: str, **config: Any) -> Consumer:
            plain = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
            plain |= {"heartbeat.interval.ms": 500, "session.timeout.ms": 6000}
            consumer = Consumer(plain | {key.replace("_", "."): value for key, value in config.items()})
            stack.callback(consumer.close)
            consumer.subscribe([topic])
            return consumer

        yield make


def fill(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, str(number))
    assert producer.flush(WAIT) == 0


def until(sizes: list[int], *consumers: Consumer) -> None:
    """Poll until each consumer has as many partitions as it should."""
    deadline = time.monotonic() + WAIT
    while True:
        for consumer in consumers:
            consumer.poll(0.05)
        owned = [part.partition for consumer in consumers for part in consumer.assignment()]
        if [len(consumer.assignment()) for consumer in consumers] == sizes:
            assert len(owned) == len(set(owned))
            return
        assert time.monotonic() < deadline, f"{owned} instead of {sizes}"


def read(consumer: Consumer, count: int) -> list[bytes]:
    deadline, values = time.monotonic() + WAIT, list[bytes]()
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            values.append(message.value())
    return values


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_consumers_share_a_topic_and_take_over(join: Join, new_topic: MakeTopic, strategy: str) -> None:
    topic = new_topic(partitions=6)
    first = join(topic, partition_assignment_strategy=strategy)
    until([6], first)
    second, third = (join(topic, partition_assignment_strategy=strategy) for _ in range(2))
    until([2, 2, 2], first, second, third)
    third.unsubscribe()
    until([3, 3], first, second)


def test_group_goes_on_where_it_committed(bootstrap: str, join: Join, topic: str) -> None:
    fill(bootstrap, topic, 20)
    first = join(topic, enable_auto_commit=False)
    assert len(read(first, 20)) == 20
    first.commit(asynchronous=False)
    first.close()
    fill(bootstrap, topic, 5)
    assert len(read(join(topic), 5)) == 5


def test_static_member_that_comes_back_moves_nothing(
    join: Join, new_topic: MakeTopic, admin: AdminClient, group: str
) -> None:
    topic = new_topic(partitions=4)
    one, two = (join(topic, group_instance_id=f"i{number}", session_timeout_ms=30_000) for number in range(2))
    until([2, 2], one, two)
    before = sorted(part.partition for part in two.assignment())
    two.close()
    again = join(topic, group_instance_id="i1", session_timeout_ms=30_000)
    until([2, 2], one, again)
    assert sorted(part.partition for part in again.assignment()) == before
    described = admin.describe_consumer_groups([group])[group].result(WAIT)
    assert sorted(member.group_instance_id for member in described.members) == ["i0", "i1"]


def test_group_is_described_listed_altered_and_deleted(
    bootstrap: str, join: Join, admin: AdminClient, topic: str, group: str
) -> None:
    fill(bootstrap, topic, 10)
    consumer = join(topic, enable_auto_commit=False)
    read(consumer, 10)
    consumer.commit(asynchronous=False)
    described = admin.describe_consumer_groups([group])[group].result(WAIT)
    assert described.state == ConsumerGroupState.STABLE and len(described.members) == 1
    listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(WAIT).valid
    assert group in [row.group_id for row in listed]
    consumer.close()
    place = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 3)])
    admin.alter_consumer_group_offsets([place])[group].result(WAIT)
    (found,) = (
        admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(WAIT).topic_partitions
    )
    assert found.offset == 3
    admin.delete_consumer_groups([group])[group].result(WAIT)
    assert group not in [row.group_id for row in admin.list_consumer_groups().result(WAIT).valid]


def test_kafka_python_shares_a_topic(bootstrap: str, new_topic: MakeTopic, group: str) -> None:
    """A thread each, as applications have it: kafka-python joins, beats and reads only while it is polled."""
    topic, values, over = new_topic(partitions=4), list[bytes](), threading.Event()
    options = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
    consumers = [KafkaConsumer(topic, **options, heartbeat_interval_ms=500) for _ in range(2)]

    def work(consumer: KafkaConsumer) -> None:
        while not over.is_set():
            values.extend(record.value for batch in consumer.poll(timeout_ms=500).values() for record in batch)
        consumer.close()

    with ThreadPoolExecutor(2) as pool:
        working = [pool.submit(work, consumer) for consumer in consumers]
        try:
            wait_for(lambda: [len(consumer.assignment()) for consumer in consumers] == [2, 2])
            fill(bootstrap, topic, 40)
            wait_for(lambda: len(values) >= 40)
        finally:
            over.set()
        for done in working:
            done.result(WAIT)
    assert sorted(map(int, values)) == list(range(40))


def wait_for(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_aiokafka_shares_a_topic(bootstrap: str, new_topic: MakeTopic, group: str) -> None:
    topic = new_topic(partitions=4)

    async def share() -> list[bytes]:
        options = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
        consumers = [AIOKafkaConsumer(topic, **options, heartbeat_interval_ms=500) for _ in range(2)]
        for consumer in consumers:
            await consumer.start()
        while [len(consumer.assignment()) for consumer in consumers] != [2, 2]:
            for consumer in consumers:
                await consumer.getmany(timeout_ms=50)
        fill(bootstrap, topic, 40)
        values: list[bytes] = []
        while len(values) < 40:
            for consumer in consumers:
                found = await consumer.getmany(timeout_ms=50)
                values += [record.value or b"" for batch in found.values() for record in batch]
        for consumer in consumers:
            await consumer.stop()
        return values

    values = asyncio.run(asyncio.wait_for(share(), WAIT))
    assert sorted(map(int, values)) == list(range(40))
