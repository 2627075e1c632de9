"""Sub-topologies without state: their blobs are processed where they are read, without a shuffle.

These have one input topic, no store and no punctuator. The output of a record then depends on this record alone, so
blobs can be processed in any order and place. The origin of an output blob is the first offset of its input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from moldau.operators.context import UNKNOWN_TIME, Shard
from moldau.operators.record import Produced
from moldau.operators.stores.ordered import MemoryBytes
from moldau.plan import blobs
from moldau.plan.blobs import Blob, Several
from moldau.plan.columns import InColumns, Lane, lanes_of
from moldau.plan.fallbacks import FALLBACKS, Fallbacks
from moldau.plan.global_tables import GlobalTables
from moldau.plan.input_order import Inbox
from moldau.plan.levels import ShardId
from moldau.plan.routing import routed
from moldau.plan.shards import Conveyed
from moldau.plan.task import Task, World


def passing_groups(conveyed: Conveyed) -> frozenset[int]:
    """Return the sub-topologies of the first level that have no state."""
    if conveyed.known is not None:
        return conveyed.known.passed
    schedule = conveyed.schedule
    first = schedule.levels[0] if schedule.levels else ()
    return frozenset(group for group in first if len(schedule.reads[group]) == 1 and is_stateless(conveyed, group))


def is_stateless(conveyed: Conveyed, group: int) -> bool:
    shared = GlobalTables(conveyed.schedule.plan, conveyed.execution).stores
    task = task_of(conveyed, ShardId(group, 0), [], shared)
    shard = task.shard
    return not task.stores and not shard.by_stream_time.queue.items and not shard.by_wall_clock.queue.items


def wall_clock_interval(conveyed: Conveyed) -> int | None:
    """Return the shortest interval of wall-clock punctuators in milliseconds; None if there are none."""
    if conveyed.known is not None:
        return conveyed.known.tick_ms
    shared = GlobalTables(conveyed.schedule.plan, conveyed.execution).stores
    tasks = [task_of(conveyed, ShardId(group, 0), [], shared) for group in conveyed.schedule.groups]
    queues = [task.shard.by_wall_clock for task in tasks]
    return min((one.interval for queue in queues for one in queue.queue.items), default=None)


def task_of(conveyed: Conveyed, shard: ShardId, written: list[Produced | Several], shared: Mapping[str, Any]) -> Task:
    """Make a task in memory."""
    plan = conveyed.schedule.plan
    world = World(lambda spec: MemoryBytes(), written.append, lambda spec: None, conveyed.partitions)
    state = Shard(plan.application_id or "", str(shard))
    return Task(plan, plan.members(shard.group), state, world, conveyed.execution, shared)


class Passing:
    """The tasks of one worker. `shared` are the stores of global tables."""

    def __init__(
        self, conveyed: Conveyed, shared: Mapping[str, Any], fallbacks: Fallbacks = FALLBACKS, in_rows: bool = False
    ) -> None:
        """With `in_rows`, nothing is processed in columns."""
        self.conveyed, self.shared, self.fallbacks, self.in_rows = conveyed, shared, fallbacks, in_rows
        self.tasks: dict[ShardId, Alive] = {}

    def through(self, blob: Blob) -> Iterator[Blob]:
        schedule = self.conveyed.schedule
        shard = schedule.shard_of(blob.topic, blob.partition)
        for out in routed(schedule, shard, self._written(shard, blob), blob.more):
            yield replace(out, sequence=blob.sequence)

    def _written(self, shard: ShardId, blob: Blob) -> list[Produced | Several]:
        """Return the output of a blob: in columns, or record by record if that is impossible or has failed."""
        start, error, alive = self.conveyed.start, None, self._alive(shard)
        if alive.lanes and not self.fallbacks.is_paused(start, shard):
            error = attempt(alive, alive.lanes, blob)
            if error is None:
                self.fallbacks.succeeded(start, shard)
                return alive.take_written()
            del self.tasks[shard]  # it has seen a part of the blob
            alive = self._alive(shard)
        inbox = Inbox(alive.task.read, UNKNOWN_TIME)
        inbox.waiting.extend(blobs.raw_records(blob))
        while inbox.advance():
            alive.task.feed(*inbox.take())
        if alive.lanes:
            self.fallbacks.fell_back(start, shard, error)
        return alive.take_written()

    def _alive(self, shard: ShardId) -> Alive:
        found = self.tasks.get(shard)
        if found is None:
            written: list[Produced | Several] = []
            task = task_of(self.conveyed, shard, written, self.shared)
            found = self.tasks[shard] = Alive(task, written, None if self.in_rows else lanes_of(task))
        return found


@dataclass(slots=True)
class Alive:
    """A task, what it has written, and its lanes, if it can take columns."""

    task: Task
    written: list[Produced | Several]
    lanes: dict[str, Lane] | None

    def take_written(self) -> list[Produced | Several]:
        taken = self.written[:]
        self.written.clear()
        return taken


def attempt(alive: Alive, lanes: dict[str, Lane], blob: Blob) -> Exception | None:
    """Process a blob in columns, and return an error instead of raising it: record by record it comes again."""
    try:
        InColumns(alive.task, lanes, blob.partition, alive.written.append).take([blob])
    except Exception as error:
        return error.with_traceback(None)
    return None
