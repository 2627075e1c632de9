"""The config topic: what its records say, their bytes, and the state that they make.

The records are those of Apache Connect, so that workers of either kind can go on with the topic of the other: the
configuration of a connector, the configurations of its tasks (which count only after a commit that names how many there
are), its target state, requests to restart it, and how many tasks of an exactly-once source were last fenced. Session
keys and levels of loggers are between Apache's workers: they are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.client import Record
from moldau.topicstore import Codec

Properties = Mapping[str, str | None]
STARTED, PAUSED, STOPPED = "STARTED", "PAUSED", "STOPPED"
STATES = (STARTED, PAUSED, STOPPED)
CONNECTOR, TASK, COMMIT, TARGET = "connector-", "task-", "commit-", "target-state-"
RESTART, FENCING = "restart-connector-", "tasks-fencing-"
NOWHERE = -1  # the offset of a row that is not written yet


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """The configuration of a connector; None removes it. `at` is the offset of the record: another one is a change."""

    name: str
    properties: Properties | None
    at: int = NOWHERE


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """The configuration of one task, which counts from the next commit on."""

    connector: str
    task: int
    properties: Properties


@dataclass(frozen=True, slots=True)
class Commit:
    """The end of a set of task configurations."""

    connector: str
    count: int
    at: int = NOWHERE


@dataclass(frozen=True, slots=True)
class Target:
    """What is wanted of a connector: STARTED, PAUSED or STOPPED; None forgets it."""

    connector: str
    state: str | None


@dataclass(frozen=True, slots=True)
class Restart:
    """A request to restart a connector, its tasks too, or only what has failed."""

    connector: str
    include_tasks: bool
    only_failed: bool


@dataclass(frozen=True, slots=True)
class Fencing:
    """How many tasks an exactly-once source had when its predecessors were last fenced."""

    connector: str
    count: int


@dataclass(frozen=True, slots=True)
class Other:
    """A record that is none of ours."""

    key: str


Row = ConnectorConfig | TaskConfig | Commit | Target | Restart | Fencing | Other
NOOP = Other("moldau-writer")


def encode(row: Row) -> tuple[bytes, bytes | None]:
    match row:
        case ConnectorConfig(name, properties):
            return _pair(CONNECTOR + name, None if properties is None else {"properties": dict(properties)})
        case TaskConfig(connector, task, properties):
            return _pair(f"{TASK}{connector}-{task}", {"properties": dict(properties)})
        case Commit(connector, count):
            return _pair(COMMIT + connector, {"tasks": count})
        case Target(connector, None):
            return _pair(TARGET + connector, None)
        case Target(connector, state):  # workers before 3.5 read `state`, and do not know STOPPED
            return _pair(TARGET + connector, {"state": PAUSED if state == STOPPED else state, "state.v2": state})
        case Restart(connector, include_tasks, only_failed):
            return _pair(RESTART + connector, {"include-tasks": include_tasks, "only-failed": only_failed})
        case Fencing(connector, count):
            return _pair(FENCING + connector, {"task-count": count})
        case Other(key):
            return _pair(key, None)


def decode(record: Record) -> Row:
    """Read a record; ValueError, KeyError or TypeError for one that makes no sense."""
    key = bytes(record.key or b"").decode()
    for prefix, read in READERS.items():
        if key.startswith(prefix):
            value = json.loads(bytes(record.value)) if record.value is not None else None
            return read(key.removeprefix(prefix), value, record.offset)
    return Other(key)


def _read_task(rest: str, value: Any, _: int) -> TaskConfig:
    connector, dash, number = rest.rpartition("-")
    if not dash:
        raise ValueError(f"{rest} names no task")
    return TaskConfig(connector, int(number), _properties(value))


def _read_target(name: str, value: Any, _: int) -> Target:
    if value is None:
        return Target(name, None)
    state = value.get("state.v2") or value["state"]
    if state not in STATES:
        raise ValueError(f"{state} is not a state that anybody can want")
    return Target(name, state)


def _read_connector(name: str, value: Any, at: int) -> ConnectorConfig:
    return ConnectorConfig(name, None if value is None else _properties(value), at)


def _properties(value: Any) -> dict[str, str | None]:
    return {str(name): None if text is None else str(text) for name, text in value["properties"].items()}


READERS: dict[str, Callable[[str, Any, int], Row]] = {
    CONNECTOR: _read_connector,
    TASK: _read_task,
    COMMIT: lambda name, value, at: Commit(name, int(value["tasks"]), at),
    TARGET: _read_target,
    RESTART: lambda name, value, _: Restart(name, bool(value["include-tasks"]), bool(value["only-failed"])),
    FENCING: lambda name, value, _: Fencing(name, int(value["task-count"])),
}
CODEC: Codec[Row] = Codec(encode, decode)


def _pair(key: str, value: Any) -> tuple[bytes, bytes | None]:
    return key.encode(), None if value is None else dump(value)


def dump(value: Any) -> bytes:
    """Write JSON as Connect's converter does."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a connector. `at` is the offset of their commit."""

    configs: tuple[Properties, ...] = ()
    at: int = NOWHERE


@dataclass(slots=True)
class ConfigState:
    """What the config topic says. Only `replay` changes it.

    `incomplete` are connectors of which compaction has removed a task's configuration: their tasks must be configured
    again. `unfenced` are connectors whose tasks have changed since their predecessors were last fenced.
    """

    connectors: dict[str, ConnectorConfig] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, Tasks] = field(default_factory=dict)
    fenced: dict[str, int] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)
    unfenced: set[str] = field(default_factory=set)
    on_restart: Callable[[Restart], None] = lambda _: None
    _waiting: dict[str, dict[int, Properties]] = field(default_factory=dict)

    def reset(self) -> None:
        for part in (self.connectors, self.targets, self.tasks, self.fenced, self._waiting):
            part.clear()
        self.incomplete.clear()
        self.unfenced.clear()

    def replay(self, row: Row) -> None:
        match row:
            case ConnectorConfig(name, None):
                for part in (self.connectors, self.tasks, self._waiting):
                    part.pop(name, None)
                self.incomplete.discard(name)
            case ConnectorConfig(name, _):
                self.connectors[name] = row
            case TaskConfig(connector, task, properties):
                self._waiting.setdefault(connector, {})[task] = properties
            case Commit():
                self._commit(row)
            case Target(connector, None):
                self.targets.pop(connector, None)
            case Target(connector, str() as state):
                self.targets[connector] = state
            case Restart():
                self.on_restart(row)
            case Fencing(connector, count):
                self.fenced[connector] = count
                self.unfenced.discard(connector)
            case Other():
                pass

    def _commit(self, row: Commit) -> None:
        """Let the configurations count that came since the last commit, if they are complete with those before."""
        waiting = self._waiting.pop(row.connector, {})
        if row.connector not in self.connectors:
            return  # it was deleted, and compaction has left the rest of it
        known = dict(enumerate(self.tasks.get(row.connector, Tasks()).configs)) | waiting
        self.unfenced.add(row.connector)
        if all(number in known for number in range(row.count)):
            configs = tuple(known[number] for number in range(row.count))
            self.tasks[row.connector] = Tasks(configs, row.at)
            self.incomplete.discard(row.connector)
        else:
            self.incomplete.add(row.connector)

    def target(self, name: str) -> str:
        return self.targets.get(name, STARTED)
