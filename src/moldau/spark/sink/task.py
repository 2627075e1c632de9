"""One task of the sink, which writes the rows of a partition in a transaction that the driver ends.

A task that may be a replay first does three things, in this order: it completes what was decided for its batch, takes
over its transactional id, so that nobody else can write under it, and reads what is already in the topics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from moldau.client import Client, ClientError, Error, Record, Sender, TransactionalProducer, build
from moldau.spark.connections import registry_for
from moldau.spark.sink.batches import Batches, TopicLimits, content_of
from moldau.spark.sink.marker_topic import GONE, Ledger
from moldau.spark.sink.markers import (
    Content,
    Marker,
    Refused,
    Skip,
    Step,
    Write,
    decided,
    marker_value,
    of_decided,
    of_marker,
    other_rows,
    task_key,
)
from moldau.spark.sink.options import SinkOptions
from moldau.spark.sink.place import Outcome, Place, connect, ledger_of
from moldau.spark.sink.rows import Rows, by_topic, rows_of, value_array
from moldau.spark.sink.values import Values
from moldau.topicstore import settings_of

TOPICS = 10_000  # that a task may write to
LIMITS_S = 300.0  # how long the limits of a topic are cached


def run(options: SinkOptions, place: Place, batches: Iterable[pa.RecordBatch]) -> Outcome:
    """Write the rows of a task."""
    full = (batch for batch in batches if batch.num_rows)
    first = next(full, None)
    if first is None:
        return Outcome(place, Content())
    writer = Writing(options, connect(options), chain([first], full))
    return exactly_once(writer, place) if options.exactly_once else at_least_once(writer, place)


class Writing:
    """The rows of a task, to be written or skipped."""

    def __init__(self, options: SinkOptions, client: Client, batches: Iterator[pa.RecordBatch]) -> None:
        self.options, self.client = options, client
        self._batches = batches
        registry = partial(registry_for, tuple(sorted(options.registry.items())))
        self._keys, self._values = Values(options, "key", registry), Values(options, "value", registry)

    def rows(self) -> Iterator[tuple[str, Rows]]:
        for batch in self._batches:
            for topic, part in by_topic(batch, self.options):
                yield topic, self._rows(part, topic)

    def _rows(self, batch: pa.RecordBatch, topic: str) -> Rows:
        keys = batch.column("key") if "key" in batch.schema.names else pa.nulls(batch.num_rows, pa.binary())
        values = self._values.to_bytes(value_array(batch), topic)
        return rows_of(batch, self._keys.to_bytes(keys, topic), values, self.options.headers)

    def write(self, send: Callable[[str, int, bytearray], Any], turn: int) -> Content:
        """Send all rows, and return a summary of them."""
        batches, total = Batches(send, self.options.compression, turn), Content()
        for topic, rows in self.rows():
            total += batches.add(limits_of(self.client, topic, self.options), rows)
        batches.finish()
        return total

    def skip(self) -> Content:
        """Summarize all rows without writing them."""
        return sum((content_of(rows) for _, rows in self.rows()), Content())

    def drop(self) -> None:
        for _ in self._batches:
            pass


def at_least_once(writing: Writing, place: Place) -> Outcome:
    sender = Sender(writing.client, acks=-1)
    try:
        content = writing.write(sender.send, place.task + place.batch)
        sender.flush()
    finally:
        sender.close()
    return Outcome(place, content)


def exactly_once(writing: Writing, place: Place) -> Outcome:
    client, options = writing.client, writing.options
    ledger = None if place.query is None else ledger_of(options, place.application)
    step = look(ledger, place)
    if isinstance(step, Skip):
        return skip(writing, place, step)
    began = time.monotonic()
    producer = take_over(client, place, options.timeout_ms)
    try:
        step = look(ledger, place)
        if isinstance(step, Skip):
            return skip(writing, place, step)
        content = writing.write(producer.send, place.task + place.batch)
        if ledger is not None:
            producer.send(*ledger.place, marker_batch(place, content))
        return Outcome(place, content, producer.flush(), step.tasks)
    except ClientError as error:
        raise explain(error, place, time.monotonic() - began, options.timeout_ms) from error
    except BaseException:
        undo(producer)
        raise
    finally:
        producer.close()


def look(ledger: Ledger | None, place: Place) -> Step:
    """Decide what to do, by what is in the topics.

    This is called before the transactional id is taken over, because that would abort what was decided, and once more
    afterwards, because only then nobody else can commit.
    """
    if ledger is None or place.query is None:
        return Write()
    ledger.catch_up()
    decision = decided(ledger.decision, place.application, place.query, place.batch)
    if decision is None:
        return of_marker(ledger.marker(place.task), place.query, place.batch)
    missing = ledger.settle(decision)
    return of_decided(decision, missing, ledger.marker(place.task), place.task)


def skip(writing: Writing, place: Place, step: Skip) -> Outcome:
    """Pass over rows that are in the topic, and check that they are the same where it matters."""
    if step.content is None:
        writing.drop()
        return Outcome(place, Content(), None, step.tasks)
    content = writing.skip()
    if content != step.content:
        raise Refused(other_rows(place.batch, place.task, step.content, content))
    return Outcome(place, content, None, step.tasks)


def take_over(client: Client, place: Place, timeout_ms: int) -> TransactionalProducer:
    try:
        return TransactionalProducer(client, place.transactional_id, timeout_ms=timeout_ms)
    except ClientError as error:
        if error.error is Error.INVALID_TRANSACTION_TIMEOUT:
            raise Refused(
                f"the broker does not allow transactions of {timeout_ms} ms: lower transaction.timeout.ms of the "
                f"sink, or raise transaction.max.timeout.ms of the broker"
            ) from error
        raise


def undo(producer: TransactionalProducer) -> None:
    """Abort; what cannot be aborted now is aborted when the task runs again, or when its time is up."""
    try:
        producer.abort()
    except ClientError:
        return


def explain(error: ClientError, place: Place, seconds: float, timeout_ms: int) -> ClientError:
    """Say why a transaction was lost: it took too long, or somebody took it over."""
    if error.error not in GONE:
        return error
    if seconds * 1000 >= timeout_ms:
        why = (
            f"it took longer than transaction.timeout.ms={timeout_ms}: raise that (and transaction.max.timeout.ms of "
            f"the broker), or make batches smaller (maxOffsetsPerTrigger)"
        )
    else:
        why = "its transactional id was taken over: by another attempt of the task, or by a second run of the query"
    sentence = f"Task {place.task} of batch {place.batch} of {place.application} cannot go on: {why}. ({error})"
    return ClientError(error.error, sentence, retriable=True)


def marker_batch(place: Place, content: Content) -> bytearray:
    value = marker_value(Marker(place.query or "", place.batch, content))
    now = int(time.time() * 1000)
    return build([Record(0, now, task_key(place.application, place.task), value)])


_limits: dict[tuple[int, str], tuple[float, int]] = {}


def limits_of(client: Client, topic: str, options: SinkOptions) -> TopicLimits:
    """Return the limits of a topic. If its settings may not be read, the broker's refusal shows the limit."""
    count = len(client.topic(topic).partitions)
    until, most = _limits.get((id(client), topic), (0.0, 0))
    if until < time.monotonic():
        most = int(settings_of(client, topic, "max.message.bytes").get("max.message.bytes", options.max_request_size))
        if len(_limits) >= TOPICS:
            _limits.clear()
        _limits[id(client), topic] = (time.monotonic() + LIMITS_S, most)
    return TopicLimits(topic, count, min(options.batch_size, most), min(options.max_request_size, most))
