"""A table of the settings of a broker or a topic, with a search, and a form to change one."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from moldau.admin import configs
from moldau.console import frame
from moldau.console.page_context import Desk

CELL = """
<q-td :props="props" class="mono"><button v-if="props.row.free" type="button" class="link"
  @click="$parent.$emit('edit', props.value)">{{ props.value }}</button><span v-else>{{ props.value }}</span>
  <q-tooltip max-width="24rem">{{ props.row.about }}</q-tooltip></q-td>
"""
SOURCES = {
    "DEFAULT_CONFIG": "default",
    "STATIC_BROKER_CONFIG": "broker startup",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "all brokers",
    "DYNAMIC_BROKER_CONFIG": "this broker",
    "DYNAMIC_TOPIC_CONFIG": "this topic",
    "DYNAMIC_GROUP_CONFIG": "this group",
}


def settings_table(desk: Desk, resource: configs.Resource) -> None:
    """Show the settings of a resource; those that were set come first."""

    def load() -> list[configs.Entry]:
        return configs.described(desk.client, resource, documentation=True)

    def show(found: list[configs.Entry]) -> None:
        table = frame.search_table("setting", "value", "set by", paged=False, if_wide=("set by",)).classes("halves")
        table.rows = [row(one, desk.may_act) for one in sorted(found, key=lambda one: (one.is_default, one.name))]
        table.add_slot("body-cell-setting", CELL)
        table.on("edit", lambda event: edit(event.args))

    def edit(setting: str) -> None:
        with section.place:
            _edit(desk, resource, setting, section).open()

    section = frame.Section(desk, load, show)


def row(entry: configs.Entry, may_act: bool) -> dict[str, Any]:
    """Return a setting as a row of the table."""
    value = "(hidden)" if entry.sensitive else entry.value or ""
    return {
        "setting": entry.name,
        "value": value,
        "set by": SOURCES.get(entry.source, entry.source.lower()),
        "about": entry.documentation or entry.name,
        "free": may_act and not entry.read_only,
    }


def is_so(found: list[configs.Entry], change: configs.Change) -> bool:
    """Say whether a setting has the value of the change; the value of a secret is not compared."""
    if change.operation is configs.Operation.DELETE:
        return not any(one.is_own for one in found)
    return all(one.is_own and (one.sensitive or (one.value or "") == (change.value or "").strip()) for one in found)


def _edit(desk: Desk, resource: configs.Resource, setting: str, section: frame.Section[Any]) -> ui.dialog:
    def now() -> list[configs.Entry]:
        return configs.described(desk.client, resource, [setting])

    async def alter(value: str | None, done: str) -> None:
        operation = configs.Operation.DELETE if value is None else configs.Operation.SET
        change = configs.Change(setting, value, operation)
        seen = lambda: is_so(now(), change)  # noqa: E731
        await frame.submit(dialog, section, desk, done, configs.alter, desk.client, resource, [change], seen=seen)

    with frame.dialog(setting) as dialog:
        box = ui.input("New value").props("autofocus").classes("w-full mono")
        with frame.buttons(dialog):
            reset = ui.button("Reset to default").props("flat")
            reset.on_click(lambda: alter(None, f"Reset {setting} to its default."))
            ui.button("Set", on_click=lambda: alter(box.value or "", f"Set {setting}."))
    return dialog
