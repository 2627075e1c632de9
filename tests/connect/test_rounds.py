"""Rounds of a worker, one by one, with tasks that do what the test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.connect import changes
from moldau.connect.config_topic import ConfigState, Restart
from moldau.connect.engine import TaskSpec
from moldau.connect.group import Alone, Unit
from moldau.connect.process import propose
from moldau.connect.standalone import Configs, Statuses
from moldau.connect.status_topic import StatusState
from moldau.connect.worker import Settings, Worker, units_of


class Task:
    """A task that was started; the test says what becomes of it."""

    def __init__(self, report: Callable[[str, str | None], None]) -> None:
        self.report, self.has_ended, self.is_stopped = report, False, False

    def pause(self, is_paused: bool) -> None: ...

    def stop(self) -> None:
        self.is_stopped = self.has_ended = True

    def abandon(self) -> None:
        self.stop()

    def fail(self) -> None:
        self.has_ended = True
        self.report("FAILED", "trace")


class Tasks:
    """An engine that keeps what it has started."""

    def __init__(self) -> None:
        self.started: list[Task] = []

    def offset(self, connector: str, partition: Mapping[str, Any]) -> None: ...

    def start(self, spec: TaskSpec, report: Callable[[str, str | None], None], *, is_paused: bool) -> Task:
        self.started.append(Task(report))
        return self.started[-1]

    def close(self) -> None: ...


class Group(Alone):
    """A group that loses its worker once when it is told to."""

    is_lost = False

    def look(self) -> tuple[frozenset[Unit], bool]:
        found, self.is_lost = self.is_lost, False
        return super().look()[0], found


class Watched:
    """A worker with one connector, `x`, of one task."""

    def __init__(self) -> None:
        self.state, self.said, self.tasks = ConfigState(), StatusState(), Tasks()
        self.configs = Configs(self.state)
        settings = Settings({}, "w:1", "g")
        self.worker = Worker(
            settings, self.configs, self.state, Statuses(self.said), self.said, self.tasks, self._propose
        )
        self.group = self.worker.group = Group("http://w", lambda: units_of(self.worker.wanted()))
        self.state.on_restart = self.worker.restart
        config: dict[str, Any] = {"connector.class": "FileStreamSink", "topics": "t", "name": "x"}
        self.configs.update(lambda: changes.create(self.state, "x", config, None))
        self.rounds()

    def _propose(self, name: str, made: list[dict[str, str]]) -> None:
        propose(self.worker, name, made)

    def rounds(self) -> None:
        for _ in range(4):
            self.worker.round()

    def restart(self) -> list[str]:
        """Ask for a restart of what has failed; return the states of the tasks that the answer shows."""
        what = Restart("x", True, True)
        answer = self.configs.update(lambda: changes.restart(self.state, self.said, what))
        return [task["state"] for task in answer["tasks"]]

    @property
    def states(self) -> list[str]:
        return [one.state for one in self.said.tasks_of("x").values()]


def test_a_task_that_failed_is_restarted() -> None:
    one = Watched()
    one.tasks.started[0].report("RUNNING", None)
    one.rounds()
    assert one.states == ["RUNNING"] and one.restart() == ["RUNNING"]
    one.rounds()
    assert len(one.tasks.started) == 1  # nothing has failed
    one.tasks.started[0].fail()
    one.rounds()
    assert one.states == ["FAILED"] and one.restart() == ["RESTARTING"]
    one.rounds()
    assert len(one.tasks.started) == 2


def test_a_promised_restart_is_kept_by_a_task_that_is_just_starting_again() -> None:
    """The group loses the worker between the failure and the request: the task is being started, and has not failed
    yet. It would fail as before, with nobody to restart it."""
    one = Watched()
    one.tasks.started[0].fail()
    one.rounds()
    one.group.is_lost = True
    one.rounds()
    assert len(one.tasks.started) == 2 and one.states == ["FAILED"]
    assert one.restart() == ["RESTARTING"]
    one.rounds()
    assert one.tasks.started[1].is_stopped and len(one.tasks.started) == 3
    one.tasks.started[2].report("RUNNING", None)
    one.rounds()
    assert one.states == ["RUNNING"]
