"""What the pages of connectors show: rows and configs without secrets. Nothing here asks anybody."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from moldau.admin.connectors import states_of
from moldau.console import paths
from moldau.console.model.problems import Refused

HIDDEN = "[hidden]"
SECRET = re.compile(r"password|secret|token|jaas|credential|user\.info|passphrase", re.IGNORECASE)
COLOURS = {"RUNNING": "positive", "FAILED": "negative", "PAUSED": "warning", "STOPPED": "grey"}
VERBS = {  # the states in which a verb makes sense
    "pause": ("RUNNING",),
    "resume": ("PAUSED", "STOPPED"),
    "stop": ("RUNNING", "PAUSED", "FAILED"),
    "restart": ("RUNNING", "FAILED"),
}


def rows(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the list, what has failed first."""
    made = [_row(name, one.get("status") or {}, one.get("info") or {}) for name, one in found.items()]
    return sorted(made, key=lambda row: (row["state"] != "FAILED", row["connector"]))


def _row(name: str, status: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    state = worst(status)
    return {
        "connector": name,
        "link": paths.connector(name),
        "type": info.get("type", ""),
        "class": info.get("config", {}).get("connector.class", "").rpartition(".")[2],
        "state": state,
        "state_colour": COLOURS.get(state, "grey"),
        "tasks": states_of(status) or "–",
        "worker": status.get("connector", {}).get("worker_id", ""),
    }


def worst(status: Mapping[str, Any]) -> str:
    """Return FAILED if the connector or one of its tasks has, otherwise the connector's state."""
    state = status.get("connector", {}).get("state", "UNASSIGNED")
    return "FAILED" if any(task["state"] == "FAILED" for task in status.get("tasks", ())) else state


def verbs(status: Mapping[str, Any]) -> list[str]:
    return [verb for verb, states in VERBS.items() if worst(status) in states]


def secrets_of(config: Mapping[str, str], definitions: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the settings whose values are not to be shown: passwords, and what is called like one."""
    declared = {one["name"] for one in definitions if one["type"] == "PASSWORD"}
    plain = {one["name"] for one in definitions} - declared
    named = {name for name in config if SECRET.search(name) and name not in plain}
    return {name for name in declared | named if config.get(name) and not config[name].startswith("${")}


def shown(config: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    return {name: HIDDEN if name in secrets else value for name, value in sorted(config.items())}


def edited(text: str, config: Mapping[str, str], secrets: Collection[str]) -> dict[str, Any]:
    """Return the config that a user has written, with the secrets that were left as they are; Refused if it is none."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise Refused(f"This is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise Refused("A config is a JSON object.")
    return {name: config[name] if value == HIDDEN and name in secrets else value for name, value in given.items()}


def traces(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what failed with its trace."""
    units = [("connector", status.get("connector", {}))]
    units += [(f"task {task['id']}", task) for task in status.get("tasks", ())]
    return [(title, one["trace"]) for title, one in units if one.get("trace")]


def offset_rows(found: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{key: json.dumps(one[key], ensure_ascii=False) for key in ("partition", "offset")} for one in found]
