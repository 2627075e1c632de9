"""Global tables: complete in each process, filled by a task of their own, read by all shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.operators.context import UNKNOWN_TIME, Shard
from moldau.operators.record import Raw
from moldau.operators.stores.ordered import MemoryBytes
from moldau.operators.topics import Collect

from .plan import Plan
from .task import Execution, Task, World

TASK = "-1_-1"  # as Kafka names it


class GlobalTables:
    """The global tables of a plan. `collect` gets what is written while they are filled: dead letters."""

    def __init__(self, plan: Plan, execution: Execution, collect: Collect = lambda letter: None) -> None:
        world = World(lambda spec: MemoryBytes(), collect, lambda spec: None)
        self._task = Task(plan, plan.global_nodes, Shard(plan.application_id or "", TASK), world, execution)

    @property
    def stores(self) -> Mapping[str, Any]:
        return self._task.stores

    def take(self, records: Iterable[Raw]) -> None:
        task = self._task
        for raw in records:
            record = task.read(raw, UNKNOWN_TIME)
            if record is not None:
                task.feed(raw, record)
