"""A task of a sink in its thread: consume, convert, transform, put, commit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from moldau.admin import topics
from moldau.client import Client
from moldau.client.librdkafka import member_of, take
from moldau.connect import clients
from moldau.connect.connector import Offsets, SinkContext, SinkTask
from moldau.connect.connector import TopicPartition as Place
from moldau.connect.data import Record
from moldau.connect.errors import ConnectError, RetriableError, java_name
from moldau.connect.handling import PUT, Failure, Handler, Policy, Tolerated, dead_letter_headers
from moldau.connect.pipeline import Pipeline
from moldau.connect.threads import Due, Seldom, Thread, consumer_settings, producer_settings
from moldau.topicstore import exists
from moldau.topicstore.topic import create

log = logging.getLogger(__name__)
MOST_RECORDS = 500  # as Java's max.poll.records
WAIT_S = 0.2
RETRY_S = 1.0
FLUSH_S, COMMITTED_S = 30.0, 30.0
PASSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}


def run_sink(task: Thread) -> None:
    """Run until it is told to stop; what it raises fails the task."""
    Sink(task).run()


class Sink:
    """One task of a sink. All of it runs in the task's thread, the consumer's callbacks too."""

    def __init__(self, task: Thread) -> None:
        self._task, spec = task, task.spec
        policy = Policy.of(spec.config)
        self._letters = DeadLetters(task, policy) if policy.dead_letters else None
        write = self._letters.write if self._letters else None
        self._handler = Handler(spec.name, policy, task.stopped.wait, write, task.figures)
        task.figures.is_source = False
        self._pipeline = Pipeline.of(task.around.worker, spec.config, self._handler)
        self._positions: dict[tuple[str, int], int] = {}  # what was put, and is not committed yet
        self._early: list[Message] = []
        self._is_reported_to = bool(policy.dead_letters) or policy.logs
        self._raw: dict[tuple[Any, Any, Any], Message] = {}  # of the records that are being put, for reports
        self._due = Due(task.around.flush_interval_s)
        self._may_say = Seldom()
        self._paused: set[Place] = set()  # by the connector
        self._resting: set[Place] | None = None  # what the client was told of them; None if that is not certain
        self._seeks: dict[Place, int] = {}  # where the connector wants to read on
        self._wants_commit, self._retry_s = False, RETRY_S
        self._consumer = Consumer(consumer_settings(task), logger=log)
        try:
            self._sink: SinkTask = spec.plugin.open(self._context())
        except BaseException:
            self._close_clients()
            raise

    def _context(self) -> SinkContext:
        return SinkContext(
            self._task.spec.task_config,
            self._report,
            self._task.stopped.wait,
            self._is_reported_to,
            self._seeks.update,
            self._paused.update,
            self._paused.difference_update,
            self._request_commit,
            self._retry_after,
            lambda: member_of(self._consumer),
            self._committed,
        )

    def _request_commit(self) -> None:
        self._wants_commit = True

    def _committed(self, places: Sequence[Place]) -> Offsets:
        """Return where the group is, of those partitions in which it is anywhere."""
        try:
            found = self._consumer.committed([TopicPartition(*place) for place in places], COMMITTED_S)
        except KafkaException as error:
            raise ConnectError(f"The group's offsets cannot be read: {error.args[0]}") from error
        return {(one.topic, one.partition): one.offset for one in found if one.error is None and one.offset >= 0}

    def _retry_after(self, seconds: float) -> None:
        self._retry_s = max(0.0, seconds)

    def run(self) -> None:
        try:
            self._subscribe()
            self._task.running()
            while self._task.may_go_on(self._commit, self._stay):
                self._unpause()
                self._take(self._read())
                self._rewind()
                if self._due or self._wants_commit:
                    self._commit()
            self._commit()
        finally:
            try:
                self._sink.close()
            finally:
                self._positions.clear()  # closing calls back, and there is nothing left to flush
                self._close_clients()

    def _read(self) -> list[Message]:
        """Return what came while the task rested, and what is there now; wait a little if that is nothing."""
        found, self._early = self._early, []
        return found + take(self._consumer, MOST_RECORDS, 0.0 if found else WAIT_S)

    def _close_clients(self) -> None:
        self._consumer.close()
        if self._letters:
            self._letters.close()

    def _subscribe(self) -> None:
        config = self._task.spec.config
        pattern = config.get("topics.regex", "")
        names = ["^" + pattern.removeprefix("^")] if pattern else split(config.get("topics", ""))
        self._consumer.subscribe(names, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def _unpause(self) -> None:
        """Read all partitions but those that the connector wants to rest; the client takes a while to be told."""
        if self._resting == self._paused:
            return
        self._resting = set(self._paused)
        assigned = self._consumer.assignment()
        self._consumer.resume([one for one in assigned if (one.topic, one.partition) not in self._paused])
        self._consumer.pause([one for one in assigned if (one.topic, one.partition) in self._paused])

    def _rewind(self) -> None:
        """Read on where the connector wants; that is also what is committed next."""
        if not self._seeks:
            return
        assigned = {(one.topic, one.partition) for one in self._consumer.assignment()}
        for place, offset in self._seeks.items():
            if place in assigned:
                self._consumer.seek(TopicPartition(*place, offset))
                self._positions[place] = offset
        self._seeks.clear()

    def _stay(self) -> None:
        """Stay in the group without taking records; what a new assignment brings nevertheless is kept for later."""
        self._resting = None
        self._consumer.pause(self._consumer.assignment())
        self._early += self._consumer.consume(1, 0.0)

    # What the group gives and takes.

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        starts = self._sink.open([(one.topic, one.partition) for one in partitions])
        for one in partitions:
            if (one.topic, one.partition) in starts:
                one.offset = starts[one.topic, one.partition]
        consumer.assign(partitions)
        self._resting = None

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit()
        self._forget(partitions)
        consumer.unassign()

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._positions.clear()
        self._forget(partitions)
        consumer.unassign()

    def _forget(self, partitions: list[TopicPartition]) -> None:
        """Tell the connector what it loses; all partitions are taken before any is given."""
        self._paused.clear()
        self._raw.clear()
        revoked = getattr(self._sink, "revoked", None)
        if revoked is not None:
            revoked([(one.topic, one.partition) for one in partitions])
        self._seeks.clear()  # also what it wants of those that it loses: others may be further when they come back

    # Records.

    def _take(self, found: Sequence[Message]) -> None:
        messages = [one for one in found if one.error() is None]
        if len(messages) < len(found):
            for one in found:
                self._note(one.error())
        ends: Any = {(one.topic(), one.partition()): one.offset() for one in messages}  # of each, the last
        for topic in {topic for topic, _ in ends}:
            self._task.around.uses(self._task.spec.connector, self._task.spec.task, topic)
        self._task.figures.read += len(messages)
        if self._is_reported_to:
            self._raw |= {(one.topic(), one.partition(), one.offset()): one for one in messages}
        records = self._records(messages)
        if records or getattr(self._sink, "wants_empty", False):
            self._put(records)
            self._task.figures.sent += len(records)
        if not (getattr(self._sink, "reports_late", False) and self._letters):
            self._raw.clear()
        self._positions |= {place: offset + 1 for place, offset in ends.items()}

    def _records(self, messages: Sequence[Message]) -> list[Record]:
        records: list[Record] = []
        for one in messages:
            try:
                records += self._pipeline.incoming(one)
            except Tolerated:
                continue
        return records

    def _note(self, error: KafkaError | None) -> None:
        if error is None:
            return
        if error.code() not in PASSING and not error.retriable():
            raise ConnectError(f"The topics cannot be read: {error}")
        if self._may_say(str(error)):  # a broker that comes back may cause hundreds of the same
            log.warning("%s: %s", self._task.spec.name, error)

    def _put(self, records: Sequence[Record]) -> None:
        """Put records; those that the target cannot take for now are put again."""
        while True:
            try:
                self._sink.put(records)
                return
            except RetriableError as error:
                log.warning("%s tries again: %s", self._task.spec.name, error)
                self._stay()
                if self._task.stopped.wait(self._retry_s):
                    raise
                self._retry_s = RETRY_S
            except ConnectError:
                raise
            except Exception as error:
                said = "Exiting WorkerSinkTask due to unrecoverable exception."
                raise ConnectError(said) from error

    def _report(self, record: Record, error: Exception) -> None:
        """Leave out a record that the target refuses, or fail."""
        place = record.original_topic or record.topic, record.original_partition, record.original_offset
        raw = self._raw.get(place)
        try:
            self._handler.refuse(Failure(PUT, java_name(error), error, raw))
        except Tolerated:
            return

    def _commit(self) -> None:
        self._due.done()
        self._wants_commit = False
        if not self._positions:
            return
        safe = self._sink.flush(dict(self._positions))
        self._raw = {place: raw for place, raw in self._raw.items() if place[2] >= safe.get(place[:2], 0)}
        if self._letters:
            self._letters.flush()
        rows = [TopicPartition(topic, partition, offset) for (topic, partition), offset in safe.items()]
        try:
            if rows:
                self._consumer.commit(offsets=rows, asynchronous=False)
                self._task.figures.commits += 1
            self._positions = {place: end for place, end in self._positions.items() if safe.get(place) != end}
        except KafkaException as error:  # as in Connect the task goes on, and commits more next time
            self._task.figures.failed_commits += 1
            if self._may_say(f"commit: {error.args[0]}"):
                log.warning("offsets of %s are not committed yet: %s", self._task.spec.name, error.args[0])


class DeadLetters:
    """The dead-letter topic of a sink."""

    def __init__(self, task: Thread, policy: Policy) -> None:
        self._task, self._policy, self._error = task, policy, None
        self._create()
        self._producer = Producer({**producer_settings(task), "client.id": f"connector-dlq-producer-{task.spec.name}"})

    def _create(self) -> None:
        name = self._policy.dead_letters
        with Client({**clients.basic(self._task.around.worker), "allow.auto.create.topics": "false"}) as client:
            if not exists(client, name):
                replicas = min(self._policy.dead_letter_replicas, len(client.refresh().brokers))
                create(client, topics.NewTopic(name, 1, replicas))

    def write(self, failure: Failure) -> None:
        raw: Message = failure.raw
        headers: list[Any] = list(raw.headers() or ())
        if self._policy.dead_letter_headers:
            headers += dead_letter_headers(failure, self._task.spec.connector, self._task.spec.task)
        self._producer.produce(
            self._policy.dead_letters, raw.value(), raw.key(), headers=headers, on_delivery=self._delivered
        )
        self._producer.poll(0)

    def _delivered(self, error: Any, _: Any) -> None:
        self._error = self._error or error

    def flush(self) -> None:
        """Wait until all dead letters are written, before the offsets after them are committed."""
        if self._producer.flush(FLUSH_S) or self._error:
            raise ConnectError(f"Dead letters cannot be written to {self._policy.dead_letters}: {self._error}")

    def close(self) -> None:
        self._producer.flush(FLUSH_S)


def split(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]
