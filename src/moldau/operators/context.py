"""Operators, and the context that each of them gets.

A shard is what Kafka Streams calls a task. `Shard` holds what its operators share. The runner (the test driver, a level
of the conveyor) sets its times and its position before each record, so that operators need no clock and no input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .durations import Duration, milliseconds
from .errors import Failure, Stage
from .punctuation import Cancellable, Punctuators
from .record import Raw, Record

UNKNOWN_TIME = -1
Kind = Literal["stream_time", "wall_clock", "wall_clock_time"]  # the last two are the same


class TopologyError(ValueError):
    """A topology that is not valid: one sentence that names the node and says what to do."""


class Operator(Protocol):
    """An operator. The factory of its node makes an instance for each shard."""

    def init(self, context: Context, /) -> None: ...

    def process(self, record: Record, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Metadata:
    """The position at which the current record was read."""

    topic: str
    partition: int
    offset: int


@dataclass(slots=True)
class Shard:
    """What the operators of a shard share. `source` is None in punctuators, which have no record."""

    application_id: str = ""
    id: str = "0_0"
    system_time: int = 0  # of the last tick
    stream_time: int = UNKNOWN_TIME
    source: Raw | None = None  # the record of a topic that is being processed
    record: Record = field(default_factory=lambda: Record(None, None, UNKNOWN_TIME))  # the stores' cause
    stores: dict[str, Any] = field(default_factory=dict)
    dropped: dict[tuple[str, str], int] = field(default_factory=dict)  # (node, reason) -> how many
    by_stream_time: Punctuators = field(default_factory=Punctuators)
    by_wall_clock: Punctuators = field(default_factory=Punctuators)


class Context:
    """What one operator can use.

    `forward(record, child=None)` passes a record to all children, or to the one of that name. `emit(record)` passes it
    to all children and is faster: if there is one child, it is that child's entry itself.
    """

    __slots__ = ("_allowed", "_shard", "emit", "forward", "name", "settings")

    def __init__(self, name: str, shard: Shard, allowed: frozenset[str], settings: Mapping[str, Any]) -> None:
        self.name = name
        self.settings = settings
        self._shard = shard
        self._allowed = allowed
        self.emit: Callable[[Record], None] = _nowhere
        self.forward: Callable[..., None] = _nowhere

    def store(self, name: str) -> Any:
        if name not in self._allowed:
            known = f"stores=[{name!r}]" if name in self._shard.stores else "add_state_store() first"
            raise TopologyError(f"{self.name} has no access to the store {name!r}: it needs {known}")
        return self._shard.stores[name]

    @property
    def stream_time(self) -> int:
        return self._shard.stream_time

    @property
    def system_time(self) -> int:
        return self._shard.system_time

    @property
    def metadata(self) -> Metadata | None:
        source = self._shard.source
        return None if source is None else Metadata(source.topic, source.partition, source.offset)

    @property
    def source(self) -> Raw | None:
        """The record of a topic that is being processed; None in punctuators."""
        return self._shard.source

    @contextmanager
    def standing_at(self, source: Raw | None) -> Iterator[None]:
        """Set the source while a record that was held back is forwarded."""
        before, self._shard.source = self._shard.source, source
        try:
            yield
        finally:
            self._shard.source = before

    @property
    def timestamp(self) -> int:
        """The time of the record that is being processed."""
        return self._shard.record.timestamp

    @contextmanager
    def at_time(self, timestamp: int) -> Iterator[None]:
        """Set the time while a value of that time is looked up."""
        before, self._shard.record = self._shard.record, Record(None, None, timestamp)
        try:
            yield
        finally:
            self._shard.record = before

    @property
    def application_id(self) -> str:
        return self._shard.application_id

    @property
    def task_id(self) -> str:
        return self._shard.id

    def schedule(
        self, interval: Duration, kind: Kind, callback: Callable[[int], None], start: int | None = None
    ) -> Cancellable:
        """Call back with the time every interval: "1 minute", milliseconds, a timedelta. Stream time counts from 0, so
        the first call comes with the first record; wall-clock time counts from now, or from `start`.
        """
        interval_ms = milliseconds(interval, f"{self.name}: the interval of a punctuator")
        if interval_ms <= 0:
            raise ValueError(f"{self.name}: the interval of a punctuator must be at least 1 ms, not {interval}")
        if not callable(callback):
            raise ValueError(f"{self.name}: a punctuator is a function of the time, not {callback!r}")
        if kind == "stream_time":
            return self._shard.by_stream_time.add(start or 0, interval_ms, self.name, callback)
        if kind in ("wall_clock", "wall_clock_time"):
            now = self._shard.system_time
            first = now + interval_ms if start is None else anchored(start, interval_ms, now)
            return self._shard.by_wall_clock.add(first, interval_ms, self.name, callback)
        raise ValueError(f"{self.name}: a punctuator goes by 'stream_time' or by 'wall_clock', not by {kind!r}")

    def dropped(self, why: str) -> None:
        """Count a dropped record, as Kafka's metric dropped-records does."""
        counts = self._shard.dropped
        counts[self.name, why] = counts.get((self.name, why), 0) + 1

    def failure(self, stage: Stage, error: BaseException, record: Record | None, topic: str | None = None) -> Failure:
        return Failure(stage, self.name, self._shard.id, error, self._shard.source, record, topic)

    def commit(self) -> None:
        """Request a commit. This does nothing: the driver commits after each record, Spark after each batch, and a
        failure in between repeats all of it.
        """


def anchored(start: int, interval_ms: int, now: int) -> int:
    """Return the first of start, start + interval, ... that is not in the past."""
    return start if start >= now else start + -((start - now) // interval_ms) * interval_ms


def _nowhere(record: Record, child: str | None = None) -> None:
    """Forward nothing: the node has no children."""
