"""The shop's events on their way to the topics: topics made, schemas registered, records written at a rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import Producer

from moldau.admin import offsets, topics
from moldau.client import Client
from moldau.demo.shop import Event, Shop, pace
from moldau.demo.topics import ORDERS, PARTITIONS, TOPICS
from moldau.serdes.context import Context
from moldau.serdes.formats import serde
from moldau.serdes.registry import Registry, Schema

MOST_BEHIND_S = 1.0  # after a pause of the machine's, what was missed stays missed
QUEUED = 10_000
FLUSH_S = 5.0


@dataclass(frozen=True, slots=True)
class Feed:
    """Where to write, and how much: `rate` events a second, in the mean."""

    bootstrap_servers: str
    registry_url: str
    rate: float = 20.0
    seed: int = 1


def make_topics(client: Client) -> None:
    """Create the topics that are not there."""
    there = {topic.name for topic in topics.listed(client)}
    new = [topics.NewTopic(one.name, PARTITIONS, configs=one.settings) for one in TOPICS if one.name not in there]
    if new:
        topics.create(client, new)


def register(registry: Registry) -> None:
    for topic in TOPICS:
        registry.register(topic.subject, Schema("AVRO", topic.schema), normalize=False)


def orders_so_far(client: Client) -> int:
    """Count the orders that were ever written."""
    places = [(ORDERS.name, partition) for partition in range(PARTITIONS)]
    return sum(offsets.one_time(client, places, offsets.LATEST).values())


class Writer:
    """Events as records: keys are text, values Avro by the registry."""

    def __init__(self, feed: Feed, registry: Registry) -> None:
        self.producer = Producer(
            {
                "bootstrap.servers": feed.bootstrap_servers,
                "client.id": "moldau-demo",
                "partitioner": "murmur2_random",  # as Java's clients, so that joins find what belongs together
                "queue.buffering.max.messages": QUEUED,
                "linger.ms": 20,
            }
        )
        self.serdes = {topic.name: serde("avro", registry, topic.schema) for topic in TOPICS}

    def write(self, event: Event) -> None:
        """What does not find room while the broker is away is left out: it is a demonstration."""
        value = self.serdes[event.topic].to_bytes(event.value, Context(event.topic))
        with suppress(BufferError):
            self.producer.produce(event.topic, key=event.key.encode(), value=value)
        self.producer.poll(0)

    def close(self) -> None:
        self.producer.flush(FLUSH_S)


def prepared(feed: Feed) -> tuple[Writer, Shop]:
    """Topics and schemas are there, and the customers are written."""
    client = Client({"bootstrap.servers": feed.bootstrap_servers})
    try:
        make_topics(client)
        shop = Shop(feed.seed, orders_so_far(client))
    finally:
        client.close()
    registry = Registry.connect({"schema.registry.url": feed.registry_url})
    register(registry)
    writer = Writer(feed, registry)
    for event in shop.opening():
        writer.write(event)
    writer.producer.flush(FLUSH_S)
    return writer, shop


def run(feed: Feed, stopped: threading.Event, ready: Callable[[], None]) -> None:
    """Until it is told to stop."""
    writer, shop = prepared(feed)
    ready()
    began = next_at = time.monotonic()
    while not stopped.wait(max(0.0, next_at - time.monotonic())):
        writer.write(shop.event(int(time.time() * 1000)))
        next_at += 1 / pace(feed.rate, next_at - began)
        next_at = max(next_at, time.monotonic() - MOST_BEHIND_S)
    writer.close()
