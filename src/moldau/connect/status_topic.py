"""The status topic: what workers say of their connectors and tasks, and which topics those use.

The records are those of Apache Connect. Any worker writes them; the last one about a connector or task counts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from moldau.connect.config_topic import dump

UNASSIGNED, RUNNING, PAUSED, STOPPED = "UNASSIGNED", "RUNNING", "PAUSED", "STOPPED"
FAILED, RESTARTING, DESTROYED = "FAILED", "RESTARTING", "DESTROYED"
CONNECTOR, TASK, TOPIC = "status-connector-", "status-task-", "status-topic-"
OF_CONNECTOR = ":connector-"

Place = tuple[str, int | None]  # a connector, and a task of it or None


@dataclass(frozen=True, slots=True)
class Status:
    """What was said last of a connector or a task."""

    state: str
    worker_id: str
    generation: int
    version: str | None = None
    trace: str | None = None


def key_of(place: Place) -> bytes:
    connector, task = place
    return (CONNECTOR + connector if task is None else f"{TASK}{connector}-{task}").encode()


def encode(place: Place, status: Status | None) -> tuple[bytes, bytes | None]:
    """Return the record of a status; None removes it."""
    if status is None:
        return key_of(place), None
    fields = {"state": status.state, "trace": status.trace, "worker_id": status.worker_id}
    return key_of(place), dump({**fields, "generation": status.generation, "version": status.version})


def encode_topic(connector: str, topic: str, task: int, at_ms: int | None) -> tuple[bytes, bytes | None]:
    """Return the record that a task of a connector uses a topic; without a time it is forgotten."""
    key = f"{TOPIC}{topic}{OF_CONNECTOR}{connector}".encode()
    if at_ms is None:
        return key, None
    return key, dump({"topic": {"name": topic, "connector": connector, "task": task, "discoverTimestamp": at_ms}})


@dataclass(slots=True)
class StatusState:
    """What the status topic says. Only `replay` changes it."""

    statuses: dict[Place, Status] = field(default_factory=dict)
    topics: dict[str, set[str]] = field(default_factory=dict)

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take in a record; ValueError, KeyError or TypeError for one that makes no sense."""
        text = key.decode()
        document = None if value is None else json.loads(value)
        if text.startswith(TOPIC):
            topic, colon, connector = text.removeprefix(TOPIC).partition(OF_CONNECTOR)
            if colon:
                self._note_topic(connector, topic, document is not None)
        elif text.startswith(CONNECTOR):
            self._note((text.removeprefix(CONNECTOR), None), document)
        elif text.startswith(TASK):
            connector, _, number = text.removeprefix(TASK).rpartition("-")
            self._note((connector, int(number)), document)

    def _note(self, place: Place, document: Any) -> None:
        if document is None or document["state"] == DESTROYED:
            self.statuses.pop(place, None)
            return
        words = document["state"], document["worker_id"], int(document["generation"])
        self.statuses[place] = Status(*words, document.get("version"), document.get("trace"))

    def _note_topic(self, connector: str, topic: str, is_used: bool) -> None:
        used = self.topics.setdefault(connector, set())
        if is_used:
            used.add(topic)
        else:
            used.discard(topic)

    def reset(self) -> None:
        self.statuses.clear()
        self.topics.clear()

    def tasks_of(self, connector: str) -> dict[int, Status]:
        return {n: status for (name, n), status in sorted_tasks(self.statuses) if name == connector}


def sorted_tasks(statuses: dict[Place, Status]) -> list[tuple[tuple[str, int], Status]]:
    return sorted(((name, n), status) for (name, n), status in statuses.items() if n is not None)
