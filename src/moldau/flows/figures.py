"""Figures of a worker: what its flows and lanes have done and how much memory it takes, for pages and metrics.

They are one record for each worker, in the topic of states, under a key that is no name of a flow. A worker writes them
when something has changed, and not more often than every few seconds; one that has nothing to do writes nothing.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.client import Client, Record, build
from moldau.flows.states import READ_S, TOPIC, FlowState
from moldau.flows.states import decode as decode_state
from moldau.flows.topics import replay
from moldau.plan.lane.crumbs import is_alive
from moldau.spark.progress import position
from moldau.topicstore import append

if TYPE_CHECKING:
    from moldau.spark.runner import Supervised

KEY = "worker/"  # no name of a flow has a slash
INTERVAL_S = 5.0
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a flow has done since its worker has it."""

    rows: int = 0
    batches: int = 0
    errors: int = 0
    lag: int | None = None
    seconds: float = 0.0  # in batches
    batch_ms: int = 0  # the last one
    rows_per_s: float = 0.0  # since the figures before


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """A lane: the flows that it carries, and what a batch takes."""

    flows: tuple[str, ...] = ()
    batches: int = 0
    batch_ms: int = 0
    seconds: float = 0.0  # in batches
    load: float = 0.0  # the part of the time that it was in batches, since the figures before


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """A worker at `at_ms`. `logs` is the folder with a log for each flow, on its machine."""

    name: str
    host: str
    pid: int
    logs: str
    at_ms: int = 0
    memory_bytes: int = 0
    lanes: Mapping[str, LaneFigures] = field(default_factory=dict[str, LaneFigures])
    flows: Mapping[str, Figures] = field(default_factory=dict[str, Figures])


class Meter:
    """Counts what the query of a flow has done, by the positions that it reports: Spark's own rows are blobs here."""

    def __init__(self) -> None:
        self.done = Figures()
        self._batch: int | None = None
        self._read: int | None = None  # all offsets that it has read up to, in sum

    def look(self, query: Supervised | None) -> None:
        """Take in the last batch of a query, if it is a new one."""
        status, progress = (None, None) if query is None else (query.status, query.progress)
        if status is None or progress is None or status.batch == self._batch:
            return
        begin, end = offsets_of(progress)
        before = begin if self._read is None else self._read
        took_ms = status.durations_ms.get("triggerExecution", 0)
        self.done = replace(
            self.done,
            rows=self.done.rows + max(0, end - before),
            batches=self.done.batches + 1,
            lag=status.lag,
            seconds=round(self.done.seconds + took_ms / 1000, 3),
            batch_ms=took_ms,
        )
        self._batch, self._read = status.batch, end

    def begin_anew(self) -> None:
        """Another query comes: what was done still counts."""
        self._batch = self._read = None

    def fail(self) -> None:
        self.done = replace(self.done, errors=self.done.errors + 1)


def offsets_of(progress: Mapping[str, Any]) -> tuple[int, int]:
    """Return the sums of the offsets at which a batch has begun and ended."""
    begin = end = 0
    for source in progress.get("sources", ()):
        first, last = position(source, "startOffset"), position(source, "endOffset")
        if last is not None:
            end += sum(last.offsets.values())
            begin += sum(last.offsets.values() if first is None else first.offsets.values())
    return begin, end


class Teller:
    """Decides when the figures of a worker are worth a record."""

    def __init__(self, name: str, logs: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._base = WorkerFigures(name, socket.gethostname(), os.getpid(), str(logs))
        self._said: WorkerFigures | None = None
        self._said_at = float("-inf")
        self._clock = clock

    def news(self, lanes: Mapping[str, LaneFigures], flows: Mapping[str, Figures]) -> WorkerFigures | None:
        """Return what to write now; None if nothing has changed, or if the last record is too recent."""
        now = self._clock()
        if now - self._said_at < INTERVAL_S:
            return None
        before = self._base if self._said is None else self._said
        rated = {name: self._rated(one, before.flows.get(name), now) for name, one in flows.items()}
        loaded = {name: self._loaded(one, before.lanes.get(name), now) for name, one in lanes.items()}
        made = replace(self._base, lanes=loaded, flows=rated)
        if made == self._said:
            return None
        self._said, self._said_at = made, now
        return replace(made, at_ms=time.time_ns() // 1_000_000, memory_bytes=memory_bytes(os.getpid()))

    def _rated(self, one: Figures, before: Figures | None, now: float) -> Figures:
        if before is None:
            return one
        return replace(one, rows_per_s=round(max(0, one.rows - before.rows) / (now - self._said_at), 1))

    def _loaded(self, one: LaneFigures, before: LaneFigures | None, now: float) -> LaneFigures:
        if before is None:
            return one
        return replace(one, load=round(min(1.0, max(0.0, one.seconds - before.seconds) / (now - self._said_at)), 2))


def memory_bytes(pid: int) -> int:
    """Return the resident memory of a process and of all that it has started, Java and Python; 0 without /proc."""
    total = 0
    try:
        total = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_SIZE
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(memory_bytes(int(child)) for child in (task / "children").read_text().split())
    except (OSError, ValueError, IndexError):
        return total
    return total


def encode(row: WorkerFigures) -> tuple[bytes, bytes]:
    document = asdict(row)
    del document["name"]
    return f"{KEY}{row.name}".encode(), json.dumps(document, separators=(",", ":")).encode()


def decode(record: Record) -> WorkerFigures:
    document: dict[str, Any] = json.loads(bytes(record.value or b"{}"))
    return WorkerFigures(
        bytes(record.key or b"").decode().removeprefix(KEY),
        str(document["host"]),
        int(document["pid"]),
        str(document["logs"]),
        int(document["at_ms"]),
        int(document["memory_bytes"]),
        {str(name): LaneFigures(**{**one, "flows": tuple(one["flows"])}) for name, one in document["lanes"].items()},
        {str(name): Figures(**one) for name, one in document["flows"].items()},
    )


def write(client: Client, row: WorkerFigures) -> None:
    key, value = encode(row)
    append(client, TOPIC, 0, build([Record(0, row.at_ms, key, value)]), READ_S)


def forget(client: Client, name: str) -> None:
    append(client, TOPIC, 0, build([Record(0, 0, f"{KEY}{name}".encode(), None)]), READ_S)


def forget_predecessors(client: Client, name: str, logs: Path) -> None:
    """Let go of what workers said that wrote to the same folder and are gone."""
    here = socket.gethostname(), str(logs)
    for one in read(client).values():
        if (one.host, one.logs) == here and one.name != name and not is_alive(one.pid):
            forget(client, one.name)


def read(client: Client) -> dict[str, WorkerFigures]:
    """Return the last figures of each worker, also of those that are gone."""
    return read_all(client)[1]


def read_all(client: Client) -> tuple[dict[str, FlowState], dict[str, WorkerFigures]]:
    """Return the last states of flows and the last figures of workers."""
    states: dict[str, FlowState] = {}
    workers: dict[str, WorkerFigures] = {}

    def apply(record: Record) -> None:
        key = bytes(record.key or b"").decode()
        of_worker = key.startswith(KEY)
        found: dict[str, Any] = workers if of_worker else states
        found.pop(name := key.removeprefix(KEY), None)
        if record.value is not None:
            found[name] = decode(record) if of_worker else decode_state(record)

    replay(client, TOPIC, apply)
    return states, workers
