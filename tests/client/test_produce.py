"""Batches sent and fetched back, on both brokers; and brokers that move, go away, or refuse."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from moldau.client import Client, ClientError, Sender, check, produce
from moldau.testing import Broker
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import identify
from tests.client.fake import Fake
from tests.client.proxy import Proxy
from tests.client.records import batch, read
from tests.client.test_client import QUICK


def numbered(values: list[str], producer_id: int, sequence: int) -> bytes:
    data = bytearray(batch(values))
    identify(memoryview(data), producer_id, 0, sequence, transactional=False)
    return bytes(data)


def new_producer(client: Client) -> int:
    return check(client.send(m.InitProducerIdRequest(None, 0))).producer_id


def test_a_batch_is_written_at_the_next_offset(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    assert produce(client, topic, 0, batch(["a", "b"])).base_offset == 0
    assert produce(client, topic, 0, batch(["c"])).base_offset == 2
    assert read(client, topic) == ["a", "b", "c"]


def test_many_batches_are_on_their_way_and_keep_their_order(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic(3)
    sender = Sender(client)
    sent = [sender.send(topic, number % 3, batch([str(number)])) for number in range(60)]
    sender.flush()
    sender.close()
    assert [one.base_offset for one in sent] == [number // 3 for number in range(60)]
    for partition in range(3):
        assert read(client, topic, partition) == [str(number) for number in range(60) if number % 3 == partition]


def test_nobody_is_asked_for_an_offset_with_acks_0(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    assert produce(client, topic, 0, batch(["a"]), acks=0).base_offset == -1
    assert produce(client, topic, 0, batch(["b"])).base_offset in (0, 1)


def test_a_damaged_batch_is_refused_with_the_brokers_words(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    data = bytearray(numbered(["a"], new_producer(client), 0))
    data[-1] ^= 1
    sender = Sender(client)
    with pytest.raises(ClientError, match="was refused") as caught:
        sender.send(topic, 0, data)
        sender.flush()
    assert caught.value.error is Error.CORRUPT_MESSAGE and not caught.value.retriable
    with pytest.raises(ClientError):
        sender.send(topic, 0, batch(["b"]))
    sender.close()
    assert read(client, topic) == []


def test_a_batch_over_the_limit_is_refused(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic(max_message_bytes=1000)
    with pytest.raises(ClientError) as caught:
        produce(client, topic, 0, batch(["x" * 2000]))
    assert caught.value.error is Error.MESSAGE_TOO_LARGE


def test_a_batch_for_no_topic_is_refused_in_time(servers: str) -> None:
    settings = {"bootstrap.servers": servers, "topic.metadata.propagation.max.ms": 100}
    with Client(settings) as client, pytest.raises(ClientError, match="There is no topic nowhere"):
        produce(client, "nowhere", 0, batch(["a"]))


def test_the_same_sequence_is_written_once(client: Client, new_topic: Callable[..., str]) -> None:
    topic, producer = new_topic(), new_producer(client)
    for _ in range(3):
        assert produce(client, topic, 0, numbered(["a", "b"], producer, 0)).base_offset == 0
    assert read(client, topic) == ["a", "b"]


def test_cut_connections_lose_and_double_nothing(kafka_shared: Broker) -> None:
    topic = kafka_shared.create_topic()
    with Proxy(kafka_shared.port) as proxy, Client({"bootstrap.servers": proxy.address, **QUICK}) as client:
        sender = Sender(client)
        for number in range(200):
            if number % 17 == 0:
                proxy.cut()
            sender.send(topic, 0, batch([str(number)]))
        sender.flush()
        assert read(client, topic) == [str(number) for number in range(200)]


def test_a_killed_broker_loses_and_doubles_nothing(kafka: Broker) -> None:
    topic = kafka.create_topic(partitions=2)
    with Client({"bootstrap.servers": kafka.bootstrap_servers, **QUICK}) as client:
        producer = new_producer(client)
        sender = Sender(client)
        for number in range(100):
            if number in (30, 60):
                kafka.kill()
                threading.Thread(target=kafka.start).start()
            for partition in range(2):
                sender.send(topic, partition, numbered([f"{number}"], producer, number))
        sender.flush()
        for partition in range(2):
            assert read(client, topic, partition) == [f"{number}" for number in range(100)]


def produced(code: int, offset: int = 7) -> Any:
    row = m.ProduceResponse_PartitionProduceResponse(0, code, offset)
    return m.ProduceResponse([m.ProduceResponse_TopicProduceResponse("t", b"i" * 16, [row])])


def sequence_of(request: Any) -> int:
    return int.from_bytes(bytes(request.topic_data[0].partition_data[0].records[53:57]), "big")


def test_what_follows_a_batch_that_failed_for_a_while_waits_for_it() -> None:
    """The first answer says that the leader moved; then the ones behind it are out of order, and all go again."""
    written: list[int] = []

    def answer(request: Any) -> Any:
        if request.SCHEMA.key == 3:
            return fake.metadata("t", 1, 0)
        number = sequence_of(request)
        if len([r for r in fake.seen if r.SCHEMA.key == 0]) == 1:
            return produced(Error.NOT_LEADER_OR_FOLLOWER)
        if number != len(written):
            return produced(Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
        written.append(number)
        return produced(0, number)

    with Fake(answer) as fake, Client({"bootstrap.servers": fake.address, **QUICK}) as client:
        sender = Sender(client)
        sent = [sender.send("t", 0, numbered(["x"], 5, number)) for number in range(4)]
        sender.flush()
        assert [one.base_offset for one in sent] == written == [0, 1, 2, 3]


def test_the_first_batch_of_a_partition_travels_alone() -> None:
    """A broker takes any sequence of a producer that it does not know: the second must not arrive before the first."""
    arrived: list[int] = []

    def answer(request: Any) -> Any:
        if request.SCHEMA.key == 3:
            return fake.metadata("t")
        arrived.append(sequence_of(request))
        return produced(Error.UNKNOWN_TOPIC_OR_PARTITION if len(arrived) == 1 else 0)

    with Fake(answer) as fake, Client({"bootstrap.servers": fake.address, **QUICK}) as client:
        sender = Sender(client)
        for number in range(4):
            sender.send("t", 0, numbered(["x"], 5, number))
        sender.flush()
    assert arrived == [0, 0, 1, 2, 3]


def test_a_batch_follows_a_leader_that_moved_only_when_those_before_it_are_answered() -> None:
    arrived: list[tuple[str, int]] = []

    def metadata() -> Any:
        return first.metadata("t", *((2, 1) if len(arrived) > 2 else (1, 0)), others={2: second.port})

    def answer(name: str) -> Callable[[Any], Any]:
        def reply(request: Any) -> Any:
            if request.SCHEMA.key == 3:
                return metadata()
            arrived.append((name, sequence_of(request)))
            moved = name == "old" and len(arrived) > 1
            return produced(Error.NOT_LEADER_OR_FOLLOWER if moved else 0)

        return reply

    with (
        Fake(answer("new")) as second,
        Fake(answer("old")) as first,
        Client({"bootstrap.servers": first.address, **QUICK}) as client,
    ):
        sender = Sender(client)
        for number in range(3):
            sender.send("t", 0, numbered(["x"], 5, number))
        client.refresh(["t"])
        sender.send("t", 0, numbered(["x"], 5, 3))
        sender.flush()
    assert [number for name, number in arrived if name == "new"] == [1, 2, 3]


def test_an_order_that_is_broken_from_the_start_is_refused() -> None:
    def answer(request: Any) -> Any:
        return fake.metadata("t") if request.SCHEMA.key == 3 else produced(Error.OUT_OF_ORDER_SEQUENCE_NUMBER)

    with (
        Fake(answer) as fake,
        Client({"bootstrap.servers": fake.address, **QUICK}) as client,
        pytest.raises(ClientError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ):
        produce(client, "t", 0, numbered(["x"], 5, 3))


def test_brokers_that_know_no_ids_are_told_names() -> None:
    def answer(request: Any) -> Any:
        return fake.metadata("t") if request.SCHEMA.key == 3 else produced(0)

    with Fake(answer, {3: (0, 9), 0: (3, 9)}) as fake, Client({"bootstrap.servers": fake.address}) as client:
        assert produce(client, "t", 0, batch(["x"]), acks=1).base_offset == 7
        assert fake.seen[-1].topic_data[0].name == "t"
