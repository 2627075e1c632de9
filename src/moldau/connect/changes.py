"""What a request changes: decided by the leader on the state, as records of the config topic and an answer.

Nothing here waits or writes. A refusal is an HttpError in Connect's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.connect import status_topic as s
from moldau.connect.config_topic import STATES, STOPPED, ConfigState, Restart, Row, Target
from moldau.connect.config_topic import Commit as Committed
from moldau.connect.config_topic import ConnectorConfig as Configured
from moldau.connect.leading import task_rows
from moldau.connect.plugins import find
from moldau.connect.status_topic import Status, StatusState
from moldau.connect.worker import is_restarted
from moldau.http import HttpError

Change = tuple[list[Row], Any]


def require(state: ConfigState, name: str, message: str) -> Mapping[str, str | None]:
    """Return the config of a connector; 404 with the message if there is none."""
    row = state.connectors.get(name)
    if row is None:
        raise HttpError(404, message)
    return row.properties or {}


def create(state: ConfigState, name: str, config: Mapping[str, str | None], initial: str | None) -> Change:
    if name in state.connectors:
        raise HttpError(409, f"Connector {name} already exists")
    rows: list[Row] = [Configured(name, config)]
    if initial is not None:
        rows.insert(0, Target(name, initial))
    return rows, info(name, config, 0)


def put(state: ConfigState, name: str, config: Mapping[str, str | None]) -> Change:
    """Set the whole config of a connector, which may be new; the answer says whether it is."""
    is_new = name not in state.connectors
    return [Configured(name, config)], (is_new, info(name, config, _count(state, name)))


def patched(state: ConfigState, name: str, patch: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the config of a connector after a patch: null removes a setting."""
    config = require(state, name, f"Connector {name} not found")
    return {key: text for key, text in {**config, **patch}.items() if not (key in patch and text is None)}


def delete(state: ConfigState, name: str) -> Change:
    require(state, name, f"Connector {name} not found")
    return [Configured(name, None), Target(name, None)], None


def set_target(state: ConfigState, name: str, target: str) -> Change:
    require(state, name, f"Unknown connector {name}")
    rows: list[Row] = [Target(name, target)]
    if target == STOPPED and _count(state, name):
        rows.append(Committed(name, 0))
    return rows, None


def set_tasks(state: ConfigState, name: str, configs: list[dict[str, str]]) -> Change:
    require(state, name, f"Connector {name} not found")
    if state.target(name) == STOPPED:
        return [], None  # it was stopped meanwhile
    return task_rows(name, configs), None


def restart(state: ConfigState, said: StatusState, what: Restart) -> Change:
    """Ask for a restart; the answer is the status as it will be."""
    require(state, what.connector, f"Unknown connector: {what.connector}")
    now = status(state, said, what.connector)
    if now is None:
        raise HttpError(404, f"Status for connector {what.connector} not found")
    for place, row in [(None, now["connector"]), *((row["id"], row) for row in now["tasks"])]:
        if is_restarted(what, (what.connector, place), row["state"]):
            row["state"] = s.RESTARTING
            if place is None:  # Connect's answer keeps the traces of tasks
                row.pop("trace", None)
    return [what], now


def initial_state(text: Any) -> str | None:
    """Read the initial_state of a new connector: RUNNING, PAUSED or STOPPED, in any case."""
    if text is None:
        return None
    given = str(text).upper()
    wanted = "STARTED" if given == "RUNNING" else given
    if wanted not in STATES or given == "STARTED":
        raise HttpError(400, f"The initial_state {text} is none of RUNNING, PAUSED, STOPPED.")
    return wanted


# What is shown of connectors.


def info(name: str, config: Mapping[str, str | None], tasks: int) -> dict[str, Any]:
    plugin = find(config.get("connector.class") or "")
    return {
        "name": name,
        "config": dict(config),
        "tasks": [{"connector": name, "task": number} for number in range(tasks)],
        "type": plugin.kind if plugin else "unknown",
    }


def info_of(state: ConfigState, name: str) -> dict[str, Any]:
    return info(name, require(state, name, f"Connector {name} not found"), _count(state, name))


def status(state: ConfigState, said: StatusState, name: str) -> dict[str, Any] | None:
    """Return what is said of a connector and its tasks; None if nothing is."""
    of_connector = said.statuses.get((name, None))
    if of_connector is None:
        return None
    row = state.connectors.get(name)
    plugin = find((row.properties or {}).get("connector.class") or "") if row else None
    return {
        "name": name,
        "connector": _said(of_connector),
        "tasks": [{"id": number, **_said(one)} for number, one in said.tasks_of(name).items()],
        "type": plugin.kind if plugin else "unknown",
    }


def task_status(said: StatusState, name: str, task: int) -> dict[str, Any]:
    found = said.statuses.get((name, task))
    if found is None:
        raise HttpError(404, f"No status found for task {name}-{task}")
    return {"id": task, **_said(found)}


def _said(one: Status) -> dict[str, Any]:
    told = {"state": one.state, "worker_id": one.worker_id, "version": one.version}  # null where it never started
    return told if one.trace is None else {**told, "trace": one.trace}


def _count(state: ConfigState, name: str) -> int:
    found = state.tasks.get(name)
    return len(found.configs) if found else 0
