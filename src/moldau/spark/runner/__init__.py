"""`moldau.spark.run` starts queries, watches them, restarts them where that helps, and stops them cleanly.

A query is a name and a function that takes the session and returns a DataStreamWriter that is not started. All run in
one session. One that fails for a reason that may pass (`failures.py`) is made and started anew after a growing pause;
after any other failure it has failed for good. `run` then stops all queries and raises QueryFailed with the reason; a
worker of flows (`moldau.flows.worker`), which has a `Supervisor` too, goes on with the others.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.spark.runner.failures import kind_of, sentence_of, text_of
from moldau.spark.runner.status import ENDED, QueryStatus, State, line
from moldau.spark.runner.status_page import StatusPage
from moldau.spark.session import session
from moldau.spark.session.private import activate, forget_lost_daemons, is_starting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Definition = Callable[["SparkSession"], "DataStreamWriter"]
Observer = Callable[["Supervised"], None]
POLL_S = 0.1
LINE_S = 0.5
START_S = 10.0  # that Spark gives the process that plans a query
log = logging.getLogger("moldau.spark")


class QueryFailed(Exception):
    """A query that ended and was not restarted. The text says why in a sentence; `details` is all of Spark's text."""

    def __init__(self, name: str, sentence: str, details: str) -> None:
        super().__init__(f"Query {name} failed: {sentence}")
        self.details = details


@dataclass(frozen=True, slots=True)
class Policy:
    """When queries are restarted, and how long a batch may take to end when they are stopped."""

    first_pause_s: float = 1.0
    most_pause_s: float = 60.0
    restarts: int = 10  # in a row, without a batch between them
    stop_s: float = 60.0
    at_once: int = 2  # queries whose processes are being started: Spark gives each ten seconds for that

    def pause_s(self, failures: int) -> float:
        """Return the pause before the next try, after so many failures in a row."""
        return min(self.most_pause_s, self.first_pause_s * 2 ** min(failures - 1, 30))


@dataclass(slots=True)
class Supervised:
    """A query under supervision."""

    name: str
    definition: Definition
    status: QueryStatus
    query: StreamingQuery | None = None
    failures: int = 0  # in a row
    start_at: float = 0.0
    started_by: float = 0.0  # when Spark has started its processes or given up; 0 if that is over
    stop_by: float = 0.0
    last_batch: int | None = None  # that was complete when the query was told to stop
    progress: Mapping[str, Any] | None = None  # the last one, as Spark's JSON has it
    observe: Observer = lambda query: None  # called after each step
    failure: QueryFailed | None = None  # why it has ended for good


@dataclass(slots=True)
class Supervisor:
    """All queries of a session. `step` checks each once; nothing here waits except for Spark's own calls."""

    spark: SparkSession
    queries: list[Supervised]
    policy: Policy = field(default_factory=Policy)
    state_dir: str | None = None

    @property
    def ended(self) -> bool:
        return all(one.status.state in ENDED for one in self.queries)

    def raise_failure(self) -> None:
        """Raise why a query has failed for good, if one has."""
        for one in self.queries:
            if one.failure is not None:
                raise one.failure

    def step(self, now: float) -> None:
        for one in self.queries:
            try:
                self._step(one, now)
            finally:
                one.observe(one)

    def _step(self, one: Supervised, now: float) -> None:
        match one.status.state:
            case State.STARTING | State.RESTARTING if now >= one.start_at and self._may_start(now):
                self._start(one, now)
            case State.RUNNING:
                self._look(one, now)
            case State.STOPPING:
                self._end(one, now)

    def stop(self, now: float) -> None:
        """Let each query end after its current batch."""
        for one in self.queries:
            self.stop_one(one, now)

    def stop_one(self, one: Supervised, now: float) -> None:
        if one.status.state is State.RUNNING:
            one.status.state, one.stop_by = State.STOPPING, now + self.policy.stop_s
            one.last_batch = one.status.batch
        elif one.status.state not in ENDED | {State.STOPPING}:
            one.status.state = State.STOPPED

    def kill(self) -> None:
        """End all queries at once, even in the middle of a batch."""
        for one in self.queries:
            self.kill_one(one)

    def kill_one(self, one: Supervised) -> None:
        if one.query is not None and one.query.isActive:
            one.query.stop()
        if one.status.state not in ENDED:
            one.status.state = State.STOPPED
        one.observe(one)

    def _may_start(self, now: float) -> bool:
        """Whether another query may start its processes: many at once take longer than Spark waits for any of them."""
        busy = [one for one in self.queries if one.status.state is State.RUNNING and now < one.started_by]
        return len(busy) < self.policy.at_once

    def _start(self, one: Supervised, now: float) -> None:
        try:
            activate(self.spark)
            if one.failures:
                forget_lost_daemons(self.spark)
            writer = one.definition(self.spark).queryName(one.name)
            if self.state_dir is not None:
                writer = writer.option("checkpointLocation", os.path.join(self.state_dir, one.name))
            one.query = writer.start()
        except Exception as error:  # Spark's, of many kinds
            return self._handle_failure(one, text_of(error), now)
        one.status.state, one.started_by = State.RUNNING, now + START_S
        return None

    def _look(self, one: Supervised, now: float) -> None:
        query = one.query
        assert query is not None
        active = query.isActive
        if one.started_by and not is_starting(query):
            one.started_by = 0.0
        if take_progress(one, query):
            one.failures = 0
        if active:
            return
        error = query.exception()
        if error is None:
            one.status.state = State.FINISHED
        else:
            self._handle_failure(one, text_of(error), now)

    def _handle_failure(self, one: Supervised, details: str, now: float) -> None:
        kind, sentence = kind_of(details), sentence_of(details)
        one.failures += 1
        one.status.error = sentence
        if not kind.retriable or one.failures > self.policy.restarts:
            one.status.state = State.FAILED
            log.error("Query %s failed (%s): %s", one.name, kind.name, details)
            one.failure = QueryFailed(one.name, sentence, details)
            return
        pause = self.policy.pause_s(one.failures)
        log.warning("Query %s (%s) starts again in %.0f s: %s", one.name, kind.name, pause, sentence)
        one.status.state, one.start_at = State.RESTARTING, now + pause
        one.status.restarts += 1

    def _end(self, one: Supervised, now: float) -> None:
        """Stop a query between two batches, or in the middle of one that takes too long, which is then replayed."""
        query = one.query
        assert query is not None
        take_progress(one, query)
        busy = query.isActive and query.status["isTriggerActive"]
        if busy and one.status.batch == one.last_batch and now < one.stop_by:
            return
        query.stop()
        one.status.state = State.STOPPED


def take_progress(one: Supervised, query: StreamingQuery) -> bool:
    """Note the last progress of a query; return whether it is of a new batch."""
    last: Any = query.lastProgress
    if last is None:
        return False
    progress: Mapping[str, Any] = last if isinstance(last, dict) else json.loads(last.json)
    one.progress = progress
    return one.status.take(progress)


def run(
    definitions: Mapping[str, Definition],
    spark: SparkSession | None = None,
    *,
    state_dir: str | None = None,
    status_port: int | None = None,
    policy: Policy | None = None,
    progress: bool | None = None,
    observers: Mapping[str, Observer] | None = None,
) -> dict[str, QueryStatus]:
    """Run queries until they end, by themselves or by SIGTERM or SIGINT, and return their last states.

    `state_dir` has a checkpoint for each query under its name. `status_port` serves /metrics and /status on this
    machine. `progress` keeps a status line on stderr, by default if that is a terminal. `observers` are called with
    their query several times a second.
    """
    policy = policy or Policy()
    queries = [Supervised(name, definition, QueryStatus(name)) for name, definition in definitions.items()]
    for one in queries:
        one.observe = (observers or {}).get(one.name, one.observe)
    supervisor = Supervisor(spark or session("moldau"), queries, policy, state_dir)
    statuses = {one.name: one.status for one in queries}
    page = None if status_port is None else StatusPage(statuses, status_port)
    try:
        with stopping() as signals:
            _watch(supervisor, signals, sys.stderr.isatty() if progress is None else progress)
    finally:
        supervisor.kill()
        if page is not None:
            page.close()
    return statuses


def _watch(supervisor: Supervisor, signals: list[int], progress: bool) -> None:
    shown = 0.0
    while not supervisor.ended:
        now = time.monotonic()
        if signals:
            supervisor.stop(now)
        supervisor.step(now)
        supervisor.raise_failure()
        if progress and now - shown >= LINE_S:
            shown = now
            _show(line((one.status for one in supervisor.queries), _width()))
        time.sleep(POLL_S)
    if progress:
        _show(line((one.status for one in supervisor.queries), _width()))
        sys.stderr.write("\n")


def _width() -> int:
    return os.get_terminal_size(sys.stderr.fileno()).columns - 1 if sys.stderr.isatty() else 200


def _show(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


@contextmanager
def stopping() -> Iterator[list[int]]:
    """Collect signals that ask to end; the second one has its usual effect."""
    signals: list[int] = []
    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def note(number: int, frame: object) -> None:
        signals.append(number)
        signal.signal(number, before[number])

    for number in before:
        signal.signal(number, note)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
