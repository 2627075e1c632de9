"""An application whose changelogs are in a real broker: the test driver runs it, and what it logs is produced."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import CONTROLLER, Client, Record, build, check, produce
from moldau.client import messages as m
from moldau.streams import StreamsBuilder, TopologyTestDriver
from moldau.testing.process import Broker
from moldau.views.served import Served


class World:
    """Applications, their input by the driver, their changelogs in the broker."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.settings: dict[str, Any] = {"bootstrap.servers": servers}
        self.client = Client(self.settings)
        self.open: list[Served] = []

    def builder(self, **settings: Any) -> StreamsBuilder:
        own = {name.replace("_", "."): value for name, value in settings.items()}
        texts = {"default.key.serde": "string", "default.value.serde": "string", "statestore.cache.max.bytes": 0}
        return StreamsBuilder(f"app-{uuid.uuid4().hex[:10]}", {**texts, **own})

    def topic(self, name: str, partitions: int = 1, **config: str) -> str:
        rows = [m.CreateTopicsRequest_CreatableTopicConfig(k.replace("_", "."), v) for k, v in config.items()]
        new = m.CreateTopicsRequest_CreatableTopic(name, partitions, 1, configs=rows)
        check(self.client.send(m.CreateTopicsRequest([new], timeout_ms=10_000), to=CONTROLLER))
        return name

    def put(self, topic: str, rows: list[tuple[bytes | None, bytes | None, int]], partition: int = 0) -> int:
        """The offset behind them."""
        batch = build([Record(timestamp=time, key=key, value=value) for key, value, time in rows])
        base = produce(self.client, topic, partition, batch).base_offset
        assert base is not None
        return base + len(rows)

    def log(self, driver: TopologyTestDriver, topic: str, partitions: int = 1) -> None:
        """What the driver wrote to a changelog is in the broker, spread by the first byte of keys."""
        self.topic(topic, partitions)
        for number in range(partitions):
            rows = [
                (one.key, one.value, one.timestamp)
                for one in driver.outputs.get(topic, ())
                if one.key is not None and one.key[0] % partitions == number
            ]
            if rows:
                self.put(topic, rows, number)

    def stores(self, builder: StreamsBuilder, **settings: Any) -> Served:
        own = {name.replace("_", "."): value for name, value in settings.items()}
        made = builder.stores({**self.settings, **own})
        self.open.append(made)
        return made


@pytest.fixture(scope="module")
def world(kafka_shared: Broker) -> Iterator[World]:
    made = World(kafka_shared.bootstrap_servers)
    yield made
    for one in made.open:
        one.close()
    made.client.close()
