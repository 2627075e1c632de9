"""Sub-topologies that remember nothing: their blobs go through where they are read, without state and shuffle.

That is so where there is one input topic, no store and no punctuator: then what comes out of a record depends on this
record alone, and blobs can be worked on in any order and place. Each says where it comes from by its first offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from moldau.operators.context import UNKNOWN_TIME, Shard
from moldau.operators.record import Produced
from moldau.operators.stores.ordered import MemoryBytes

from . import blobs
from .blobs import Blob, Several
from .columns import InColumns, Lane, lanes_of
from .global_tables import GlobalTables
from .input_order import Inbox
from .levels import Schedule, ShardId
from .routing import routed
from .shards import Conveyed
from .task import Task, World


def passing_groups(conveyed: Conveyed) -> frozenset[int]:
    """Those of the first level that remember nothing."""
    schedule = conveyed.schedule
    first = schedule.levels[0] if schedule.levels else ()
    return frozenset(group for group in first if len(schedule.reads[group]) == 1 and remembers_nothing(conveyed, group))


def remembers_nothing(conveyed: Conveyed, group: int) -> bool:
    shared = GlobalTables(conveyed.schedule.plan, conveyed.execution).stores
    task = task_of(conveyed, ShardId(group, 0), [], shared)
    shard = task.shard
    return not task.stores and not shard.by_stream_time.queue.items and not shard.by_wall_clock.queue.items


def wall_clock_interval(conveyed: Conveyed) -> int | None:
    """How often some operator wants to know the wall-clock time, in milliseconds; None if none does."""
    shared = GlobalTables(conveyed.schedule.plan, conveyed.execution).stores
    tasks = [task_of(conveyed, ShardId(group, 0), [], shared) for group in conveyed.schedule.groups]
    queues = [task.shard.by_wall_clock for task in tasks]
    return min((one.interval for queue in queues for one in queue.queue.items), default=None)


def task_of(conveyed: Conveyed, shard: ShardId, written: list[Produced | Several], shared: Mapping[str, Any]) -> Task:
    """A task in memory."""
    plan = conveyed.schedule.plan
    names = set(plan.groups[shard.group])
    world = World(lambda spec: MemoryBytes(), written.append, lambda spec: None, conveyed.partitions)
    nodes = [node for node in plan.nodes if node.name in names]
    state = Shard(plan.application_id or "", str(shard))
    return Task(plan, nodes, state, world, conveyed.execution, shared)


class Passing:
    """The tasks of one worker, each made once. `shared` are the stores of global tables."""

    def __init__(self, conveyed: Conveyed, shared: Mapping[str, Any]) -> None:
        self.conveyed, self.shared = conveyed, shared
        self.tasks: dict[ShardId, tuple[Task, list[Produced | Several]]] = {}
        self.lanes: dict[int, dict[str, Lane] | None] = {}  # of each task that has some

    @property
    def schedule(self) -> Schedule:
        return self.conveyed.schedule

    def through(self, blob: Blob) -> Iterator[Blob]:
        shard = self.schedule.shard_of(blob.topic, blob.partition)
        if shard not in self.tasks:
            written: list[Produced | Several] = []
            task = task_of(self.conveyed, shard, written, self.shared)
            self.tasks[shard], self.lanes[id(task)] = (task, written), lanes_of(task)
        task, written = self.tasks[shard]
        if not self.in_columns(task, written, blob):
            written.clear()
            inbox = Inbox(task.read, UNKNOWN_TIME)
            inbox.waiting.extend(blobs.raw_records(blob))
            while inbox.advance():
                task.feed(*inbox.take())
        for out in routed(self.schedule, shard, written, blob.more):
            yield replace(out, sequence=blob.sequence)
        written.clear()

    def in_columns(self, task: Task, written: list[Produced | Several], blob: Blob) -> bool:
        """Whether the blob was done so; if anything went wrong, it is to be done record by record."""
        lanes = self.lanes.get(id(task))
        if not lanes:
            return False
        try:
            InColumns(task, lanes, blob.partition, written.append).take([blob])
        except Exception:  # whatever it was: it comes again, and says which record it was
            self.lanes[id(task)] = None
            return False
        return True
