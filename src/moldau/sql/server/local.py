"""The local runtime: a query runs in this process, as one task over all partitions of its topics.

Its stores and internal topics are in memory. When it starts again it reads its topics from where it began the first
time (`origins`) to have its state back; `resume` says up to where its results were written then, and are not written
again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.client import ClientError
from moldau.operators.record import Produced, Raw
from moldau.sql.errors import SqlError
from moldau.sql.lowering import application_id, build
from moldau.sql.server.topics import Checkpoints, Positions, Topics
from moldau.sql.steps import QueryPlan
from moldau.streams.builder import StreamsBuilder
from moldau.streams.driver import TopologyTestDriver

Starts = Callable[[str], Positions]
SAVE_S = 1.0  # between two checkpoints of a query
STEP_S, STEP_BYTES = 0.5, 8 << 20  # after which others have their turn
APPEND_BYTES = 1 << 20  # what is written at a time
log = logging.getLogger(__name__)


@dataclass(slots=True)
class LocalQuery:
    """A running topology. `step` reads what is there, and returns what is to be written to topics."""

    builder: StreamsBuilder
    topics: Topics
    start: Starts
    origins: dict[str, Positions] = field(default_factory=dict)
    resume: dict[str, Positions] = field(default_factory=dict)
    paused: bool = False
    error: str | None = None
    failed_ms: int = 0
    rows: int = 0
    saved_at: float = 0.0
    saved: dict[str, Positions] = field(default_factory=dict)
    closed: bool = False
    unsent: list[Produced] = field(default_factory=list)  # results that are not in their topics yet
    lock: threading.Lock = field(default_factory=threading.Lock)  # held while it works
    plan: QueryPlan | None = None  # of a persistent query
    driver: TopologyTestDriver = field(init=False)
    positions: dict[str, Positions] = field(init=False)
    internal: str = field(init=False)

    def __post_init__(self) -> None:
        self.driver = TopologyTestDriver(self.builder, partitions=lambda topic: max(1, self.topics.partitions(topic)))
        self.internal = f"{self.driver.plan.application_id}-"
        read = [topic for topic in self.driver.task.readers if not topic.startswith(self.internal)]
        self.origins = {topic: dict(self.origins.get(topic) or self.start(topic)) for topic in read}
        self.positions = {topic: dict(origin) for topic, origin in self.origins.items()}

    def step(self) -> list[Produced] | None:
        """Process what is new in the topics, or the first of it; None if there is nothing."""
        raws: list[Raw] = []
        for topic, positions in self.positions.items():
            raws += self.topics.read(topic, positions)
        if not raws:
            return None
        raws.sort(key=lambda raw: raw.timestamp)  # partitions take turns by time; the order within one is kept below
        written: list[Produced] = []
        size, until = 0, time.monotonic() + STEP_S
        for raw in _in_order(raws):
            replayed = raw.offset < self.resume.get(raw.topic, {}).get(raw.partition, 0)
            self.driver.feed([raw])
            self.positions[raw.topic][raw.partition] = raw.offset + 1
            self.rows += 1
            results = self._drain()
            if not replayed:
                written += results
                size += sum(map(_size, results))
            if size > STEP_BYTES or time.monotonic() > until:
                break
        return written

    def _drain(self) -> list[Produced]:
        found: list[Produced] = []
        for topic, records in self.driver.outputs.items():
            if not topic.startswith(self.internal):
                found += records
            records.clear()
        return found

    def reached(self) -> dict[str, Positions]:
        """Return up to where the results are written: what is read again after a restart was written before."""
        return {
            topic: {part: max(at, self.resume.get(topic, {}).get(part, 0)) for part, at in parts.items()}
            for topic, parts in self.positions.items()
        }

    def fail(self, error: Exception) -> None:
        log.error("A query failed.", exc_info=error)
        self.error, self.failed_ms = f"{type(error).__name__}: {error}", int(time.time() * 1000)

    def close(self) -> None:
        with self.lock:
            self.closed = True
            self.driver.close()


class LocalQueries:
    """The persistent queries that run in this process. Only `work` lets them work, and nobody else waits for it."""

    def __init__(self, topics: Topics, registry: Any, checkpoints: Checkpoints | None, service_id: str) -> None:
        self.topics, self.registry, self.checkpoints, self.service_id = topics, registry, checkpoints, service_id
        self.running: dict[str, LocalQuery] = {}

    def follow(self, wanted: Mapping[str, QueryPlan], paused: Iterable[str]) -> None:
        """Start and stop queries so that they are those that are wanted."""
        for query_id, plan in wanted.items():
            known = self.running.get(query_id)
            if known is None or known.plan is not plan:
                if known is not None:
                    self._stop(query_id)  # it was replaced: the new one goes on where it was
                self.running[query_id] = self._started(plan, known)
            self.running[query_id].paused = query_id in paused
        for query_id in [known for known in self.running if known not in wanted]:
            self._stop(query_id)

    def _stop(self, query_id: str) -> None:
        query = self.running.pop(query_id)
        query.close()
        if not query.unsent:
            self._save(query)

    def _started(self, plan: QueryPlan, before: LocalQuery | None = None) -> LocalQuery:
        builder = build(plan, self.registry, service_id=self.service_id)
        origins: dict[str, Positions] = {} if before is None else before.origins
        done: dict[str, Positions] = {} if before is None else before.reached()
        if self.checkpoints is not None:
            origins, done = self.checkpoints.load(application_id(plan, self.service_id))
        starts = {topic: dict(enumerate(offsets)) for topic, offsets in plan.run.starts}
        start: Starts = lambda topic: starts.get(topic) or self.topics.starts(topic)  # noqa: E731
        unsent = [] if before is None else before.unsent
        query = LocalQuery(builder, self.topics, start, origins, done, plan=plan, unsent=unsent)
        if self.checkpoints is not None and not done:
            self._save(query)
        return query

    def work(self) -> bool:
        """Let every query process what is new in its topics; tell whether there was anything."""
        return True in [self._let_work(query) for query in list(self.running.values())]

    def _let_work(self, query: LocalQuery) -> bool:
        with query.lock:
            self._send(query)  # what an error of Kafka has left
            written = _stepped(query)
            if written is not None:
                query.unsent += written
                self._send(query)
            if time.monotonic() - query.saved_at > SAVE_S and query.saved != query.reached():
                self._save(query)
        return written is not None

    def _send(self, query: LocalQuery) -> None:
        """Write results to their topics. What an error keeps back is written the next time."""
        while query.unsent:
            size = count = 0
            while count < len(query.unsent) and (count == 0 or size + _size(query.unsent[count]) <= APPEND_BYTES):
                size += _size(query.unsent[count])
                count += 1
            try:
                self.topics.append(query.unsent[:count])
            except SqlError as error:  # for good: the topic is gone, or a record is too large for it
                query.fail(error)
                query.unsent.clear()
                return
            del query.unsent[:count]

    def _save(self, query: LocalQuery) -> None:
        """Note how far a query has come; what it reads again after a restart is not written again."""
        query.saved_at = time.monotonic()
        if self.checkpoints is not None and query.error is None:
            query.saved = query.reached()
            self.checkpoints.save(str(query.driver.plan.application_id), query.origins, query.saved)


def _stepped(query: LocalQuery) -> list[Produced] | None:
    """Let a query go on. One that fails stops alone, and its state says so."""
    if query.closed or query.paused or query.error is not None:
        return None
    try:
        return query.step()
    except ClientError:
        raise
    except Exception as error:  # a function of a user may raise anything
        query.fail(error)
        return None


def _size(record: Produced) -> int:
    return len(record.key or b"") + len(record.value or b"")


def _in_order(raws: list[Raw]) -> list[Raw]:
    """Keep each partition in the order of its offsets, at the places that its records have by time."""
    queues: dict[tuple[str, int], list[Raw]] = {}
    for raw in raws:
        queues.setdefault((raw.topic, raw.partition), []).append(raw)
    orders: dict[tuple[str, int], Any] = {
        place: iter(sorted(queue, key=lambda raw: raw.offset)) for place, queue in queues.items()
    }
    return [next(orders[raw.topic, raw.partition]) for raw in raws]
