"""aiokafka: the asyncio client."""
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

VALUES = [b"value %d" % n for n in range(300)]


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 60))

    return run


async def produce(bootstrap: str, topic: str, values: list[bytes], **options: Any) -> list[Any]:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **options) as producer:
        waiting = [await producer.send(topic, value, partition=0) for value in values]
        return await asyncio.gather(*waiting)


async def consume(bootstrap: str, topic: str, count: int, offset: int = 0, **options: Any) -> list[Any]:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, **options) as consumer:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        consumer.seek(place, offset)
        return [await consumer.getone() for _ in range(count)]


@pytest.mark.parametrize("codec", [None, "gzip", "lz4", "snappy", "zstd"])
@in_loop
async def test_every_codec_comes_back_as_it_was_sent(bootstrap: str, topic: str, codec: str | None) -> None:
    sent = await produce(bootstrap, topic, VALUES, compression_type=codec)
    assert [answer.offset for answer in sent] == list(range(300))
    assert [record.value for record in await consume(bootstrap, topic, 300)] == VALUES


@pytest.mark.parametrize("options", [{"acks": 0}, {"acks": 1}, {"acks": "all"}, {"enable_idempotence": True}], ids=str)
@in_loop
async def test_every_kind_of_acknowledgement_stores_the_records(bootstrap: str, topic: str, options: Any) -> None:
    await produce(bootstrap, topic, VALUES, **options)
    assert [record.value for record in await consume(bootstrap, topic, 300)] == VALUES


@in_loop
async def test_keys_headers_and_times_come_back(bootstrap: str, topic: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"v", b"k", timestamp_ms=1_500_000_000_123, headers=[("h", b"1")])
    (record,) = await consume(bootstrap, topic, 1, isolation_level="read_committed")
    assert (record.key, record.value, record.timestamp) == (b"k", b"v", 1_500_000_000_123)
    assert list(record.headers) == [("h", b"1")]


@in_loop
async def test_reading_starts_in_the_middle_and_by_time(bootstrap: str, topic: str) -> None:
    await produce(bootstrap, topic, VALUES)
    assert [record.offset for record in await consume(bootstrap, topic, 10, 290)] == list(range(290, 300))
    place = TopicPartition(topic, 0)
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        assert await consumer.beginning_offsets([place]) == {place: 0}
        assert await consumer.end_offsets([place]) == {place: 300}
        assert (await consumer.offsets_for_times({place: 0}))[place].offset == 0


@in_loop
async def test_a_waiting_reader_gets_what_is_written_later(bootstrap: str, topic: str) -> None:
    reading = asyncio.create_task(consume(bootstrap, topic, 5))
    await asyncio.sleep(0.3)
    await produce(bootstrap, topic, VALUES[:5])
    assert [record.value for record in await reading] == VALUES[:5]


@in_loop
async def test_topics_settings_and_records_are_administered(bootstrap: str, fresh_name: Callable[[str], str]) -> None:
    name = fresh_name("made")
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        made = await admin.create_topics([NewTopic(name, 2, 1, topic_configs={"retention.ms": "1000000"})])
        assert [row[:2] for row in made.topic_errors] == [(name, 0)]
        while (await admin.describe_topics([name]))[0]["error_code"]:  # Apache Kafka learns of it a moment later
            await asyncio.sleep(0.05)
        grown = await admin.create_partitions({name: NewPartitions(3)})
        assert [row[:2] for row in grown.topic_errors] == [(name, 0)]
        await produce(bootstrap, name, VALUES[:10])
        (topic,) = await admin.describe_topics([name])
        assert len(topic["partitions"]) == 3
        resource = ConfigResource(ConfigResourceType.TOPIC, name, {"segment.bytes": "2000000"})
        await admin.alter_configs([resource])
        assert (await configs(admin, name))["segment.bytes"] == "2000000"
        place = TopicPartition(name, 0)
        assert await admin.delete_records({place: RecordsToDelete(4)}) == {place: 4}
        assert (await admin.describe_cluster())["brokers"]
        gone = await admin.delete_topics([name])
        assert [tuple(row) for row in gone.topic_error_codes] == [(name, 0)]
    finally:
        await admin.close()


async def configs(admin: AIOKafkaAdminClient, topic: str) -> dict[str, str]:
    (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    (_, _, _, _, entries) = answer.resources[0]
    return {entry[0]: entry[1] for entry in entries}
