"""A table of settings, of a broker or whatever else has some: searched, and changed by who may."""

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
    "STATIC_BROKER_CONFIG": "the broker's start",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "all brokers",
    "DYNAMIC_BROKER_CONFIG": "this broker",
    "DYNAMIC_TOPIC_CONFIG": "this topic",
    "DYNAMIC_GROUP_CONFIG": "this group",
}


def settings_table(desk: Desk, resource: configs.Resource) -> None:
    """The settings of something, loaded by themselves; those that were set come first."""

    def load() -> list[configs.Entry]:
        return configs.described(desk.client, resource, documentation=True)

    def shown(found: list[configs.Entry]) -> None:
        box = ui.input("Search").props("dense outlined clearable debounce=150").classes("w-full")
        table = frame.table("setting", "value", "set by", if_wide=("set by",)).props("wrap-cells").classes("halves")
        table.rows = [row(one, desk.may_act) for one in sorted(found, key=lambda one: (one.is_default, one.name))]
        table.add_slot("body-cell-setting", CELL)
        table.bind_filter_from(box, "value", lambda text: text or "")
        table.on("edit", lambda event: edit(event.args))

    def edit(setting: str) -> None:
        with section.place:
            _edit(desk, resource, setting, section).open()

    section = frame.Section(desk, load, shown)


def row(entry: configs.Entry, may_act: bool) -> dict[str, Any]:
    """A setting as the table has it."""
    value = "(hidden)" if entry.sensitive else entry.value or ""
    return {
        "setting": entry.name,
        "value": value,
        "set by": SOURCES.get(entry.source, entry.source.lower()),
        "about": entry.documentation or entry.name,
        "free": may_act and not entry.read_only,
    }


def is_so(found: list[configs.Entry], change: configs.Change) -> bool:
    """Whether a setting is as the change wanted it; what is secret is not compared."""
    if change.operation is configs.Operation.DELETE:
        return not any(one.is_own for one in found)
    return all(one.is_own and (one.sensitive or (one.value or "") == (change.value or "").strip()) for one in found)


def _edit(desk: Desk, resource: configs.Resource, setting: str, section: frame.Section[Any]) -> ui.dialog:
    def now() -> list[configs.Entry]:
        return configs.described(desk.client, resource, [setting])

    async def alter(change: configs.Change, done: str) -> None:
        if await frame.attempt(
            desk, done, configs.alter, desk.client, resource, [change], seen=lambda: is_so(now(), change)
        ):
            dialog.close()
            await section.reload()

    back = configs.Change(setting, None, configs.Operation.DELETE)
    with ui.dialog() as dialog, ui.card().classes("q-pa-md gap-3 w-96 max-w-full"):
        ui.label(setting).classes("text-lg font-semibold wrap")
        box = ui.input("New value").props("dense outlined autofocus").classes("w-full mono")
        with ui.row().classes("w-full justify-end"):
            ui.button("Leave it", on_click=dialog.close).props("flat no-caps")
            again = ui.button("Back to default").props("flat no-caps")
            again.on_click(lambda: alter(back, f"{setting} is as it was before."))
            change = ui.button("Set").props("no-caps")
            change.on_click(lambda: alter(configs.Change(setting, box.value or ""), f"Set {setting}."))
    return dialog
