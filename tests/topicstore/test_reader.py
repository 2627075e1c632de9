"""Reading without a store: several partitions, to their ends, and a follower that fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.client import Client, Fetched, Record, build, records
from moldau.testing import Broker
from moldau.topicstore import UNCOMMITTED, Follower, Reader, StoreError, append


class Values:
    """All values of a partition."""

    def __init__(self, start: int) -> None:
        self.position = start
        self.found: list[bytes | None] = []

    def take(self, fetched: Fetched) -> None:
        for batch in fetched.batches():
            self.found += [record.value for record in records(batch)]
            self.position = batch.next_offset

    def skip_to(self, end: int) -> None:
        self.position = max(self.position, end)


@pytest.fixture
def client(store_broker: Broker) -> Iterator[Client]:
    with Client({"bootstrap.servers": store_broker.bootstrap_servers}) as made:
        yield made


def fill(client: Client, topic: str, partition: int, count: int) -> None:
    append(client, topic, partition, build(Record(0, 1, b"k", b"%d" % number) for number in range(count)))


def test_all_partitions_are_read_to_where_they_end(client: Client, store_broker: Broker) -> None:
    topic = store_broker.create_topic(partitions=3)
    for partition in (1, 2):
        fill(client, topic, partition, partition)
    reader = Reader(client, topic, lambda _, start: Values(start), isolation_level=UNCOMMITTED)
    reader.read_to_end()
    assert [len(state.found) for state in reader.states.values()] == [0, 1, 2]
    fill(client, topic, 0, 5)
    reader.read_to_end()
    assert {number: state.position for number, state in reader.states.items()} == reader.ends() == {0: 5, 1: 1, 2: 2}


def test_a_follower_that_fails_says_why_to_those_who_wait(client: Client, store_broker: Broker) -> None:
    def refuse() -> None:
        if reader.states[0].found:
            raise StoreError("it is too much")

    topic = store_broker.create_topic()
    reader = Reader(client.sibling(), topic, lambda _, start: Values(start))
    follower = Follower(reader, after_read=refuse)
    follower.start()
    try:
        fill(client, topic, 0, 1)
        assert not follower.wait_until(lambda: False, 60.0)
        assert follower.failure == "it is too much"
    finally:
        follower.close()
        follower.join()


def test_nobody_waits_for_a_follower_that_is_closed(client: Client, store_broker: Broker) -> None:
    follower = Follower(Reader(client.sibling(), store_broker.create_topic(), lambda _, start: Values(start)))
    follower.start()
    follower.close()
    assert not follower.wait_until(lambda: False, 60.0)
    follower.join()
