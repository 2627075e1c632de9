"""How the sink avoids writing twice: markers of tasks and decisions of batches.

Each task writes its rows and a **marker** in a transaction of its own and leaves it open. When all tasks are done the
driver writes a **decision** (which batch, which transactions, up to which offsets), and only then commits them. So a
batch without a decision has committed nothing, and a batch with a decision is completed by whoever finds it. A batch is
torn only if the broker ended a decided transaction by itself, because nobody came for longer than
`transaction.timeout.ms`; then markers tell which of its tasks are in the topic.

Markers and decisions are records of one compacted topic, those of one application in one partition. `Book` reads all
records, also those of open transactions, because a reader of committed ones would wait for tasks that have not begun.
What a task does is decided here, without I/O.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.client import Fetched
from moldau.wire.records import Batch, ControlType, Record, control_type, records

TOPIC = "__moldau_sink_markers"
PARTITIONS = 8
FORMAT = 1
TASK, BATCH = "task", "batch"
LIMIT = 1 << 20  # bytes of one batch of the marker topic, decompressed


@dataclass(frozen=True, slots=True)
class Content:
    """A summary of the rows of a task, in any order, to tell whether a replay has the same rows."""

    rows: int = 0
    bytes: int = 0
    sum: int = 0

    def __add__(self, other: Content) -> Content:
        return Content(self.rows + other.rows, self.bytes + other.bytes, (self.sum + other.sum) & 0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Marker:
    """What the last committed transaction of a sink task held."""

    query: str
    batch: int
    content: Content


@dataclass(frozen=True, slots=True)
class Decision:
    """A batch whose transactions are to be committed.

    `transactions` has producer id, epoch and version of each task, or None where it wrote nothing. `released` lets a
    query with another checkpoint take the application over.
    """

    query: str
    batch: int
    transactions: tuple[tuple[int, int, int] | None, ...]
    offsets: tuple[str | None, ...] = ()  # where each source of the query has got to, as the offset log has it
    checkpoint: str | None = None
    released: bool = False
    began: str | None = None  # of a first batch: where a query began that took the application over

    @property
    def tasks(self) -> int:
        return len(self.transactions)


def partition_of(application: str, partitions: int) -> int:
    return zlib.crc32(application.encode()) % partitions


def transactional_id(application: str, task: int) -> str:
    return f"moldau-sink-{application}-{task}"


def task_key(application: str, task: int) -> bytes:
    return _json([TASK, application, task])


def batch_key(application: str) -> bytes:
    return _json([BATCH, application])


def marker_value(marker: Marker) -> bytes:
    content = {"rows": marker.content.rows, "bytes": marker.content.bytes, "sum": marker.content.sum}
    return _json({"version": FORMAT, "query": marker.query, "batch": marker.batch, **content})


def decision_value(decision: Decision) -> bytes:
    row = {name: getattr(decision, name) for name in Decision.__slots__}
    return _json({"version": FORMAT, **row})


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass(slots=True)
class Book:
    """The markers and decisions of a partition of the marker topic, up to an offset."""

    position: int = 0
    markers: dict[tuple[str, int], Marker] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    # open transactions: producer -> epoch, record
    pending: dict[int, list[tuple[int, Record]]] = field(default_factory=dict)

    def read(self, batch: Batch) -> None:
        """Read the next batch, whoever wrote it."""
        if batch.last_offset < self.position:
            return
        content = list(records(batch, LIMIT))
        if batch.is_control:
            written = self.pending.pop(batch.producer_id, [])
            if control_type(content[0].key) == ControlType.COMMIT:
                self._apply(record for _, record in written)
        elif batch.is_transactional:
            epoch = batch.producer_epoch
            self.pending.setdefault(batch.producer_id, []).extend((epoch, record) for record in content)
        else:
            self._apply(content)
        self.position = batch.next_offset

    def take(self, fetched: Fetched) -> None:
        for batch in fetched.batches():
            self.read(batch)

    def skip_to(self, end: int) -> None:
        self.position = max(self.position, end)

    def is_open(self, decision: Decision) -> bool:
        """Tell whether a transaction of a decision is still open, as far as the topic has been read."""
        wanted = {one[:2] for one in decision.transactions if one is not None}
        return any((producer, epoch) in wanted for producer, rows in self.pending.items() for epoch, _ in rows)

    def _apply(self, written: Iterable[Record]) -> None:
        for record in written:
            try:
                self._apply_one(record)
            except (ValueError, KeyError, TypeError):
                raise Refused(
                    f"the marker topic has a record that is no marker, at offset {record.offset} (key "
                    f"{record.key!r}): name another topic by markers.topic"
                ) from None

    def _apply_one(self, record: Record) -> None:
        match json.loads(record.key or b""):
            case ["task", str(application), int(task)]:
                self._mark((application, task), record.value)
            case ["batch", str(application)]:
                self._decide(application, record.value)
            case _:
                raise ValueError("neither a task nor a batch")

    def _mark(self, whose: tuple[str, int], value: bytes | None) -> None:
        if value is None:
            self.markers.pop(whose, None)
            return
        row = _row(value)
        self.markers[whose] = Marker(row["query"], row["batch"], Content(row["rows"], row["bytes"], row["sum"]))

    def _decide(self, application: str, value: bytes | None) -> None:
        if value is None:
            self.decisions.pop(application, None)
            return
        row = _row(value)
        transactions = tuple(tuple(one) if one else None for one in row["transactions"])
        more = tuple(row["offsets"]), row["checkpoint"], row["released"], row.get("began")
        decision = Decision(row["query"], row["batch"], transactions, *more)
        if _follows(decision, self.decisions.get(application)):
            self.decisions[application] = decision


def _follows(decision: Decision, known: Decision | None) -> bool:
    """Tell whether a decision counts. A driver that was thought dead may still decide a batch that its successor has
    done long ago, or one of an application that was handed on.
    """
    if known is None or known.query != decision.query:
        return True
    return decision.batch >= known.batch and not (known.released and not decision.released)


def _row(value: bytes) -> dict[str, Any]:
    row = json.loads(value)
    if row["version"] != FORMAT:
        raise Refused(
            f"the marker topic {TOPIC} has records of format {row['version']}, which a newer Moldau wrote: "
            f"use that one, or another marker topic (markers.topic)"
        )
    return row


class Refused(Exception):
    """A refusal to write, because it could not be exactly once. Its text says what to do."""


@dataclass(frozen=True, slots=True)
class Write:
    """The task writes its rows. `tasks` is how many tasks there must be, if it matters."""

    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """The rows are already in the topic. `content` is their summary, where the task must check it."""

    content: Content | None = None
    tasks: int | None = None


Step = Write | Skip


def decided(decision: Decision | None, application: str, query: str, batch: int) -> Decision | None:
    """Return the decision of this batch, whose transactions must be committed first; None if there is none.

    Refused if what the topic has is not the past of this query.
    """
    if decision is None:
        return None
    if decision.released:
        if decision.query == query:
            raise Refused(handed_on(application, decision))
        return None
    if decision.query != query:
        raise Refused(another_query(application, decision))
    if decision.batch > batch:
        raise Refused(
            f"application {application} has written batch {decision.batch} already, and this query is at batch "
            f"{batch}: its checkpoint is an older copy, or it runs twice. End the other one; or go on where the topic "
            f"is: remove the checkpoint and run `moldau spark resume {application}`"
        )
    return decision if decision.batch == batch else None


def beginning(known: Decision | None, query: str, batch: int) -> str | None:
    """Return where a query began that took over an application; Spark may replay its first batch from there."""
    if batch or known is None:
        return None
    return known.began if known.query == query else next(iter(known.offsets), None)


def handed_on(application: str, decision: Decision) -> str:
    return (
        f"application {application} was handed on after batch {decision.batch}, and this is the query that it was: "
        f"another one goes on where it stopped. To let this one go on, run `moldau spark reset {application}`"
    )


def another_query(application: str, decision: Decision) -> str:
    where = f" with the checkpoint {decision.checkpoint}" if decision.checkpoint else ""
    return (
        f"application {application} has written up to batch {decision.batch} of query {decision.query}{where}, and "
        f"this is another query: its checkpoint is new, or of another application. Start it with its checkpoint; or "
        f"go on where it stopped by `moldau spark resume {application}`; or forget what it has written, which will be "
        f"there twice if it is read again, by `moldau spark reset {application}`"
    )


def torn(decision: Decision, application: str, markers: Mapping[tuple[str, int], Marker]) -> frozenset[int]:
    """Return the tasks of a decided batch whose transactions were not committed after all."""
    return frozenset(
        task
        for task, transaction in enumerate(decision.transactions)
        if transaction is not None and not _is_of(markers.get((application, task)), decision.query, decision.batch)
    )


def of_decided(decision: Decision, missing: frozenset[int], marker: Marker | None, task: int) -> Step:
    """Decide what a task of a decided batch does, after its transactions have ended."""
    if not missing:
        return Skip()
    if task >= decision.tasks:
        raise Refused(other_tasks(decision.batch, decision.tasks, f"more than {task}"))
    if task in missing:
        return Write(decision.tasks)
    return Skip(marker.content if marker is not None else Content(), decision.tasks)


def of_marker(marker: Marker | None, query: str, batch: int) -> Step:
    """Decide what a task does that has taken over its transactional id: nobody else can write its marker now."""
    if marker is None or marker.query != query or marker.batch < batch:
        return Write()
    if marker.batch == batch:
        return Skip()
    raise Refused(
        f"batch {batch} comes after batch {marker.batch} has been written: this driver was replaced by another one, or "
        f"its checkpoint is an older copy. Run one query with this checkpoint at a time"
    )


def _is_of(marker: Marker | None, query: str, batch: int) -> bool:
    return marker is not None and marker.query == query and marker.batch >= batch


def other_tasks(batch: int, before: int, now: object) -> str:
    return (
        f"batch {batch} was written in part by {before} tasks, and the rest was aborted by the broker before anybody "
        f"came back (transaction.timeout.ms). It can be completed by {before} tasks with the same rows, but there are "
        f"{now}. Start the query once with the settings and the plan that it had (spark.sql.shuffle.partitions, "
        f"minPartitions, maxRecordsPerPartition), and raise transaction.timeout.ms"
    )


def other_rows(batch: int, task: int, before: Content, now: Content) -> str:
    return (
        f"task {task} of batch {batch}, which was written in part, had {before.rows} rows of {before.bytes} bytes, and "
        f"has {now.rows} rows of {now.bytes} bytes now or other ones: rows went through other tasks then, or the query "
        f"computes something else each time. Start it once with the settings and the plan that it had"
    )
