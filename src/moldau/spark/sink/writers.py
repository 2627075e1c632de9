"""The sinks of the data source "moldau", which write rows of a stream or of a job into topics exactly once.

`write` runs in a Python worker for each task, `commit` and `abort` on the driver when all tasks of a batch are done or
one of them has failed for good. markers.py explains why nothing is written twice. Only `write` imports what works on
rows, because compiled code takes time to load.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from moldau.client import ClientError, Error, Transaction
from moldau.spark.options import OptionError
from moldau.spark.session.worker import settle
from moldau.spark.sink.columns import check_schema
from moldau.spark.sink.marker_topic import abort_left, end_all
from moldau.spark.sink.markers import Content, Decision, Marker, Refused, beginning, decided, other_rows, other_tasks
from moldau.spark.sink.offset_log import end_offsets
from moldau.spark.sink.options import SinkOptions
from moldau.spark.sink.place import Outcome, Place, connect, ledger_of

if TYPE_CHECKING:
    import pyarrow as pa

# Spark's own names for them; there is no other way for a task to learn of them.
BATCH_ID, QUERY_ID = "streaming.sql.batchId", "sql.streaming.queryId"
RUN_ID = "spark.jobGroup.id"  # of a stream
JOB = "job"  # stands for the query in a batch job
ABORT_S = 10.0
MOST_RUNS = 1000
_swept: set[str] = set()  # starts of queries whose predecessors' transactions were looked for


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What Spark carries from a task to the driver."""

    outcome: Outcome


class StreamSink(DataSourceStreamArrowWriter):
    """A stream into topics."""

    def __init__(self, options: Mapping[str, str], schema: Any, overwrite: bool = False) -> None:
        """Made anew for each batch, by a worker that does nothing else."""
        settle()
        self.options = SinkOptions.of(options)
        check_schema(schema, self.options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        from moldau.spark.sink.task import run

        settle()
        context = TaskContext.get()
        names = (BATCH_ID, QUERY_ID, RUN_ID)
        batch, query, start = (context.getLocalProperty(name) if context else None for name in names)
        if context is None or batch is None or query is None:
            raise Refused("Spark does not tell the sink which batch this is: use PySpark 4.0 to 4.3")
        application = self.options.application or query
        place = Place(application, query, int(batch), context.partitionId(), start or "")
        return Written(run(self.options, place, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        settle()
        commit(self.options, outcomes(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        abort(self.options, outcomes(messages))


class BatchSink(DataSourceArrowWriter):
    """A job into topics. With `application.id` a second run of the same job completes the first, or writes nothing."""

    def __init__(self, options: Mapping[str, str], schema: Any, overwrite: bool = False) -> None:
        if overwrite:
            raise OptionError('A topic cannot be overwritten: write with mode("append").')
        self.options = SinkOptions.of(options)
        self.job = self.options.application or f"job-{uuid.uuid4()}"
        check_schema(schema, self.options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        from moldau.spark.sink.task import run

        settle()
        context = TaskContext.get()
        assert context is not None
        named = JOB if self.options.application else None
        return Written(run(self.options, Place(self.job, named, 0, context.partitionId()), iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commit(self.options, outcomes(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        abort(self.options, outcomes(messages))


def outcomes(messages: Sequence[WriterCommitMessage | None]) -> list[Outcome]:
    return [message.outcome for message in messages if isinstance(message, Written)]


def commit(options: SinkOptions, done: Sequence[Outcome]) -> None:
    """Decide a batch, and commit the transactions of all its tasks."""
    check_torn(options, done)
    open_ones = {one.place.task: one.transaction for one in done if one.transaction is not None}
    if not open_ones:
        return
    client, place = connect(options), done[0].place
    if place.query is None:
        lost = end_all(client, open_ones.values(), commit=True)
        if lost:
            raise lost_transactions(place, lost)
        return
    ledger = ledger_of(options, place.application)
    ledger.catch_up()
    decided(ledger.decision, place.application, place.query, place.batch)  # or refuse
    rows = tuple(_row(open_ones.get(task)) for task in range(len(done)))
    offsets = end_offsets(options.checkpoint, place.batch)
    began = beginning(ledger.decision, place.query, place.batch)
    decision = Decision(place.query, place.batch, rows, offsets, options.checkpoint, began=began)
    ledger.decide(decision)
    lost = end_all(client, open_ones.values(), commit=True)
    if lost and ledger.settle(decision):
        raise lost_transactions(place, lost)
    if place.run not in _swept:
        abort_left(client, place.application)
        if len(_swept) >= MOST_RUNS:
            _swept.clear()
        _swept.add(place.run)


def check_torn(options: SinkOptions, done: Sequence[Outcome]) -> None:
    """Raise Refused if a batch that was written in part has other tasks now, or other rows in a task."""
    wanted = next((one.tasks for one in done if one.tasks is not None), None)
    if wanted is None:
        return
    place = done[0].place
    ledger = ledger_of(options, place.application)
    ledger.catch_up()
    sentence = None if wanted == len(done) else other_tasks(place.batch, wanted, len(done))
    for one in done:
        before = content_before(ledger.marker(one.place.task), place)
        if before is not None and one.transaction is None and before != one.content:
            sentence = sentence or other_rows(place.batch, one.place.task, before, one.content)
    if sentence is not None:
        abort(options, done)
        raise Refused(sentence)


def content_before(marker: Marker | None, place: Place) -> Content | None:
    if marker is None or (marker.query, marker.batch) != (place.query, place.batch):
        return None
    return marker.content


def _row(transaction: Transaction | None) -> tuple[int, int, int] | None:
    return None if transaction is None else (transaction.producer_id, transaction.epoch, transaction.version)


def lost_transactions(place: Place, lost: Sequence[Transaction]) -> ClientError:
    names = ", ".join(one.transactional_id for one in lost)
    return ClientError(
        Error.INVALID_PRODUCER_EPOCH,
        f"Batch {place.batch} of {place.application} was not committed whole: {names} had been taken over, or aborted "
        f"after transaction.timeout.ms. When the batch runs again, what is missing is written and nothing else.",
        retriable=True,
    )


def abort(options: SinkOptions, done: Sequence[Outcome]) -> None:
    """Abort the transactions of a failed batch, except those that are decided to be committed."""
    open_ones = [one.transaction for one in done if one.transaction is not None]
    if not open_ones:
        return
    client, place = connect(options), done[0].place
    kept: set[tuple[int, int]] = set()
    if place.query is not None:
        ledger = ledger_of(options, place.application)
        ledger.catch_up()
        if ledger.decision is not None:
            kept = {row[:2] for row in ledger.decision.transactions if row is not None}
    rest = [one for one in open_ones if (one.producer_id, one.epoch) not in kept]
    end_all(client, rest, commit=False, timeout_s=ABORT_S)
