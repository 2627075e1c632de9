"""Reads records as a member of a consumer group, with librdkafka, and commits progress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message, TopicPartition

from moldau.admin.mistakes import Mistake
from moldau.client import Record
from moldau.client.librdkafka import take
from moldau.records.reading import Chunk
from moldau.settings import CLIENT, rows

AT_ONCE = 10_000
WAIT_S = 0.2
QUIET = {"log.connection.close": "false", "logger": logging.getLogger("moldau.cli.librdkafka")}


def chunks(
    settings: Mapping[str, Any], topics: list[str], *, to_end: bool, most: int | None, tell: Callable[[str], None]
) -> Iterator[list[Chunk]]:
    """Yield what the group gives us, with `to_end` until its end. A chunk is committed when the next is requested."""
    consumer = make_consumer({**settings, **QUIET, "enable.partition.eof": to_end, "enable.auto.offset.store": False})
    ended: set[tuple[str, int]] = set()

    def on_assign(_: Any, partitions: list[TopicPartition]) -> None:
        ended.clear()
        tell(f"Assigned: {', '.join(f'{one.topic}-{one.partition}' for one in partitions) or 'nothing'}.")

    try:
        consumer.subscribe(topics, on_assign=on_assign)
        left = most
        while left is None or left > 0:
            found = take(consumer, AT_ONCE if left is None else min(left, AT_ONCE), WAIT_S)
            handed = _chunks(found, ended)
            left = None if left is None else left - sum(chunk.size for chunk in handed)
            yield handed
            _store(consumer, handed)
            if to_end and (mine := consumer.assignment()) and len(ended) >= len(mine):
                return
    finally:
        consumer.close()


def make_consumer(settings: Mapping[str, Any]) -> Consumer:
    """Make a consumer, without settings that only our own client knows: a profile has both."""
    given = dict(settings)
    while True:
        try:
            return Consumer(given)
        except KafkaException as error:
            words = error.args[0].str()
            name = next((name for name in given if f'"{name}"' in words and "No such" in words), None)
            if name is None or name not in rows(CLIENT):
                raise Mistake(f"The consumer cannot be made: {words}.") from None
            del given[name]


def _chunks(found: list[Message], ended: set[tuple[str, int]]) -> list[Chunk]:
    """Group messages in a row of one partition into chunks."""
    made: list[Chunk] = []
    for message in found:
        error, topic, partition = message.error(), str(message.topic()), int(message.partition() or 0)
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                ended.add((topic, partition))
            elif not error.retriable():
                raise Mistake(f"{error.str()}.")
            continue
        ended.discard((topic, partition))
        kind, timestamp = message.timestamp()
        append_time = kind == TIMESTAMP_LOG_APPEND_TIME
        if not made or made[-1][:2] != (topic, partition) or made[-1].append_time != append_time:
            made.append(Chunk(topic, partition, [], append_time))
        headers: Any = tuple(message.headers() or ())
        made[-1].records.append(Record(message.offset() or 0, timestamp, message.key(), message.value(), headers))
    return made


def _store(consumer: Consumer, made: list[Chunk]) -> None:
    """Store the offsets of what has been printed, to be committed."""
    behind = {(chunk.topic, chunk.partition): chunk.records[-1].offset + 1 for chunk in made if chunk.records}
    if behind:
        try:
            consumer.store_offsets(offsets=[TopicPartition(*place, offset) for place, offset in behind.items()])
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:  # the partition went to somebody else meanwhile
                raise Mistake(f"Offsets cannot be kept: {error.args[0].str()}.") from None
