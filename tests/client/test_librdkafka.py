"""What is read from confluent-kafka's consumer: records, and which member of its group it is."""

from __future__ import annotations

from typing import cast

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from moldau.client.librdkafka import GroupMember, member_of, take
from moldau.testing import Broker
from tests.services import unique

LONG_S = 3600.0  # nobody waits for so long


def test_few_records_are_not_held_up_for_many(kafka_shared: Broker) -> None:
    topic = unique("take")
    kafka_shared.create_topic(topic)
    servers = {"bootstrap.servers": kafka_shared.bootstrap_servers}
    producer, consumer = Producer(servers), Consumer({**servers, "group.id": "-"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    for sent in (["a"], ["b", "c", "d"]):
        for value in sent:
            producer.produce(topic, value)
        producer.flush(60)
        found: list[bytes | None] = []
        while len(found) < len(sent):
            found += [one.value() for one in take(consumer, 100, LONG_S) if one.error() is None]
        assert found == [one.encode() for one in sent]
    assert take(consumer, 100, 0.0) == []
    consumer.close()


@pytest.mark.parametrize("instance", [None, "its-name"])
def test_a_member_of_a_group_is_the_one_that_the_broker_knows(kafka_shared: Broker, instance: str | None) -> None:
    topic, group = unique("member"), unique("group")
    kafka_shared.create_topic(topic)
    servers = {"bootstrap.servers": kafka_shared.bootstrap_servers}
    named = {"group.instance.id": instance} if instance else {}
    consumer = Consumer({**servers, **named, "group.id": group})
    assert member_of(consumer) == GroupMember(group, -1, "", instance)
    seen: list[GroupMember] = []
    consumer.subscribe([topic], on_assign=lambda one, _: seen.append(member_of(one)))
    while not seen:
        consumer.consume(1, 0.2)
    admin = AdminClient(servers)  # to drop it would end the request
    known = admin.describe_consumer_groups([group])[group].result(30).members[0]
    assert seen == [GroupMember(group, 1, known.member_id, instance)] and known.member_id == consumer.memberid()
    consumer.close()


def test_what_librdkafka_writes_in_another_way_is_refused() -> None:
    class Newer:
        def consumer_group_metadata(self) -> bytes:
            return b"CGMDv9:..."

    with pytest.raises(ValueError, match="not known: b'CGMDv9"):
        member_of(cast(Consumer, Newer()))
