"""Statements about connectors: each is a request to the REST interface of a Connect cluster (`ksql.connect.url`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.admin.connectors import ask, path_of
from moldau.admin.mistakes import Mistake
from moldau.sql.errors import SqlError
from moldau.sql.tree import CreateConnector, Describe, DropConnector, Show, Statement

URL = "ksql.connect.url"
ABOUT = (CreateConnector, DropConnector)
SHOWN = ("CONNECTORS", "CONNECTOR PLUGINS")


def is_about_connectors(statement: Statement) -> bool:
    match statement:
        case Show():
            return statement.what in SHOWN
        case Describe():
            return statement.what == "CONNECTOR"
        case _:
            return isinstance(statement, ABOUT)


def answer(statement: Statement, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the type of the answer, and its fields."""
    url = str(settings.get(URL) or "")
    if not url:
        raise SqlError(f"Statements about connectors need Kafka Connect, and no address is set in '{URL}'.")
    try:
        match statement:
            case CreateConnector():
                return _create(url, statement)
            case DropConnector():
                return _drop(url, statement)
            case Describe():
                return _describe(url, str(statement.name))
            case Show() if statement.what == "CONNECTORS":
                return _list(url, statement.scope)
            case _:
                plugins = ask(url, "GET", "/connector-plugins")
                listed = [{name: row.get(name) for name in ("class", "type", "version")} for row in plugins]
                return "connector_plugins_list", {"connectorsPlugins": listed}
    except Mistake as error:
        raise SqlError(str(error)) from None


def _names(url: str) -> list[str]:
    return sorted(ask(url, "GET", "/connectors"))


def _create(url: str, statement: CreateConnector) -> tuple[str, dict[str, Any]]:
    if statement.name in _names(url):
        if statement.if_not_exists:
            return "warning_entity", {"message": f"Connector {statement.name} already exists"}
        raise SqlError(f"Connector {statement.name} already exists")
    config = {name if "." in name else name.lower(): str(value) for name, value in statement.properties}
    config.setdefault("name", statement.name)
    return "connector_info", {"info": ask(url, "POST", "/connectors", {"name": statement.name, "config": config})}


def _drop(url: str, statement: DropConnector) -> tuple[str, dict[str, Any]]:
    if statement.if_exists and statement.name not in _names(url):
        return "warning_entity", {"message": f"Connector '{statement.name}' does not exist."}
    ask(url, "DELETE", path_of(statement.name))
    return "drop_connector", {"connectorName": statement.name}


def _list(url: str, scope: str | None) -> tuple[str, dict[str, Any]]:
    found = ask(url, "GET", "/connectors?expand=info&expand=status")
    rows = []
    for name, row in sorted(found.items()):
        info, status = row["info"], row["status"]
        kind = str(info.get("type") or "unknown")
        if scope in (None, "ALL", kind.upper()):
            rows.append(
                {
                    "name": name,
                    "type": kind,
                    "className": info["config"].get("connector.class"),
                    "state": status["connector"]["state"] + _running(status["tasks"]),
                }
            )
    return "connector_list", {"connectors": rows}


def _running(tasks: list[dict[str, Any]]) -> str:
    running = sum(task["state"] == "RUNNING" for task in tasks)
    return f" ({running}/{len(tasks)} tasks RUNNING)"


def _describe(url: str, name: str) -> tuple[str, dict[str, Any]]:
    info, status = ask(url, "GET", path_of(name)), ask(url, "GET", path_of(name, "/status"))
    topics = ask(url, "GET", path_of(name, "/topics")).get(name, {}).get("topics", [])
    return "connector_description", {
        "connectorClass": info["config"].get("connector.class"),
        "status": status,
        "sources": [],
        "topics": topics,
    }
