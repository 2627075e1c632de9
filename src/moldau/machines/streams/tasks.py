"""Tasks of a streams group (KIP-1071): a subtopology and a partition, in one of three roles.

An active task processes; a standby keeps a copy of its state on another process; a warm-up builds one before the task
moves there. What members own, and what they are to have, is kept by role and subtopology.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Any

from moldau.machines.reconciling import Owned, Wanted


class Role(IntEnum):
    ACTIVE = 0
    STANDBY = 1
    WARMUP = 2


Kind = tuple[Role, str]  # a role and a subtopology
Tasks = Wanted[Kind]
OwnedTasks = Owned[Kind]
NO_TASKS: Tasks = {}
FIELDS = {Role.ACTIVE: "active_tasks", Role.STANDBY: "standby_tasks", Role.WARMUP: "warmup_tasks"}


def tasks_of(message: Any) -> Tasks:
    """Return the tasks of a request or a record, which has a field for each role."""
    return {
        (role, row.subtopology_id): frozenset(row.partitions)
        for role, field in FIELDS.items()
        for row in getattr(message, field)
        if row.partitions
    }


def task_rows(tasks: Mapping[Kind, Collection[int]], row: Any) -> dict[str, list[Any]]:
    """Return the same as fields of a message, in the order of subtopologies; `row` is the class of what they hold."""
    fields: dict[str, list[Any]] = {field: [] for field in FIELDS.values()}
    for role, subtopology in sorted(tasks):
        fields[FIELDS[role]].append(row(subtopology, sorted(tasks[role, subtopology])))
    return fields
