"""The source "moldau": micro-batches and batch jobs over topics, in the columns of Spark's own Kafka source.

Offsets are planned in one process for each query; ranges are read in Spark's Python workers. Both make their readers
from options alone, so readers hold no connection that is not made again where they arrive.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from moldau.client import Client, ClientError
from moldau.spark.connections import client_for
from moldau.spark.progress import GroupProgress
from moldau.spark.session.worker import settle
from moldau.spark.sink.marker_topic import resumed
from moldau.spark.source import planning
from moldau.spark.source.columns import Columns
from moldau.spark.source.loss import lost
from moldau.spark.source.options import EARLIEST, LATEST, SourceOptions
from moldau.spark.source.planning import Position, Range
from moldau.spark.source.topics import Topics, list_offsets, located

FIRST_CONTACT_S = 10.0  # a cluster that is not there is told of so soon
LATER_S = 5.0
Looked = tuple[list[planning.TopicPartition], dict[str, str]]
log = logging.getLogger("moldau.spark")


class Task(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class Reading:
    """What both kinds of readers share: a task's range as Arrow batches."""

    def __init__(self, options: SourceOptions, columns: Columns) -> None:
        self.options = options
        self.columns = columns

    @property
    def client(self) -> Client:
        return client_for(self.options.client)

    @property
    def isolation(self) -> str:
        return self.client.config["isolation.level"]

    @property
    def committed(self) -> bool:
        return self.isolation == "read_committed"

    def tasks(self, start: Position, end: Position) -> list[Task]:
        return [Task(some) for some in planning.tasks(planning.ranges(start, end), end.cut)]

    def batches(self, task: InputPartition) -> Iterator[pa.RecordBatch]:
        settle()
        if not isinstance(task, Task):  # what Spark makes of no partitions at all
            return
        from moldau.spark.source.filling import Filling
        from moldau.spark.source.reading import read

        chunks = read(
            self.client,
            task.ranges,
            isolation=self.isolation,
            fail_on_data_loss=self.options.fail_on_data_loss,
            patience_ms=self.options.patience_ms,
        )
        yield from Filling(self.columns, self.client).batches(chunks)


class StreamSource(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches. The methods are Spark's, in the order in which it calls them."""

    shared_out = staticmethod(planning.limited)  # who gets how much of a limited batch

    def __init__(self, options: SourceOptions, columns: Columns) -> None:
        self.options = options
        self.reading = Reading(options, columns)
        self._topics: Topics | None = None
        self._target: Position | None = None
        self._latest: Position | None = None
        self._last_batch_at = time.monotonic()
        self._told: set[str] = set()
        self._group = GroupProgress(options.group) if options.group else None

    def __getstate__(self) -> dict[str, Any]:
        """Only what a worker needs to read: it plans nothing."""
        return {"options": self.options, "reading": self.reading}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["options"], state["reading"].columns)

    def initialOffset(self) -> dict[str, Any]:
        partitions, ids = self._look()
        options = self.options
        if options.application is not None:
            found = resumed(self.reading.client, options.markers, options.application)
            if found is not None:
                return found
        offsets = located(
            self.reading.client,
            options.starting,
            partitions,
            committed=self.reading.committed,
            without_match=options.without_match,
        )
        return Position(offsets, ids, options.cut).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self.options.max_offsets is not None:
            return ReadMaxRows(self.options.max_offsets)
        return ReadAllAvailable() if self.options.min_offsets is None else ReadMinRows(self.options.min_offsets)

    def prepareForTriggerAvailableNow(self) -> None:
        forgiven = () if self.options.fail_on_data_loss else self.options.subscription.topics or ()
        self._target = self._now(known=forgiven)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch. When Spark asks, all before `start` is done: that is when it is committed."""
        begin = Position.of_json(start)
        self._commit(begin)
        latest = self._reachable({topic for topic, _ in begin.offsets})
        if latest is None:
            return start
        self._tell(planning.losses(begin, latest))
        if self._target is not None:
            latest = planning.at_most(latest, self._target)
        end = self._admitted(begin, planning.carried(begin, latest), limit)
        if end is None or (end.offsets == begin.offsets and not any(begin.is_anew(one, end) for one in end.ids)):
            return start
        self._last_batch_at = time.monotonic()
        return planning.gathered(begin, end).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._latest is None else self._latest.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self.reading.tasks(Position.of_json(start), Position.of_json(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.reading.batches(partition)

    def commit(self, end: dict[str, Any]) -> None:
        self._commit(Position.of_json(end))

    def stop(self) -> None:
        """The process that plans a query ends when Java closes its connection. PySpark takes that for an error, tries
        to tell Java of it, and prints both failures, each time that a query ends.
        """
        if isinstance(sys.exception(), EOFError):
            os._exit(0)

    def _commit(self, position: Position) -> None:
        if self._group is not None:
            self._group.commit(self.reading.client, position.offsets)

    def _tell(self, sentences: list[str]) -> None:
        """Each loss once: what was gone stays so in every batch."""
        lost([one for one in sentences if one not in self._told], self.options.fail_on_data_loss)
        self._told.update(sentences)

    def _look(self, timeout_s: float = FIRST_CONTACT_S, known: Collection[str] = ()) -> Looked:
        """The partitions there are. At the first look a topic that is named must be there, unless it is `known`."""
        if self._topics is None:
            topics = Topics(self.reading.client, self.options.subscription)
            found = topics.partitions(timeout_s)
            topics.check(known)
            self._topics = topics
            return found
        return self._topics.partitions(timeout_s)

    def _now(self, timeout_s: float = FIRST_CONTACT_S, known: Collection[str] = ()) -> Position:
        partitions, ids = self._look(timeout_s, known)
        committed = self.reading.committed
        wanted = dict.fromkeys(partitions, LATEST)
        offsets = list_offsets(self.reading.client, wanted, committed=committed, timeout_s=timeout_s)
        self._latest = Position(offsets, ids, self.options.cut)
        return self._latest

    def _reachable(self, known: Collection[str]) -> Position | None:
        """The ends of partitions now; None while the cluster is away, if it has been there before."""
        try:
            return self._now(FIRST_CONTACT_S if self._latest is None else LATER_S, known)
        except ClientError as error:
            if self._topics is not None:
                self._topics.forget()
            if self._latest is None or not error.retriable:
                raise
            log.warning("Waiting: %s", error)
            return None

    def _admitted(self, begin: Position, latest: Position, limit: ReadLimit) -> Position | None:
        """As much as the limits allow; None while there is too little. Spark's `once` knows no limits."""
        options = self.options
        if isinstance(limit, ReadAllAvailable):
            return latest
        if options.min_offsets is not None and self._target is None:
            delay_ms = (time.monotonic() - self._last_batch_at) * 1000
            if sum(planning.waiting(begin, latest).values()) < options.min_offsets and delay_ms < options.max_delay_ms:
                return None
        return latest if options.max_offsets is None else self.shared_out(begin, latest, options.max_offsets)


class BatchSource(DataSourceReader):
    """A batch job: everything between two bounds."""

    def __init__(self, options: SourceOptions, columns: Columns) -> None:
        self.options = options
        self.reading = Reading(options, columns)

    def partitions(self) -> Sequence[InputPartition]:
        client, committed = self.reading.client, self.reading.committed
        topics = Topics(client, self.options.subscription)
        partitions, ids = topics.partitions(FIRST_CONTACT_S)
        topics.check()
        without_match = self.options.without_match
        start = located(client, self.options.starting, partitions, committed=committed, without_match=without_match)
        end = located(client, self.options.ending, partitions, committed=committed)
        if self.options.starting.kind == "offsets":
            start = self._checked(start)
        return self.reading.tasks(Position(start, ids), Position(end, ids, self.options.cut))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.reading.batches(partition)

    def _checked(self, start: planning.Numbers) -> dict[planning.TopicPartition, int]:
        """Offsets that were given, and are gone by now, are lost data before a task finds out."""
        first = list_offsets(self.reading.client, dict.fromkeys(start, EARLIEST), committed=False)
        gone = sorted(one for one in start if start[one] < first[one])
        sentences = [f"Partition {t}-{p} begins at offset {first[t, p]}, after {start[t, p]}." for t, p in gone]
        lost(sentences, self.options.fail_on_data_loss)
        return {one: max(offset, first[one]) for one, offset in start.items()}


def columns_of(options: SourceOptions) -> Columns:
    """The columns that options ask for; where values are typed, schemas are looked up now and stay."""
    if not options.typed.fields:
        return Columns(options.headers, options.typed)
    from moldau.spark.source.typed import pin

    topics = Topics(client_for(options.client), options.subscription)
    partitions, _ = topics.partitions(FIRST_CONTACT_S)
    topics.check()
    names = sorted({topic for topic, _ in partitions})
    pinned = tuple(pin(one, options.typed.registry, names) for one in options.typed.fields)
    return Columns(options.headers, options.typed, pinned, options.group or "moldau.spark")
