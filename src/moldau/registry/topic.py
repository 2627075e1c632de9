"""The topic `_schemas`: read from its beginning and followed by a thread; written, and waited for until read back.

Nothing is known of a write until the reading thread has replayed it: that keeps all registries of a topic alike, the
one that writes too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic  # pyright: ignore[reportPrivateImportUsage]

from moldau.registry.errors import refuse
from moldau.registry.records import NOOP_RECORD, Record, decode, encode
from moldau.registry.store import Store

log = logging.getLogger(__name__)

POLL_S = 0.2
BATCH = 2_000
TIMED_OUT = {KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT}
COMPACT = "compact"


class TopicError(Exception):
    """The topic cannot be used: one sentence."""


class Topic:
    """One reader and one writer of partition 0."""

    def __init__(self, name: str, client: Mapping[str, Any], store: Store, timeout_s: float) -> None:
        # A broker that comes back is to be noticed; and what librdkafka says goes where the rest of the log goes.
        client = {"reconnect.backoff.max.ms": 1000, "logger": log, "log.connection.close": "false", **client}
        self._name, self._client, self._store, self._timeout_s = name, client, store, timeout_s
        self._read = threading.Condition()
        self._next = 0  # the offset behind the last record that was replayed
        self._end: int | None = None
        self._reached_end = False
        self._closing = False
        self._thread = threading.Thread(target=self._follow, name="schemas", daemon=True)
        quick = {"message.timeout.ms": int(timeout_s * 1000), "linger.ms": 0, "socket.nagle.disable": True}
        self._producer = Producer({**client, "enable.idempotence": True, "acks": "all", **quick})

    def start(self, timeout_s: float) -> None:
        """Read everything that is there; TopicError if that takes too long."""
        self._thread.start()
        with self._read:
            if not self._read.wait_for(lambda: self._reached_end, timeout_s):
                raise TopicError(f"Topic {self._name} could not be read to its end within {timeout_s:.0f} s.")

    def close(self) -> None:
        self._closing = True
        if self._thread.is_alive():
            self._thread.join()
        self._producer.purge()
        self._producer.flush(1.0)

    def write(self, records: Iterable[Record]) -> None:
        """Write records and wait until they have been replayed; 50001, 50002 or 42209 where that fails."""
        deadline = time.monotonic() + self._timeout_s
        results: list[tuple[KafkaError | None, Message]] = []
        number = 0
        for record in records:
            value = None if record.value is None else encode(record.value)
            try:
                self._producer.produce(
                    self._name, value, encode(record.key), 0, on_delivery=lambda *result: results.append(result)
                )
            except KafkaException as error:
                raise _refusal(error.args[0]) from None
            number += 1
        while len(results) < number:
            # Until the client has given up for itself: a record that may yet be written is not to be called lost.
            self._producer.poll(POLL_S)
        for error, _ in results:
            if error is not None:
                raise _refusal(error)
        last = max((message.offset() or 0 for _, message in results), default=-1)
        self._wait_for(last, deadline)

    def catch_up(self) -> None:
        """Read to the end as it is now, which a record of ours marks."""
        self.write([NOOP_RECORD])

    def _wait_for(self, offset: int, deadline: float) -> None:
        with self._read:
            if not self._read.wait_for(lambda: self._next > offset, max(0.1, deadline - time.monotonic())):
                raise refuse(50002, "Reading back what was written")

    def _follow(self) -> None:
        own = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer({**self._client, **own, "auto.offset.reset": "earliest"})
        try:
            self._begin(consumer)
            while not self._closing:
                first = consumer.poll(POLL_S)
                if first is not None:
                    self._replay([first, *consumer.consume(BATCH, 0)])
        finally:
            consumer.close()

    def _begin(self, consumer: Consumer) -> None:
        """Where the topic begins, and where it ended when this began. An end that is asked for is known at once; one
        that is read is told only after a fetch has waited for more."""
        while not self._closing:
            try:
                first, self._end = consumer.get_watermark_offsets(TopicPartition(self._name, 0), timeout=5.0)
            except KafkaException as error:
                log.warning("looking for the end of %s: %s", self._name, error)
                continue
            consumer.assign([TopicPartition(self._name, 0, first)])
            self._replay([])
            return

    def _replay(self, found: Iterable[Message]) -> None:
        with self._read:
            for message in found:
                error = message.error()
                if error is None:
                    self._apply(message)
                    self._next = (message.offset() or 0) + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._reached_end = True
                else:
                    log.warning("reading %s: %s", self._name, error.str())
            self._reached_end = self._reached_end or self._next >= (self._end or 0)
            self._read.notify_all()

    def _apply(self, message: Message) -> None:
        """Replay one record. What makes no sense is told and left out: another program may write to the topic."""
        value = message.value()
        try:
            key = decode(message.key() or b"")
            self._store.replay(key, None if value is None else decode(value), message.timestamp()[1])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("record %s of %s makes no sense: %r", message.offset(), self._name, error)


def _refusal(error: KafkaError) -> Exception:
    if error.code() in TIMED_OUT:
        return refuse(50002, "The write to the topic")
    if error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE):
        return refuse(42209, error.str())
    return refuse(50001, error.str())


def prepare(client: Mapping[str, Any], name: str, replicas: int, timeout_s: float, *, skip_validation: bool) -> None:
    """Create the topic if it is not there; TopicError if it is there and cannot serve, or nobody answers in time."""
    settings: dict[str, Any] = {"logger": log, **client}
    admin = AdminClient(settings)
    try:
        known = admin.list_topics(timeout=timeout_s)
        if name not in known.topics:
            _create(admin, name, min(replicas, len(known.brokers)), timeout_s)
        elif not skip_validation:
            _validate(admin, name, len(known.topics[name].partitions), timeout_s)
    except KafkaException as error:
        raise TopicError(f"Topic {name} cannot be used: {error.args[0].str()}.") from None


def _create(admin: AdminClient, name: str, replicas: int, timeout_s: float) -> None:
    topic = NewTopic(name, num_partitions=1, replication_factor=replicas, config={"cleanup.policy": COMPACT})
    try:
        admin.create_topics([topic], request_timeout=timeout_s)[name].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another registry was quicker
            raise


def _validate(admin: AdminClient, name: str, partitions: int, timeout_s: float) -> None:
    if partitions != 1:
        raise TopicError(f"Topic {name} has {partitions} partitions; the registry needs one with a single partition.")
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    policy = admin.describe_configs([resource], request_timeout=timeout_s)[resource].result()["cleanup.policy"].value
    if policy != COMPACT:
        raise TopicError(
            f"Topic {name} has cleanup.policy={policy}, so schemas would be lost; set it to compact, "
            "or start with kafkastore.topic.skip.validation=true."
        )
