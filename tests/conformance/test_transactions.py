"""Transactions with the clients of Python (version 1 of transactions) and with Kafka's own tools (version 2)."""
# pyright: reportPrivateImportUsage=false, reportArgumentType=false

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Partition
from kafka import KafkaProducer

from moldau import testing
from moldau.broker.call import call
from moldau.wire import messages as m
from moldau.wire.records import Record, build
from tests.conformance.java_tools import Tools

WAIT = 120
MakeTopic = Callable[..., str]


def producer(bootstrap: str, name: str, **config: Any) -> Producer:
    made = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, **config})
    made.init_transactions(WAIT)
    return made


def consumer(bootstrap: str, group: str, **config: Any) -> Consumer:
    plain = {"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_committed"}
    return Consumer(plain | {"enable.auto.commit": False, "auto.offset.reset": "earliest"} | config)


def read(reader: Consumer, count: int, seconds: float = WAIT) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        found += [message.value() for message in reader.consume(count - len(found), 0.2) if message.error() is None]
    return found


def committed(bootstrap: str, topic: str, partitions: int = 1) -> list[bytes]:
    """All that a reader of committed records gets, in order within each partition."""
    reader = consumer(bootstrap, "unused", **{"enable.partition.eof": True})
    reader.assign([Partition(topic, index, 0) for index in range(partitions)])
    found: list[bytes] = []
    left = partitions
    deadline = time.monotonic() + WAIT
    while left and time.monotonic() < deadline:
        for message in reader.consume(1000, 0.2):
            if message.error() is None:
                found.append(message.value())
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left -= 1
    reader.close()
    assert not left, "there is no end"
    return found


def test_committed_records_are_read_and_aborted_ones_are_not(
    bootstrap: str, new_topic: MakeTopic, fresh_name: Callable[[str], str]
) -> None:
    topic = new_topic(2)
    writer = producer(bootstrap, fresh_name("tx"))
    for turn in range(4):
        writer.begin_transaction()
        for number in range(10):
            writer.produce(topic, f"{turn}-{number}", partition=number % 2)
        writer.abort_transaction(WAIT) if turn % 2 else writer.commit_transaction(WAIT)
    expected = [f"{turn}-{number}".encode() for turn in (0, 2) for number in range(10)]
    assert sorted(committed(bootstrap, topic, 2)) == sorted(expected)


def test_a_second_producer_of_an_id_fences_the_first(
    bootstrap: str, topic: str, fresh_name: Callable[[str], str]
) -> None:
    name = fresh_name("tx")
    first = producer(bootstrap, name)
    first.begin_transaction()
    first.produce(topic, b"first")
    first.flush(WAIT)
    second = producer(bootstrap, name)
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(WAIT)
    assert fenced.value.args[0].code() == KafkaError._FENCED
    second.begin_transaction()
    second.produce(topic, b"second")
    second.commit_transaction(WAIT)
    assert committed(bootstrap, topic) == [b"second"]


def test_a_transaction_that_takes_too_long_is_aborted(kafka_made: Callable[..., Any]) -> None:
    kafka = kafka_made({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"})
    kafka.create_topic("t")
    slow = producer(kafka.bootstrap_servers, "slow", **{"transaction.timeout.ms": 1000})
    slow.begin_transaction()
    slow.produce("t", b"late")
    slow.flush(WAIT)
    time.sleep(2.5)
    with pytest.raises(KafkaException):
        slow.commit_transaction(WAIT)
    assert committed(kafka.bootstrap_servers, "t") == []


@pytest.fixture
def kafka_made() -> Iterator[Callable[..., Any]]:
    """Brokers with settings of their own."""
    contexts: list[Any] = []

    def make(settings: dict[str, str]) -> Any:
        contexts.append(testing.broker(settings))
        return contexts[-1].__enter__()

    yield make
    for context in contexts:
        context.__exit__(None, None, None)


def test_what_is_consumed_is_copied_exactly_once(
    bootstrap: str, new_topic: MakeTopic, fresh_name: Callable[[str], str]
) -> None:
    source, sink, group = new_topic(2), new_topic(1), fresh_name("g")
    plain = Producer({"bootstrap.servers": bootstrap})
    for number in range(200):
        plain.produce(source, str(number), partition=number % 2)
    plain.flush(WAIT)
    reader = consumer(bootstrap, group)
    reader.subscribe([source])
    writer = producer(bootstrap, fresh_name("tx"))
    everything = [Partition(source, 0), Partition(source, 1)]
    turn, done = 0, 0
    while done < 200:
        batch = reader.consume(40, 5)
        if not batch:
            continue
        turn += 1
        writer.begin_transaction()
        for message in batch:
            assert message.error() is None, message.error()
            writer.produce(sink, message.value())
        places = reader.position(reader.assignment())
        writer.send_offsets_to_transaction(places, reader.consumer_group_metadata(), WAIT)
        if turn % 3 == 2:  # give up, and read again from where it was
            writer.abort_transaction(WAIT)
            for place in reader.committed(everything, WAIT):
                reader.seek(Partition(source, place.partition, max(place.offset, 0)))
        else:
            writer.commit_transaction(WAIT)
            done = sum(max(place.offset, 0) for place in reader.committed(everything, WAIT))
    reader.close()
    assert sorted(committed(bootstrap, sink), key=int) == [str(number).encode() for number in range(200)]


def test_aiokafka_commits_and_aborts(bootstrap: str, topic: str, fresh_name: Callable[[str], str]) -> None:
    async def copy() -> None:
        writer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=fresh_name("tx"))
        await writer.start()
        for turn in range(3):
            with contextlib.suppress(ValueError):
                async with writer.transaction():
                    await writer.send_and_wait(topic, b"%d" % turn)
                    if turn == 1:
                        raise ValueError("aborts")
        await writer.stop()

    asyncio.run(copy())
    assert committed(bootstrap, topic) == [b"0", b"2"]


def test_kafka_python_commits_and_aborts(bootstrap: str, topic: str, fresh_name: Callable[[str], str]) -> None:
    writer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=fresh_name("tx"))
    writer.init_transactions()
    for turn in range(3):
        writer.begin_transaction()
        writer.send(topic, b"%d" % turn)
        writer.abort_transaction() if turn == 1 else writer.commit_transaction()
    writer.close()
    assert committed(bootstrap, topic) == [b"0", b"2"]


def table(run: Tools, *arguments: str) -> list[list[str]]:
    """What kafka-transactions shows, without the heading."""
    lines = run("kafka-transactions", *arguments).out.splitlines()
    return [[cell.strip() for cell in line.split("\t")][:-1] for line in lines if "\t" in line][1:]


@pytest.mark.needs("java", "javac", "kafka-jars")
def test_the_performance_tool_writes_in_transactions(
    run: Tools, bootstrap: str, topic: str, fresh_name: Callable[[str], str]
) -> None:
    name = fresh_name("tx")
    options = ["--num-records", "1000", "--record-size", "10", "--throughput", "-1", "--transaction-duration-ms", "20"]
    run("kafka-producer-perf-test", "--topic", topic, "--transactional-id", name, *options)
    assert len(committed(bootstrap, topic)) == 1000
    (row,) = [row for row in table(run, "list") if row[0] == name]
    assert row[3] == "CompleteCommit"
    (described,) = table(run, "describe", "--transactional-id", name)
    assert described[1] == name and described[4] == "CompleteCommit"


@pytest.mark.needs("java", "javac", "kafka-jars")
def test_the_message_copier_copies(
    run: Tools, bootstrap: str, new_topic: MakeTopic, fresh_name: Callable[[str], str]
) -> None:
    source, sink = new_topic(1), new_topic(1)
    plain = Producer({"bootstrap.servers": bootstrap})
    for number in range(500):
        plain.produce(source, str(number))
    plain.flush(WAIT)
    where = ["--input-topic", source, "--input-partition", "0", "--output-topic", sink, "--broker-list", bootstrap]
    who = ["--transactional-id", fresh_name("tx"), "--consumer-group", fresh_name("g")]
    run("transactional-message-copier", *where, *who, "--transaction-size", "60", "--max-messages", "500")
    assert committed(bootstrap, sink) == [str(number).encode() for number in range(500)]


def hang(bootstrap: str, topic: str, name: str, age_ms: int) -> tuple[int, int]:
    """Open a transaction in a partition behind its coordinator's back."""
    host, _, port = bootstrap.rpartition(":")

    def ask(request: Any, version: int) -> Any:
        return call((host, int(port)), request, version)

    deadline = time.monotonic() + WAIT
    while (made := ask(m.InitProducerIdRequest(name, 60_000), 4)).error_code and time.monotonic() < deadline:
        time.sleep(0.1)
    identity = made.producer_id, made.producer_epoch
    then = int(time.time() * 1000) - age_ms
    options = {"producer_id": identity[0], "producer_epoch": identity[1], "base_sequence": 0, "transactional": True}
    batch = bytes(build([Record(0, then, None, b"hangs")], **options))
    rows = [m.ProduceRequest_PartitionProduceData(0, batch)]
    data = m.ProduceRequest_TopicProduceData(topic, partition_data=rows)
    (answer,) = ask(m.ProduceRequest(name, -1, 1000, [data]), 9).responses[0].partition_responses
    assert answer.error_code == 0, answer
    return identity


@pytest.mark.needs("java", "javac", "kafka-jars")
def test_a_hanging_transaction_is_found_and_aborted_by_the_tool(
    run: Tools, bootstrap: str, topic: str, fresh_name: Callable[[str], str]
) -> None:
    verification = "transaction.partition.verification.enable"
    everybody = ["--entity-type", "brokers", "--entity-default", "--alter"]
    run("kafka-configs", *everybody, "--add-config", f"{verification}=false")
    try:
        producer_id, epoch = hang(bootstrap, topic, fresh_name("tx"), age_ms=2 * 3_600_000)
    finally:
        run("kafka-configs", *everybody, "--delete-config", verification)
    (known,) = table(run, "describe-producers", "--topic", topic, "--partition", "0")
    assert known[:2] == [str(producer_id), str(epoch)] and known[5] == "0"
    assert committed_end(bootstrap, topic) == 0
    (found,) = table(run, "find-hanging", "--topic", topic)
    assert found[:3] == [topic, "0", str(producer_id)]
    run("kafka-transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert table(run, "find-hanging", "--topic", topic) == []
    assert committed(bootstrap, topic) == [] and committed_end(bootstrap, topic) == 2


def committed_end(bootstrap: str, topic: str) -> int:
    """The last stable offset."""
    reader = consumer(bootstrap, "unused")
    _, high = reader.get_watermark_offsets(Partition(topic, 0), WAIT)
    reader.close()
    return high
