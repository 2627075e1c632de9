"""Who of a streams group's members should run which task: sticky and balanced, as Kafka's assignor `sticky` does it.

Tasks stay where they are, then go to where a copy of their state is, as long as nobody gets more than its share; what
is left goes to the process with the least load, and there to the member with the fewest tasks. Standbys go the same
way, never to a process that has the task already; where there are too few processes there are fewer copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace

from moldau.machines.streams.configuring import Subtopology
from moldau.machines.streams.tasks import Kind, Role, Tasks

Task = tuple[str, int]  # subtopology and partition


@dataclass(frozen=True, slots=True)
class Worker:
    """A member as the assignor sees it: where it runs, and what it was to have until now."""

    id: str
    process_id: str
    has: Tasks


@dataclass(slots=True)
class Process:
    """A process, whose members share its disk: a task is there once, in whatever role."""

    members: dict[str, int] = field(default_factory=dict[str, int])  # each with the number of its tasks
    tasks: set[Task] = field(default_factory=set[Task])
    count: int = 0

    @property
    def load(self) -> float:
        return self.count / len(self.members)

    def least_loaded(self) -> str:
        return min(self.members, key=self.members.__getitem__)


@dataclass(slots=True)
class Share:
    """How many tasks a member gets at most; those who have their share leave the rest to the others."""

    tasks: int
    members: int

    @property
    def size(self) -> int:
        return -(-self.tasks // self.members) if self.members else 0

    def filled(self, count: int) -> None:
        if count == self.size:
            self.members -= 1
            self.tasks -= count


class Assignment:
    """An assignment in the making."""

    def __init__(self, workers: Sequence[Worker], active: int, total: int) -> None:
        self.processes: dict[str, Process] = {}
        self.home: dict[str, Process] = {}
        self.result: dict[str, dict[Kind, set[int]]] = {}
        self.was_active: dict[Task, str] = {}
        self.was_standby: dict[Task, list[str]] = {}
        self.active, self.total = Share(active, len(workers)), Share(total, len(workers))
        for worker in workers:
            self.home[worker.id] = process = self.processes.setdefault(worker.process_id, Process())
            process.members[worker.id] = 0
            self.result[worker.id] = {}
            self.remember(worker)

    def remember(self, worker: Worker) -> None:
        for (role, subtopology), partitions in worker.has.items():
            for task in ((subtopology, index) for index in sorted(partitions)):
                if role == Role.ACTIVE:
                    self.was_active[task] = worker.id
                elif role == Role.STANDBY:
                    self.was_standby.setdefault(task, []).append(worker.id)

    def give(self, task: Task, member: str, role: Role) -> None:
        process = self.home[member]
        process.members[member] += 1
        process.count += 1
        process.tasks.add(task)
        self.result[member].setdefault((role, task[0]), set()).add(task[1])
        if role == Role.ACTIVE:
            self.active.filled(process.members[member])
        self.total.filled(process.members[member])

    def has_room(self, member: str, role: Role) -> bool:
        share = self.active if role == Role.ACTIVE else self.total
        return self.home[member].members[member] < share.size

    def former_standby(self, task: Task, role: Role) -> str | None:
        """Of those who had a copy the one with the least load; for a new copy, where the task is not yet."""
        best: str | None = None
        for member in self.was_standby.get(task, ()):
            if role == Role.STANDBY and task in self.home[member].tasks:
                continue
            if best is None or (
                self.home[member].load < self.home[best].load
                and self.home[member].members[member] < self.home[best].members[best]
            ):
                best = member
        return best

    def by_load(self) -> list[tuple[float, str]]:
        heap = [(process.load, name) for name, process in self.processes.items()]
        heapify(heap)
        return heap

    # Active tasks.

    def assign_active(self, tasks: Sequence[Task]) -> None:
        left = [task for task in sorted(tasks, key=partition_first) if not self.give_back(task, Role.ACTIVE)]
        left = [task for task in left if not self.give_to_copy(task, Role.ACTIVE)]
        heap = self.by_load()
        for task in sorted(left):
            process = self.processes[heap[0][1]]
            self.give(task, process.least_loaded(), Role.ACTIVE)
            heapreplace(heap, (process.load, heap[0][1]))

    def give_back(self, task: Task, role: Role) -> bool:
        """To who has run it, unless it has its share."""
        member = self.was_active.get(task)
        if member is None or not self.has_room(member, role):
            return False
        if role == Role.STANDBY and task in self.home[member].tasks:
            return False
        self.give(task, member, role)
        return True

    def give_to_copy(self, task: Task, role: Role) -> bool:
        member = self.former_standby(task, role)
        if member is None or not self.has_room(member, role):
            return False
        self.give(task, member, role)
        return True

    # Standby tasks.

    def assign_standby(self, tasks: Sequence[Task], copies: int) -> None:
        left: list[tuple[Task, int]] = []
        for task in sorted(tasks, key=partition_first, reverse=True):
            for number in range(copies):
                if not self.give_back(task, Role.STANDBY) and not self.give_to_copy(task, Role.STANDBY):
                    left.append((task, copies - number))
                    break
        for task, number in sorted(left, reverse=True):
            for name in self.least_loaded_without(task, number):
                self.give(task, self.processes[name].least_loaded(), Role.STANDBY)

    def least_loaded_without(self, task: Task, number: int) -> Iterator[str]:
        """So many processes that do not have the task, those with the least load."""
        free = [(process.load, name) for name, process in self.processes.items() if task not in process.tasks]
        return (name for _, name in sorted(free)[:number])


def partition_first(task: Task) -> tuple[int, str]:
    return task[1], task[0]


def assign(
    workers: Sequence[Worker], subtopologies: Mapping[str, Subtopology], standby_replicas: int
) -> dict[str, Tasks]:
    """Return the tasks of each member."""
    active = [(name, index) for name, part in subtopologies.items() for index in range(part.tasks)]
    stateful = [task for task in active if subtopologies[task[0]].is_stateful]
    assignment = Assignment(workers, len(active), len(active) + len(stateful) * standby_replicas)
    assignment.assign_active(active)
    if standby_replicas:
        assignment.assign_standby(stateful, standby_replicas)
    return {
        member: {kind: frozenset(indexes) for kind, indexes in mine.items()}
        for member, mine in assignment.result.items()
    }
