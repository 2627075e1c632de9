"""A task of a source in its thread: poll, transform, convert, produce, commit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Producer

from moldau.connect.connector import SourceContext, SourceTask
from moldau.connect.creation import Creation
from moldau.connect.data import Record
from moldau.connect.errors import ConnectError, RetriableError
from moldau.connect.handling import Handler, Policy, Tolerated
from moldau.connect.offset_topic import frozen
from moldau.connect.pipeline import Outgoing, Pipeline
from moldau.connect.threads import Due, Thread, producer_settings

log = logging.getLogger(__name__)
POLL, INTERVAL, CONNECTOR = "poll", "interval", "connector"
QUEUE_FULL_S = 0.1
LAST_S = 5.0
ATTEMPTS = 10


def run_source(task: Thread) -> None:
    """Run until it is told to stop; what it raises fails the task."""
    spec, around = task.spec, task.around
    writer = ExactlyOnce(task) if spec.exactly_once else AtLeastOnce(task)
    try:
        around.offsets.sync(around.timeout_s)

        def offset(partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
            return around.offsets.offset(spec.connector, partition)

        context = SourceContext(spec.task_config, offset, task.stopped.wait, writer.is_bound)
        source: SourceTask = spec.plugin.open(context)
        try:
            task.running()
            _loop(task, source, writer)
        finally:
            source.close()
    finally:
        writer.close()


def _loop(task: Thread, source: SourceTask, writer: Writer) -> None:
    config = task.spec.config
    handler = Handler(task.spec.name, Policy.of(config, has_letters=False), task.stopped.wait, figures=task.figures)
    task.figures.is_source = True
    pipeline = Pipeline.of(task.around.worker, config, handler)

    commits = Commits(writer, task, getattr(source, "committed", None))

    def end(is_good: bool) -> None:
        if not is_good:
            writer.abort()  # its offsets count nevertheless: what the source discards does not come again
        commits.make()

    def leave() -> None:
        if writer.is_bound:
            writer.abort()  # only the source says where a transaction ends
        else:
            commits.make()

    try:
        while task.may_go_on((lambda: None) if writer.is_bound else commits.make):
            try:
                records = source.poll()
            except RetriableError as error:
                log.warning("%s polls again: %s", task.spec.name, error)
                records = ()
            found = _converted(pipeline, records)
            commits.settle()
            _send(task, writer, records, found, dict(getattr(source, "boundaries", ())), end)
            if not writer.is_bound and (writer.is_due or getattr(source, "wants_commit", False)):
                commits.begin()
        leave()
    except BaseException:
        commits.abandon()
        raise


Found = tuple[list[Sequence[Outgoing]], Exception | None]  # for each record, and what the next one failed with


def _converted(pipeline: Pipeline, records: Sequence[Record]) -> Found:
    """Convert records up to the first that fails its task: those before it are sent nevertheless."""
    found: list[Sequence[Outgoing]] = []
    try:
        for record in records:
            try:
                found.append(pipeline.outgoing(record))
            except Tolerated:
                found.append(())
    except Exception as error:
        return found, error
    return found, None


def _send(
    task: Thread,
    writer: Writer,
    records: Sequence[Record],
    found: Found,
    boundaries: Mapping[int, bool],
    end: Callable[[bool], None],
) -> None:
    """Send records. After those of `boundaries` the source wants `end` to commit a transaction, or to abort it."""
    used: set[str] = set()
    converted, failure = found
    task.figures.polled += len(records)
    for at, made in enumerate(converted):
        for one in made:
            if one[0] not in used:
                used.add(one[0])
                task.around.uses(task.spec.connector, task.spec.task, one[0])
            writer.send(*one)
        task.figures.written += len(made)
        writer.note(records[at].source_partition, records[at].source_offset)
        if at in boundaries:
            end(boundaries[at])
    if failure is not None:
        raise failure
    if not records and boundaries:
        end(boundaries[-1])
    writer.serve()


class Commits:
    """Commits what a writer was given. Where no source waits to be told, that is done beside its next poll."""

    def __init__(self, writer: Writer, task: Thread, tell: Callable[[], None] | None) -> None:
        self._writer, self._task, self._tell = writer, task, tell
        self._running: threading.Thread | None = None
        self._failure: BaseException | None = None

    def begin(self) -> None:
        if self._tell is not None or not self._writer.has_work:
            return self.make()
        self._running = threading.Thread(target=self._run, name=f"commit {self._task.spec.name}", daemon=True)
        self._running.start()
        return None

    def make(self) -> None:
        """Commit, and wait for it."""
        self.settle()
        self._commit()

    def settle(self) -> None:
        """Wait for the commit that is under way; raise what it has failed with."""
        self._wait()
        if self._failure is not None:
            raise self._failure

    def abandon(self) -> None:
        """Undo what was not committed, of a task that fails."""
        self._wait()
        self._writer.abort()

    def _wait(self) -> None:
        if self._running is not None:
            self._running.join()
            self._running = None

    def _run(self) -> None:
        self._failure = self._outcome()

    def _outcome(self) -> BaseException | None:
        try:
            self._commit()
        except BaseException as error:
            return error
        return None

    def _commit(self) -> None:
        if self._writer.commit():
            self._task.figures.commits += 1
            if self._tell is not None:
                self._tell()


class Writer:
    """Produces records of a task, and keeps the offsets that go with them until they are committed."""

    def __init__(self, task: Thread, more: Mapping[str, str | bool]) -> None:
        self._task = task
        self._error: Any = None
        self._producer = Producer({**producer_settings(task), **more}, logger=log)
        self._offsets: dict[str, tuple[Mapping[str, Any], Mapping[str, Any] | None]] = {}
        self._creation = Creation.of(task.spec.config) if task.around.creates_topics else None
        self._known: set[str] = set()
        self._noted: tuple[Mapping[str, Any] | None, str] = None, ""
        self._more: Mapping[str, Any] = {}  # for each record
        self._is_open = False  # something was sent since the last commit; not every source has offsets

    is_due: Any
    is_bound = False  # the source draws the boundaries of transactions

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
    ) -> None:
        """Produce a record; wait where the producer's queue is full."""
        if not self._is_open:
            self._begin()
            self._is_open = True
        if topic not in self._known:
            self._prepare(topic)
        more: Any = self._more
        if partition is not None or headers:
            place = -1 if partition is None else partition
            more = {**more, "partition": place, "headers": list(headers)}
        while True:
            try:  # a timestamp of 0 is the time of now
                self._producer.produce(topic, value, key, timestamp=timestamp or 0, **more)
                break
            except BufferError:
                self._producer.poll(QUEUE_FULL_S)
            self._check()

    def _begin(self) -> None:
        """Do what comes before the first record after a commit."""

    def _prepare(self, topic: str) -> None:
        """Create a topic as the connector's settings say, unless it is there."""
        if self._creation is not None and topic != self._task.around.offsets.topic:
            self._creation.make(self._task.around.worker, topic)
        self._known.add(topic)

    def serve(self) -> None:
        """Take in what was acknowledged so far."""
        self._producer.poll(0)
        self._check()

    def note(self, partition: Mapping[str, Any] | None, offset: Mapping[str, Any] | None) -> None:
        if partition is None:
            return
        if partition is not self._noted[0]:  # a task names the same one again and again
            self._noted = partition, frozen(partition)
        self._offsets[self._noted[1]] = partition, offset

    @property
    def has_work(self) -> bool:
        """Whether there is anything to commit."""
        return self._is_open or bool(self._offsets)

    def commit(self) -> bool:
        """Make everything durable that was sent, with its offsets; return whether there was anything."""
        raise NotImplementedError

    def abort(self) -> None:
        """Undo what can be undone."""

    def close(self) -> None:
        with suppress(KafkaException):  # of a producer that was fenced; the task has failed with that already
            if self._error is None:
                self._producer.flush(LAST_S)  # what a source gave before it failed
            self._producer.purge()
            self._producer.flush(1.0)

    def _write_offsets(self) -> None:
        store, spec = self._task.around.offsets, self._task.spec
        store.put([store.encode(spec.connector, *pair) for pair in self._offsets.values()], self.send)

    def _flush(self) -> None:
        self._producer.flush(self._task.around.timeout_s)
        self._check()
        if len(self._producer):
            raise ConnectError(f"{len(self._producer)} records were not acknowledged in time.")

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None and self._error is None:
            self._error = error

    def _check(self) -> None:
        if self._error is not None:
            raise ConnectError(f"Unrecoverable exception from producer send callback: {self._error}")


class AtLeastOnce(Writer):
    """Writes offsets every `offset.flush.interval.ms`, after the records before them."""

    def __init__(self, task: Thread) -> None:
        super().__init__(task, {"delivery.report.only.error": True})
        self._more = {"on_delivery": self._delivered}
        self.is_due = Due(task.around.flush_interval_s)

    def commit(self) -> bool:
        self.is_due.done()
        if not self._offsets and not self._is_open:
            self._check()
            return False
        self._flush()
        if self._offsets:
            self._write_offsets()
            self._flush()
            self._offsets.clear()
        self._is_open = False
        return True


class ExactlyOnce(Writer):
    """Writes records and offsets in transactions, one for each poll or for each interval.

    A record that was not delivered fails the commit. There is no callback for each: the client would call it in the
    middle of raising a fatal error, such as that of being fenced, and crash.
    """

    def __init__(self, task: Thread) -> None:
        super().__init__(task, {"transactional.id": task.spec.transactional_id})
        config = task.spec.config
        default_ms = str(int(task.around.flush_interval_s * 1000))
        interval_s = int(config.get("transaction.boundary.interval.ms") or default_ms) / 1000
        boundary = config.get("transaction.boundary", POLL).lower()
        self.is_bound = boundary == CONNECTOR
        self.is_due = Due(interval_s if boundary == INTERVAL else 0.0)
        self._connect()
        self._insist(lambda: self._producer.init_transactions(task.around.timeout_s))

    def _connect(self) -> None:
        """Have a connection to a broker. The client drops the one of bootstrap.servers when it knows brokers; if it is
        asking there for the coordinator just then, it asks again half a second later.
        """
        with suppress(KafkaException):  # init_transactions says why
            for _ in ("bootstrap", "broker"):
                self._producer.list_topics(self._task.around.offsets.topic, self._task.around.timeout_s)

    def _begin(self) -> None:
        self._producer.begin_transaction()

    def commit(self) -> bool:
        self.is_due.done()
        self._check()
        if self._offsets:
            self._write_offsets()
        if not self._is_open:
            return False
        self._insist(lambda: self._producer.commit_transaction(self._task.around.timeout_s))
        self._is_open = False
        self._offsets.clear()
        return True

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            try:
                self._insist(lambda: self._producer.abort_transaction(self._task.around.timeout_s))
            except (KafkaException, ConnectError) as error:
                log.warning("a transaction of %s is left to its successor: %s", self._task.spec.name, error)

    def _insist(self, operation: Callable[[], None]) -> None:
        """Try again what may pass."""
        for left in range(ATTEMPTS, 0, -1):
            try:
                operation()
                return
            except KafkaException as error:
                reason = error.args[0]
                if not reason.retriable() or left == 1 or self._task.stopped.wait(0.2):
                    raise ConnectError(f"The transaction cannot go on: {reason}") from error
