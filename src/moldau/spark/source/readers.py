"""The source "moldau": micro-batches and batch jobs over topics, in the columns of Spark's own Kafka source.

One process per query plans offsets; Spark's Python workers read ranges. Both make their readers from options alone, so
readers carry no connection.
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
from moldau.spark.source.topics import Topics, list_offsets, locate

FIRST_CONTACT_S = 10.0  # how soon a query fails if the cluster is away
LATER_S = 5.0
Looked = tuple[list[planning.TopicPartition], dict[str, str]]
log = logging.getLogger("moldau.spark")


class Task(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class Reading:
    """What both kinds of readers share: reading a task's ranges as Arrow batches."""

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
        if not isinstance(task, Task):  # Spark's own, where there are no partitions
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


def end_without_a_word() -> None:
    """End the process that plans a query when Java has closed its connection.

    PySpark takes that for an error, tries to report it to Java, and prints both failures.
    """
    if isinstance(sys.exception(), EOFError):
        os._exit(0)


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
        self._reported: set[str] = set()
        self._group = GroupProgress(options.group) if options.group else None

    def __getstate__(self) -> dict[str, Any]:
        """Return only what a worker needs: it reads, and plans nothing."""
        return {"options": self.options, "reading": self.reading}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["options"], state["reading"].columns)

    def initialOffset(self) -> dict[str, Any]:
        partitions, ids = self._look()
        options = self.options
        if options.application is not None:
            offsets = resumed(self.reading.client, options.markers, options.application)
            if offsets is not None:
                return offsets
        offsets = locate(
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
        """Return the end of the next batch. When Spark asks, all before `start` is done, so it is committed now."""
        begin = Position.of_json(start)
        self._commit(begin)
        latest = self._reachable({topic for topic, _ in begin.offsets})
        if latest is None:
            return start
        self._report(planning.losses(begin, latest))
        if self._target is not None:
            latest = planning.at_most(latest, self._target)
        end = self._admit(begin, planning.carried(begin, latest), limit)
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
        end_without_a_word()

    def _commit(self, position: Position) -> None:
        if self._group is not None:
            self._group.commit(self.reading.client, position.offsets)

    def _report(self, sentences: list[str]) -> None:
        """Report each lost range once; it is lost in every later batch too."""
        lost([one for one in sentences if one not in self._reported], self.options.fail_on_data_loss)
        self._reported.update(sentences)

    def _look(self, timeout_s: float = FIRST_CONTACT_S, known: Collection[str] = ()) -> Looked:
        """Return the current partitions. At first every named topic must exist, unless it is `known`."""
        if self._topics is None:
            topics = Topics(self.reading.client, self.options.subscription)
            looked = topics.partitions(timeout_s)
            topics.check(known)
            self._topics = topics
            return looked
        return self._topics.partitions(timeout_s)

    def _now(self, timeout_s: float = FIRST_CONTACT_S, known: Collection[str] = ()) -> Position:
        partitions, ids = self._look(timeout_s, known)
        wanted, committed = dict.fromkeys(partitions, LATEST), self.reading.committed
        offsets = list_offsets(self.reading.client, wanted, committed=committed, timeout_s=timeout_s)
        self._latest = Position(offsets, ids, self.options.cut)
        return self._latest

    def _reachable(self, known: Collection[str]) -> Position | None:
        """Return the current ends of partitions; None while a cluster is away that was there before."""
        try:
            return self._now(FIRST_CONTACT_S if self._latest is None else LATER_S, known)
        except ClientError as error:
            if self._topics is not None:
                self._topics.forget()
            if self._latest is None or not error.retriable:
                raise
            log.warning("Waiting: %s", error)
            return None

    def _admit(self, begin: Position, latest: Position, limit: ReadLimit) -> Position | None:
        """Return the end that the limits allow; None while there is too little. Spark's `once` has no limits."""
        options = self.options
        if isinstance(limit, ReadAllAvailable):
            return latest
        if options.min_offsets is not None and self._target is None:
            delay_ms = (time.monotonic() - self._last_batch_at) * 1000
            if sum(planning.waiting(begin, latest).values()) < options.min_offsets and delay_ms < options.max_delay_ms:
                return None
        return latest if options.max_offsets is None else self.shared_out(begin, latest, options.max_offsets)


class BatchSource(DataSourceReader):
    """A batch job, which reads everything between two bounds."""

    def __init__(self, options: SourceOptions, columns: Columns) -> None:
        self.options = options
        self.reading = Reading(options, columns)

    def partitions(self) -> Sequence[InputPartition]:
        client, committed = self.reading.client, self.reading.committed
        topics = Topics(client, self.options.subscription)
        partitions, ids = topics.partitions(FIRST_CONTACT_S)
        topics.check()
        without_match = self.options.without_match
        start = locate(client, self.options.starting, partitions, committed=committed, without_match=without_match)
        end = locate(client, self.options.ending, partitions, committed=committed)
        if self.options.starting.kind == "offsets":
            start = self._check(start)
        return self.reading.tasks(Position(start, ids), Position(end, ids, self.options.cut))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.reading.batches(partition)

    def _check(self, start: planning.Numbers) -> dict[planning.TopicPartition, int]:
        """Return the offsets that still exist; given ones that are gone are lost data."""
        first = list_offsets(self.reading.client, dict.fromkeys(start, EARLIEST), committed=False)
        gone = sorted(one for one in start if start[one] < first[one])
        sentences = [f"Partition {t}-{p} begins at offset {first[t, p]}, after {start[t, p]}." for t, p in gone]
        lost(sentences, self.options.fail_on_data_loss)
        return {one: max(offset, first[one]) for one, offset in start.items()}


def columns_of(options: SourceOptions) -> Columns:
    """Return the columns that options ask for; schemas of typed values are looked up now, once."""
    if not options.typed.fields:
        return Columns(options.headers, options.typed)
    from moldau.spark.source.typed import pin

    topics = Topics(client_for(options.client), options.subscription)
    partitions, _ = topics.partitions(FIRST_CONTACT_S)
    topics.check()
    names = sorted({topic for topic, _ in partitions})
    pinned = tuple(pin(one, options.typed.registry, names) for one in options.typed.fields)
    return Columns(options.headers, options.typed, pinned, options.group or "moldau.spark")
