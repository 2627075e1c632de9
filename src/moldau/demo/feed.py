"""Writes the events of the shop: creates topics, registers schemas, and writes records at a rate."""

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

MOST_BEHIND_S = 1.0  # after a pause of the machine, missed events are not made up for
QUEUED = 10_000
FLUSH_S = 5.0


@dataclass(frozen=True, slots=True)
class Feed:
    """Where to write, and how much: on average `rate` events a second."""

    bootstrap_servers: str
    registry_url: str
    rate: float = 20.0
    seed: int = 1


def make_topics(client: Client) -> None:
    """Create the missing topics."""
    existing = {topic.name for topic in topics.listed(client)}
    new = [topics.NewTopic(one.name, PARTITIONS, configs=one.settings) for one in TOPICS if one.name not in existing]
    if new:
        topics.create(client, new)


def register(registry: Registry) -> None:
    for topic in TOPICS:
        registry.register(topic.subject, Schema("AVRO", topic.schema), normalize=False)


def orders_so_far(client: Client) -> int:
    """Count the orders written so far."""
    places = [(ORDERS.name, partition) for partition in range(PARTITIONS)]
    return sum(offsets.one_time(client, places, offsets.LATEST).values())


class Writer:
    """A writer of events as records: keys are text, values are Avro with schemas in the registry."""

    def __init__(self, feed: Feed, registry: Registry) -> None:
        self.producer = Producer(
            {
                "bootstrap.servers": feed.bootstrap_servers,
                "client.id": "moldau-demo",
                "partitioner": "murmur2_random",  # as Java's clients do, so that joins find their partners
                "queue.buffering.max.messages": QUEUED,
                "linger.ms": 20,
            }
        )
        self.serdes = {topic.name: serde("avro", registry, topic.schema) for topic in TOPICS}

    def write(self, event: Event) -> None:
        """Write an event; drop it if the queue is full while the broker is down: this is a demo."""
        value = self.serdes[event.topic].to_bytes(event.value, Context(event.topic))
        with suppress(BufferError):
            self.producer.produce(event.topic, key=event.key.encode(), value=value)
        self.producer.poll(0)

    def close(self) -> None:
        self.producer.flush(FLUSH_S)


def prepare(feed: Feed) -> tuple[Writer, Shop]:
    """Create topics and schemas, and write the customers."""
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
    """Write events until `stopped` is set."""
    writer, shop = prepare(feed)
    ready()
    began = next_at = time.monotonic()
    while not stopped.wait(max(0.0, next_at - time.monotonic())):
        writer.write(shop.event(int(time.time() * 1000)))
        next_at += 1 / pace(feed.rate, next_at - began)
        next_at = max(next_at, time.monotonic() - MOST_BEHIND_S)
    writer.close()
