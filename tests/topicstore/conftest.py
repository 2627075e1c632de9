"""Stores of bytes on one broker, as many to a topic as a test opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.client import Client, Record
from moldau.testing import Broker, broker
from moldau.topicstore import Codec, State, Store
from tests.services import unique

BROKER = {
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.backoff.ms": 100,
}
Pair = tuple[bytes, bytes | None]
NOOP: Pair = (b"noop", None)


def decode(record: Record) -> Pair:
    if record.key is None:
        raise ValueError("a record without a key")
    return record.key, record.value


class Table:
    """A store whose state is the last value of each key."""

    def __init__(self, servers: str, topic: str, timeout_s: float = 20.0) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.topic = topic
        self.client = Client({"bootstrap.servers": servers, "allow.auto.create.topics": "false"})
        codec = Codec[Pair](lambda pair: pair, decode)
        state = State[Pair](self.replay, self.rows.clear)
        self.store = Store(
            self.client, topic, codec, state, noop=NOOP, transactional_id=f"w-{topic}", timeout_s=timeout_s
        )

    def replay(self, pair: Pair) -> None:
        key, value = pair
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value

    def put(self, *pairs: Pair) -> None:
        self.store.update(lambda: (pairs, None))


@pytest.fixture(scope="session")
def store_broker() -> Iterator[Broker]:
    with broker(BROKER) as started:
        yield started


@pytest.fixture
def new_topic(store_broker: Broker) -> Callable[..., str]:
    def make(**settings: Any) -> str:
        return store_broker.create_topic(unique("store"), config={"cleanup.policy": "compact", **settings})

    return make


@pytest.fixture
def open_table(store_broker: Broker) -> Iterator[Callable[..., Table]]:
    """Opens tables that have read their topic, and closes them."""
    opened: list[Table] = []

    def open_one(topic: str, **more: Any) -> Table:
        table = Table(store_broker.bootstrap_servers, topic, **more)
        opened.append(table)
        table.store.start(60.0)
        return table

    yield open_one
    for table in opened:
        table.store.close()
