"""Reading with confluent-kafka's consumer."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.client.librdkafka import take
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
