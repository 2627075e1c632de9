"""Records on their way to Kafka: one producer for all requests, and a future for each record."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from moldau.client import Client
from moldau.http import HttpError
from moldau.rest.errors import PARTITION_NOT_FOUND, TOPIC_NOT_FOUND, of_librdkafka, refusal
from moldau.rest.kafka import OWN, Kafka, librdkafka
from moldau.settings import ServiceSettings

log = logging.getLogger(__name__)

TOPIC_SECONDS = 60.0  # how long a topic is believed to be there
FULL_SECONDS = 0.005
POLL_SECONDS = 0.2
# As the Java client: the same key goes to the same partition, whoever wrote it.
DEFAULTS = {"partitioner": "murmur2_random", "enable.idempotence": "true", "linger.ms": "0"}


class Record(NamedTuple):
    """What is to be written."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None = None
    timestamp_ms: int | None = None


class Written(NamedTuple):
    """What was written."""

    partition: int
    offset: int
    timestamp_ms: int


Delivery = tuple["asyncio.Future[Written]", "KafkaError | None", Any]  # the last one is a Message


class Deliveries:
    """A producer of librdkafka, and the thread that hears of its deliveries until `close` or an error that is fatal."""

    def __init__(self, settings: dict[str, Any], settle: Callable[[list[Delivery]], None]) -> None:
        self.producer, self.works = Producer(settings), True
        self._settle, self._done = settle, list[Delivery]()
        self._thread = threading.Thread(target=self._run, name="deliveries", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait a little for what is on its way."""
        with suppress(KafkaException):
            self.producer.flush(1.0)
        self.works = False
        self._thread.join()

    def write(self, future: asyncio.Future[Written], *record: Any, **fields: Any) -> None:
        self.producer.produce(*record, on_delivery=lambda *told: self._done.append((future, *told)), **fields)

    def _run(self) -> None:
        try:
            while self.works:
                self.producer.poll(POLL_SECONDS)
                self._tell()
        except KafkaException as error:
            log.warning("A producer has failed, and the next record gets another one: %s", error)
        self.works = False
        self.producer.purge()  # what it still has never goes out
        with suppress(KafkaException):
            self.producer.flush(1.0)
        self._tell()

    def _tell(self) -> None:
        if self._done:
            done, self._done = self._done, []
            self._settle(done)


class Producing:
    """The producer of all requests. One that fails for good, say since its user has lost every right, is replaced."""

    def __init__(self, kafka: Kafka, settings: ServiceSettings) -> None:
        # A record fails before its request does, so that the answer can say what happened.
        timeout = {"message.timeout.ms": str(max(1, settings["request.timeout.ms"] * 9 // 10))}
        self._given = {**DEFAULTS, **timeout, **librdkafka(settings, "producer.")}
        self._deliveries = Deliveries(self._given, self._hand_over)
        creating = {**OWN, "allow.auto.create.topics": "true", **settings.under("client.")}
        timeout = {"default.api.timeout.ms": str(settings["client.timeout.ms"])}
        self._client = Client({**timeout, **creating, "bootstrap.servers": settings["bootstrap.servers"]})
        self._kafka, self._known = kafka, dict[str, tuple[float, int]]()
        self._loop: asyncio.AbstractEventLoop | None = None

    def close(self) -> None:
        self._deliveries.close()
        self._client.close()

    async def check(self, topic: str, partition: int | None) -> None:
        """Refuse what cannot be written. A topic that is not there is made, where brokers do so by themselves."""
        until, count = self._known.get(topic, (0.0, 0))
        if until < time.monotonic() or (partition is not None and partition >= count):
            try:
                count = await self._kafka.run(self._partitions, topic)
            except HttpError as error:
                if error.code == 40403:
                    raise refusal(TOPIC_NOT_FOUND) from None
                raise
            self._known[topic] = (time.monotonic() + TOPIC_SECONDS, count)
        if partition is not None and not 0 <= partition < count:
            raise refusal(PARTITION_NOT_FOUND)

    def _partitions(self, topic: str) -> int:
        self._client.refresh([topic])
        return len(self._client.topic(topic).partitions)

    async def send(self, record: Record) -> asyncio.Future[Written]:
        """Hand a record over; wait only where the producer's queue is full. The future is a Written or HttpError."""
        loop = self._loop = self._loop or asyncio.get_running_loop()
        future: asyncio.Future[Written] = loop.create_future()
        fields: dict[str, Any] = {"headers": record.headers} if record.headers else {}
        if record.partition is not None:
            fields["partition"] = record.partition
        if record.timestamp_ms is not None:
            fields["timestamp"] = record.timestamp_ms
        while True:
            if not self._deliveries.works:
                self._deliveries = Deliveries(self._given, self._hand_over)
            try:
                self._deliveries.write(future, record.topic, record.value, record.key, **fields)
                return future
            except BufferError:
                await asyncio.sleep(FULL_SECONDS)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._FATAL:
                    raise of_librdkafka(error.args[0]) from None
                self._deliveries.works = False

    def _hand_over(self, done: list[Delivery]) -> None:
        assert self._loop is not None, "nothing was sent"
        self._loop.call_soon_threadsafe(self._settle, done)

    def _settle(self, done: list[Delivery]) -> None:
        for future, error, message in done:
            if future.cancelled():
                continue
            if error is None:
                future.set_result(Written(message.partition(), message.offset(), message.timestamp()[1]))
            else:
                self._known.pop(message.topic(), None)
                future.set_exception(of_librdkafka(error))
                future.exception()  # whoever asked may be gone
