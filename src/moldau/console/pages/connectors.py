"""The pages of connectors: a list, and one connector with its tasks, config, offsets and dead letters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from nicegui import ui

from moldau.admin import connectors
from moldau.admin.connectors import difference, path_of
from moldau.console import frame, paths
from moldau.console.model import connectors as model
from moldau.console.model.problems import EXPECTED
from moldau.console.page_context import Desk

EVERY_S = 3.0
SELDOM_S = 10.0  # between looks at offsets and dead letters
ICONS = {"pause": "pause", "resume": "play_arrow", "restart": "restart_alt", "stop": "stop"}
CALLS = {
    "pause": ("PUT", "/pause"),
    "resume": ("PUT", "/resume"),
    "stop": ("PUT", "/stop"),
    "restart": ("POST", "/restart?includeTasks=true"),
}


def ask(desk: Desk, method: str, path: str, body: Any = None) -> Any:
    return connectors.ask(desk.console.connect_url, method, path, body, desk.console.connect_login)


def show(desk: Desk) -> None:
    """Show the list."""
    with frame.heading("Connectors"):
        if desk.may_act:
            frame.link_button("New connector", "add", "/new-connector")
    with frame.panel():
        frame.Section(desk, lambda: ask(desk, "GET", "/connectors?expand=status&expand=info"), _show_list, EVERY_S)
    with frame.panel("Plugins"):
        frame.Section(desk, lambda: ask(desk, "GET", "/connector-plugins"), partial(_show_plugins, desk))


def _show_list(found: dict[str, Any]) -> None:
    if not found:
        frame.empty("There are no connectors.", "`moldau connector create` creates one.", "cable")
        return
    columns = ("connector", "type", "class", "state", "tasks", "worker")
    table = frame.table(*columns, if_wide=("type", "class", "worker")).props("wrap-cells")
    frame.link_cell(table, "connector")
    frame.badge_cell(table, "state")
    table.rows = model.rows(found)


def _show_plugins(desk: Desk, found: list[dict[str, str]]) -> None:
    table = frame.table("class", "type", "version", if_wide=("version",)).props("wrap-cells")
    frame.link_cell(table, "class")
    table.rows = [{**one, "link": paths.new_connector(one["class"]) if desk.may_act else None} for one in found]


@dataclass(frozen=True, slots=True)
class Found:
    """A connector: its config, its status, and the settings that are secrets."""

    config: dict[str, str]
    status: dict[str, Any]
    kind: str
    secrets: frozenset[str]


def load(desk: Desk, name: str) -> Found:
    info = ask(desk, "GET", path_of(name))
    every = ask(desk, "GET", "/connectors?expand=status")
    config = info["config"]
    plugin = quote(config.get("connector.class", ""), safe="")
    secrets = model.secrets_of(config, ask(desk, "GET", f"/connector-plugins/{plugin}/config"))
    return Found(config, every.get(name, {}).get("status") or {}, info["type"], frozenset(secrets))


def show_one(desk: Desk) -> None:
    """Show the page of a connector."""
    name = desk.path["name"]
    with frame.heading(name):
        frame.link_button("Connectors", "cable", "/connectors")
    State(desk, name)
    with frame.panel("Config"):
        frame.Section(desk, lambda: load(desk, name), partial(_show_config, desk, name))
    with frame.panel("Offsets"):
        frame.Section(desk, lambda: ask(desk, "GET", path_of(name, "/offsets"))["offsets"], _show_offsets, SELDOM_S)
    Letters(desk, name)


def _show_config(desk: Desk, name: str, found: Found) -> None:
    Config(desk, name, found)


class State:
    """The panel with the state and the verbs."""

    def __init__(self, desk: Desk, name: str) -> None:
        self._desk, self._name = desk, name
        with frame.panel():
            self._section = frame.Section(desk, lambda: load(desk, name), self._show, EVERY_S, still=True)

    def _show(self, found: Found) -> None:
        status = found.status
        own = status.get("connector", {})
        class_name = found.config.get("connector.class", "").rpartition(".")[2]
        frame.facts({"state": own.get("state", "UNASSIGNED"), "type": found.kind, "class": class_name})
        table = frame.table("task", "state", "worker", none="It has no tasks just now.")
        frame.badge_cell(table, "state")
        table.rows = [
            {
                "task": task["id"],
                "state": task["state"],
                "state_colour": model.COLOURS.get(task["state"], "grey"),
                "worker": task["worker_id"],
            }
            for task in status.get("tasks", ())
        ]
        for title, trace in model.traces(status):
            with ui.expansion(f"Trace of {title}", value=True).classes("w-full"):
                frame.Words("pre", trace).classes("mono wrap")
        if self._desk.may_act:
            with ui.row().classes("items-center gap-2"):
                self._buttons(status)

    def _buttons(self, status: dict[str, Any]) -> None:
        for verb in model.verbs(status):
            made = ui.button(verb.capitalize(), icon=ICONS[verb], on_click=partial(self._act, verb))
            made.props("outline")
        warning = "It stops. What it has written, and its offsets, stay."
        delete = (ask, self._desk, "DELETE", path_of(self._name))
        frame.delete_button(self._desk, self._name, warning, "/connectors", *delete)

    async def _act(self, verb: str) -> None:
        method, rest = CALLS[verb]
        said = f"{self._name}: {verb} is on its way."
        if await frame.attempt(self._desk, said, ask, self._desk, method, path_of(self._name, rest)):
            await self._section.reload()


class Config:
    """The config as JSON; what a change would change is shown before it is saved."""

    def __init__(self, desk: Desk, name: str, found: Found) -> None:
        self._desk, self._name, self._found = desk, name, found
        text = json.dumps(model.shown(found.config, found.secrets), indent=2, ensure_ascii=False)
        self._box = ui.textarea(value=text).props('autogrow outlined aria-label="Config"').classes("w-full mono")
        self._lines = ui.column().classes("w-full")
        if not desk.may_act:
            self._box.props("readonly")
            return
        ui.button("Compare and save", icon="difference", on_click=self._compare).props("outline")

    async def _compare(self) -> None:
        found, secrets = self._found, self._found.secrets
        try:
            config = model.edited(self._box.value or "", found.config, secrets)
        except EXPECTED as error:
            ui.notify(str(error), type="negative")
            return
        lines = difference(model.shown(found.config, secrets), model.shown(config, secrets & self._kept(config)))
        self._lines.clear()
        with self._lines:
            if not lines:
                ui.label("Nothing is changed.").classes("quiet")
                return
            with ui.element("div").classes("mono wrap w-full").props('aria-label="Changes of the config"'):
                for line in lines:
                    kind = "diff-new" if line.startswith("+") else "diff-gone"
                    frame.Words("pre", line).classes(f"wrap q-ma-none {kind}")
            ui.button("Save", icon="save", on_click=partial(self._save, config))

    def _kept(self, config: dict[str, Any]) -> set[str]:
        return {name for name, value in config.items() if value == self._found.config.get(name)}

    async def _save(self, config: dict[str, Any]) -> None:
        change = (ask, self._desk, "PUT", path_of(self._name, "/config"), config)
        await frame.attempt(self._desk, f"Changed {self._name}.", *change, then=paths.connector(self._name))


def _show_offsets(found: list[dict[str, Any]]) -> None:
    table = frame.table("partition", "offset", none="It has read nothing yet.").props("wrap-cells")
    table.rows = model.offset_rows(found)


class Letters:
    """The dead letters of a sink that has a topic for them, and a button that puts them once more."""

    def __init__(self, desk: Desk, name: str) -> None:
        self._desk, self._name = desk, name
        self._panel = frame.panel("Dead letters")
        self._panel.set_visibility(False)
        with self._panel:
            self._section = frame.Section(desk, self._load, self._show, SELDOM_S, still=True)

    def _load(self) -> list[dict[str, Any]] | None:
        config = ask(self._desk, "GET", path_of(self._name, "/config"))
        if not config.get("errors.deadletterqueue.topic.name"):
            return None
        return ask(self._desk, "GET", path_of(self._name, "/dead-letters?limit=100"))["letters"]

    def _show(self, found: list[dict[str, Any]] | None) -> None:
        self._panel.set_visibility(found is not None)
        if found is None:
            return
        columns = ("offset", "topic", "stage", "message", "key", "value")
        table = frame.table(*columns, if_wide=("topic", "key"), none="There are none.").props("wrap-cells")
        table.rows = [{**one, "stage": one["stage"] or "–", "message": one["message"] or "–"} for one in found]
        if found and self._desk.may_act:
            ui.button("Put them once more", icon="replay", on_click=self._retry).props("outline")

    async def _retry(self) -> None:
        change = (ask, self._desk, "POST", path_of(self._name, "/dead-letters/retry?limit=100"))
        if await frame.attempt(self._desk, "The dead letters were put once more.", *change):
            await self._section.reload()
