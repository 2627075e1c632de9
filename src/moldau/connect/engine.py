"""What runs tasks: the interface between a worker and the engine that carries its tasks.

Today there is one engine, a thread for each task in the worker's own process (`threads.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.connect.connector import Connector
from moldau.connect.status_topic import FAILED, PAUSED, RUNNING

__all__ = ["FAILED", "PAUSED", "RUNNING", "Engine", "Running", "TaskSpec"]


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as a worker wants it to run. `config` is the connector's, `task_config` that of the task, both with their
    secrets resolved. `exactly_once` sources write records and offsets in one transaction under `transactional_id`.
    """

    connector: str
    task: int
    plugin: Connector
    config: Mapping[str, str]
    task_config: Mapping[str, str]
    exactly_once: bool
    transactional_id: str

    @property
    def name(self) -> str:
        return f"{self.connector}-{self.task}"


class Running(Protocol):
    """A task that was started."""

    def pause(self, is_paused: bool) -> None:
        """Rest, or go on."""
        ...

    def stop(self) -> None:
        """End soon: finish what was begun, and commit it."""
        ...

    def abandon(self) -> None:
        """Give it up: whatever it still does must have no effect that its successor could notice."""
        ...

    @property
    def has_ended(self) -> bool: ...


class Engine(Protocol):
    """A carrier of tasks. `report` is called with a state and, for FAILED, a trace; from any thread."""

    def offset(self, connector: str, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return how far a source was read."""
        ...

    def start(self, spec: TaskSpec, report: Callable[[str, str | None], None], *, is_paused: bool) -> Running: ...

    def close(self) -> None: ...
