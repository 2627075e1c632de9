"""An engine in the worker's own process: a thread for each task.

A source's thread polls, transforms, converts and produces; what is in flight is bounded by the producer's queue. With
exactly-once, the records of a poll (or of an interval) and their offsets are one transaction: a successor fences it
before it reads the offsets. Without, offsets are written after the records before them were acknowledged.

A sink's thread consumes in the group `connect-NAME`, converts, transforms and puts, and commits what the connector
says is durable.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from moldau.connect import clients
from moldau.connect.connector import SINK
from moldau.connect.engine import FAILED, PAUSED, RUNNING, TaskSpec
from moldau.connect.handling import trace_of
from moldau.connect.metrics import Figures
from moldau.connect.mirror import Mirror, Pair
from moldau.connect.offset_topic import OffsetState

log = logging.getLogger(__name__)
REST_S = 0.5  # between looks whether a paused task may go on


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all tasks of a worker share. `uses` notes that a task reads or writes a topic."""

    worker: Mapping[str, str]
    flush_interval_s: float
    timeout_s: float
    offsets: Offsets
    uses: Callable[[str, int, str], None]
    creates_topics: bool = True
    figures: dict[tuple[str, int], Figures] = field(default_factory=dict)


class Offsets(Protocol):
    """The offsets of all sources. `sync` reads everything that was committed so far."""

    @property
    def topic(self) -> str: ...
    def sync(self, timeout_s: float) -> None: ...
    def offset(self, connector: str, partition: Mapping[str, Any]) -> Mapping[str, Any] | None: ...
    def of(self, connector: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]: ...
    def encode(self, connector: str, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> Pair: ...
    def put(self, rows: Sequence[Pair], send: Callable[..., None]) -> None:
        """Write records after those that a task has sent: with its producer, or elsewhere."""
        ...

    def write(self, rows: Sequence[Pair], timeout_s: float) -> None: ...


class OffsetStore:
    """The offsets of all sources, in a topic."""

    def __init__(self, mirror: Mirror, state: OffsetState) -> None:
        self.mirror, self.state = mirror, state

    @property
    def topic(self) -> str:
        return self.mirror.topic

    def sync(self, timeout_s: float) -> None:
        """Read everything that was committed so far."""
        self.mirror.sync(timeout_s)

    def offset(self, connector: str, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.mirror.look(lambda: self.state.offset(connector, partition))

    def of(self, connector: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        return self.mirror.look(lambda: self.state.of(connector))

    def put(self, rows: Sequence[Pair], send: Callable[..., None]) -> None:
        """Write records with a task's own producer, in its transaction if it has one."""
        for key, value in rows:
            send(self.topic, None, key, value)

    def write(self, rows: Sequence[Pair], timeout_s: float) -> None:
        self.mirror.write(rows, timeout_s)

    def encode(self, connector: str, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> Pair:
        return self.mirror.look(lambda: self.state.encode(connector, partition, offset))


class Threads:
    """The engine."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def offset(self, connector: str, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return how far a source was read, as of now."""
        self._around.offsets.sync(self._around.timeout_s)
        return self._around.offsets.offset(connector, partition)

    def start(self, spec: TaskSpec, report: Callable[[str, str | None], None], *, is_paused: bool) -> Thread:
        from moldau.connect.sink_task import run_sink
        from moldau.connect.source_task import run_source

        run = run_sink if spec.plugin.kind == SINK else run_source
        started = Thread(spec, self._around, run, report, is_paused=is_paused)
        started.begin()
        return started

    def close(self) -> None:
        """There is nothing left once the tasks have ended."""


class Thread:
    """A task in a thread. `run` gets this object: it asks `may_go_on` between two pieces of work."""

    def __init__(
        self,
        spec: TaskSpec,
        around: Surroundings,
        run: Callable[[Thread], None],
        report: Callable[[str, str | None], None],
        *,
        is_paused: bool,
    ) -> None:
        self.spec, self.around = spec, around
        self.figures = around.figures.setdefault((spec.connector, spec.task), Figures())
        self.stopped = threading.Event()
        self._run, self._report = run, report
        self._is_paused, self._woken = is_paused, threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"task {spec.name}", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self._woken.set()

    def stop(self) -> None:
        self.stopped.set()
        self._woken.set()

    def abandon(self) -> None:
        """A source's successor fences it, a sink's group goes on without it; all that is left is to keep silent."""
        self.stop()
        self._report = lambda _state, _trace: None

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def running(self) -> None:
        self._report(PAUSED if self._is_paused else RUNNING, None)

    def may_go_on(self, before_rest: Callable[[], None], resting: Callable[[], None] = lambda: None) -> bool:
        """Tell whether to do more work; rest first while the task is paused."""
        if self._is_paused and not self.stopped.is_set():
            before_rest()
            self._report(PAUSED, None)
            while self._is_paused and not self.stopped.is_set():
                resting()
                self._woken.wait(REST_S)
                self._woken.clear()
            if not self.stopped.is_set():
                self._report(RUNNING, None)
        return not self.stopped.is_set()

    def _live(self) -> None:
        failure = self._outcome()
        if failure is not None:
            log.warning("task %s failed: %s", self.spec.name, failure)
            self._report(FAILED, trace_of(failure))

    def _outcome(self) -> BaseException | None:
        """Run to the end; return what the connector's code raised, be it an exit: the task alone fails."""
        try:
            self._run(self)
        except BaseException as error:
            return error
        return None


class Due:
    """Whether an interval has passed since the last time."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s, self._last = interval_s, time.monotonic()

    def __bool__(self) -> bool:
        return time.monotonic() - self._last >= self._interval_s

    def done(self) -> None:
        self._last = time.monotonic()


class Seldom:
    """Whether to say something now: not if the same was said a moment ago. It remembers a few texts."""

    def __init__(self, interval_s: float = 10.0, most: int = 100) -> None:
        self._interval_s, self._most = interval_s, most
        self._said: dict[str, float] = {}

    def __call__(self, text: str) -> bool:
        now = time.monotonic()
        if now - self._said.get(text, -self._interval_s) < self._interval_s:
            return False
        self._said.pop(text, None)
        if len(self._said) >= self._most:
            self._said.pop(next(iter(self._said)))
        self._said[text] = now
        return True


def producer_settings(task: Thread) -> dict[str, str]:
    spec = task.spec
    return clients.producer(task.around.worker, spec.config, f"connector-producer-{spec.name}")


def consumer_settings(task: Thread) -> dict[str, str]:
    spec = task.spec
    group, client_id = f"connect-{spec.connector}", f"connector-consumer-{spec.name}"
    return clients.consumer(task.around.worker, spec.config, client_id, group)
