"""Groups of the consumer protocol (KIP-848) with confluent-kafka: sharing, static members, patterns, upgrades."""
# pyright: reportPrivateImportUsage=false, reportArgumentType=false

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

WAIT = 120
MakeTopic = Callable[..., str]
Join = Callable[..., Consumer]


@pytest.fixture
def group(fresh_name: Callable[[str], str]) -> str:
    return fresh_name("g")


@pytest.fixture
def join(bootstrap: str, group: str) -> Iterator[Join]:
    """Consumers of the group, of the new protocol unless something else is asked for."""
    with ExitStack() as stack:

        def make(*topics: str, **config: Any) -> Consumer:
            plain = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
            named = {key.replace("_", "."): value for key, value in config.items()}
            consumer = Consumer(
                plain | ({} if "session.timeout.ms" in named else {"group.protocol": "consumer"}) | named
            )
            stack.callback(consumer.close)
            consumer.subscribe(list(topics))
            return consumer

        yield make


def shares(*consumers: Consumer) -> list[int]:
    """How many partitions each has, after all had a chance to move on."""
    for consumer in consumers:
        consumer.poll(0.05)
    return [len(consumer.assignment()) for consumer in consumers]


def until(sizes: list[int], *consumers: Consumer) -> None:
    deadline = time.monotonic() + WAIT
    while (found := shares(*consumers)) != sizes:
        assert time.monotonic() < deadline, f"{found} instead of {sizes}"
    owned = [(part.topic, part.partition) for consumer in consumers for part in consumer.assignment()]
    assert len(owned) == len(set(owned))


def described(admin: AdminClient, group: str) -> Any:
    return admin.describe_consumer_groups([group])[group].result(WAIT)


def test_a_consumer_reads_commits_and_its_offsets_stay(bootstrap: str, join: Join, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(topic, str(number))
    producer.flush()
    consumer = join(topic)
    deadline = time.monotonic() + WAIT
    read: list[Any] = []
    while len(read) < 10 and time.monotonic() < deadline:
        read += consumer.consume(10, 0.2)
    assert [message.value() for message in read] == [str(number).encode() for number in range(10)]
    consumer.commit(asynchronous=False)
    consumer.close()
    (committed,) = join(topic).committed([TopicPartition(topic, 0)], WAIT)
    assert committed.offset == 10


def test_members_share_and_take_over(admin: AdminClient, group: str, join: Join, new_topic: MakeTopic) -> None:
    topic = new_topic(4)
    one = join(topic)
    until([4], one)
    two = join("^" + topic[:-1] + ".*")
    until([2, 2], one, two)
    found = described(admin, group)
    assert (found.state, found.type, len(found.members)) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER, 2)
    one.close()
    until([4], two)


def test_a_static_member_comes_back_to_what_it_had(join: Join, new_topic: MakeTopic) -> None:
    topic = new_topic(3)
    one = join(topic, group_instance_id="i")
    until([3], one)
    one.close()
    until([3], join(topic, group_instance_id="i"))


def test_a_classic_group_is_upgraded_and_downgraded_while_it_consumes(
    admin: AdminClient, group: str, join: Join, new_topic: MakeTopic
) -> None:
    topic = new_topic(4)
    old = join(topic, session_timeout_ms=10_000, heartbeat_interval_ms=500, partition_assignment_strategy="range")
    until([4], old)
    assert described(admin, group).type == ConsumerGroupType.CLASSIC
    new = join(topic)
    until([2, 2], old, new)
    assert described(admin, group).type == ConsumerGroupType.CONSUMER
    new.close()
    until([4], old)
    assert described(admin, group).type == ConsumerGroupType.CLASSIC
