"""Transactions that one process writes and another ends, on both brokers and in both versions of transactions."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.client import Client, ClientError, TransactionalProducer, check, end, group, produce, transaction
from moldau.testing import Broker
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import identify
from tests.client.records import batch, read
from tests.client.test_client import QUICK

FENCED = {Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH}


@pytest.fixture(params=[2, 1], ids=["second", "first"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A cluster that has settled on the first version is one that says so."""
    if request.param == 1:
        monkeypatch.setattr(Client, "features", lambda self, to: {"transaction.version": 1})
    return request.param


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    return new_topic(2)


@pytest.fixture
def producer(client: Client, topic: str, version: int) -> Iterator[TransactionalProducer]:
    made = TransactionalProducer(client, f"id of {topic}")
    assert made.transaction.version == version
    yield made
    made.close()


def test_a_transaction_is_committed_by_another_process(
    client: Client, servers: str, topic: str, producer: TransactionalProducer
) -> None:
    for partition in range(2):
        producer.send(topic, partition, batch(["a", "b"]))
    handed_over = pickle.dumps(producer.flush())
    assert read(client, topic) == []
    with Client({"bootstrap.servers": servers}) as driver:
        end(driver, pickle.loads(handed_over), commit=True)
        for partition in range(2):
            assert eventually_read(driver, topic, partition) == ["a", "b"]


def eventually_read(client: Client, topic: str, partition: int = 0, enough: int = 1) -> list[str]:
    """Markers are written a moment after the decision."""
    for _ in range(200):
        found = read(client, topic, partition)
        if len(found) >= enough:
            return found
    return read(client, topic, partition)


def test_to_end_twice_changes_nothing(client: Client, topic: str, producer: TransactionalProducer) -> None:
    producer.send(topic, 0, batch(["a"]))
    handed_over = producer.flush()
    assert end(client, handed_over, commit=True) == end(client, handed_over, commit=True)
    assert eventually_read(client, topic) == ["a"]


def test_what_was_committed_cannot_be_aborted(client: Client, topic: str, producer: TransactionalProducer) -> None:
    producer.send(topic, 0, batch(["a"]))
    handed_over = producer.flush()
    end(client, handed_over, commit=True)
    with pytest.raises(ClientError) as caught:
        end(client, handed_over, commit=False)
    assert caught.value.error in {Error.INVALID_TXN_STATE, *FENCED}
    assert eventually_read(client, topic) == ["a"]


def test_many_transactions_follow_each_other(client: Client, topic: str, producer: TransactionalProducer) -> None:
    for number in range(10):
        producer.send(topic, 0, batch([str(number)]))
        producer.send(topic, 0, batch([f"{number}+"]))
        producer.abort() if number % 3 == 0 else producer.commit()
    expected = [f"{n}{sign}" for n in range(10) if n % 3 for sign in ("", "+")]
    assert eventually_read(client, topic, enough=len(expected)) == expected


def test_a_successor_ends_what_its_predecessor_left_and_fences_it(
    client: Client, topic: str, producer: TransactionalProducer
) -> None:
    producer.send(topic, 0, batch(["old"]))
    handed_over = producer.flush()
    successor = TransactionalProducer(client, f"id of {topic}")
    with pytest.raises(ClientError) as caught:
        end(client, handed_over, commit=True)
    assert caught.value.error in FENCED
    with pytest.raises(ClientError) as caught:
        producer.send(topic, 0, batch(["zombie"]))
        producer.flush()
    assert caught.value.error in FENCED
    successor.send(topic, 0, batch(["new"]))
    successor.commit()
    successor.close()
    assert eventually_read(client, topic) == ["new"]


def test_nothing_written_is_nothing_to_end(client: Client, producer: TransactionalProducer) -> None:
    before = producer.flush()
    assert before.empty
    assert end(client, before, commit=True) == before
    producer.abort()
    producer.commit()


def committed(client: Client, group_id: str, topic: str) -> int:
    row = m.OffsetFetchRequest_OffsetFetchRequestGroup(
        group_id, topics=[m.OffsetFetchRequest_OffsetFetchRequestTopics(topic, partition_indexes=[0])]
    )
    answer = client.send(m.OffsetFetchRequest(groups=[row], require_stable=True), group(group_id), at_most=9)
    return answer.groups[0].topics[0].partitions[0].committed_offset


def test_offsets_of_a_group_go_with_the_transaction(
    client: Client, topic: str, producer: TransactionalProducer
) -> None:
    name = f"group of {topic}"
    producer.send(topic, 0, batch(["a"]))
    producer.send_offsets(name, {(topic, 0): 5, (topic, 1): 6})
    producer.abort()
    assert committed(client, name, topic) == -1
    producer.send_offsets(name, {(topic, 0): 7})
    producer.commit()
    assert committed(client, name, topic) == 7


def test_a_refused_batch_leaves_a_producer_that_can_abort_and_go_on(
    client: Client, new_topic: Callable[..., str], producer: TransactionalProducer
) -> None:
    small = new_topic(max_message_bytes=500)
    producer.send(small, 0, batch(["a"]))
    with pytest.raises(ClientError) as caught:
        producer.send(small, 0, batch(["x" * 1000]))
        producer.flush()
    assert caught.value.error is Error.MESSAGE_TOO_LARGE
    producer.abort()
    producer.send(small, 0, batch(["b"]))
    producer.commit()
    assert eventually_read(client, small) == ["b"]


def test_transactions_outlive_a_killed_broker(kafka: Broker) -> None:
    topic = kafka.create_topic()
    with Client({"bootstrap.servers": kafka.bootstrap_servers, **QUICK}) as client:
        producer = TransactionalProducer(client, "t")
        for number in range(6):
            for part in range(5):
                producer.send(topic, 0, batch([f"{number}.{part}"]))
            if number % 2:
                handed_over = producer.flush()
                kafka.kill()
                kafka.start()
                producer.transaction = end(client, handed_over, commit=True)
                producer = TransactionalProducer(client, "t")
            else:
                kafka.kill()
                kafka.start()
                producer.commit()
        expected = [f"{number}.{part}" for number in range(6) for part in range(5)]
        assert eventually_read(client, topic, enough=len(expected)) == expected


def test_a_plain_batch_of_an_older_epoch_is_refused_once_a_newer_one_has_written(
    client: Client, new_topic: Callable[..., str]
) -> None:
    """What fences the writer of a topic store: no transaction is open, only the epoch counts."""
    topic = new_topic()
    name = f"writer of {topic}"

    def take_over() -> Any:
        return check(client.send(m.InitProducerIdRequest(name, 60_000), transaction(name)))

    def write(producer: Any, sequence: int) -> Error:
        data = bytearray(batch([str(sequence)]))
        identify(memoryview(data), producer.producer_id, producer.producer_epoch, sequence, transactional=False)
        try:
            produce(client, topic, 0, data)
        except ClientError as error:
            return error.error
        return Error.NONE

    first = take_over()
    assert write(first, 0) is Error.NONE
    second = take_over()
    assert write(first, 1) is Error.NONE  # taking the id over fences nobody by itself
    assert write(second, 0) is Error.NONE
    assert write(first, 2) is write(first, 0) is Error.INVALID_PRODUCER_EPOCH
    own = m.InitProducerIdRequest(name, 60_000, first.producer_id, first.producer_epoch)
    assert client.send(own, transaction(name)).error_code == Error.PRODUCER_FENCED
