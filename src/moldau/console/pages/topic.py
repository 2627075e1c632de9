"""The page of a topic: partitions, settings, consumers and schemas; adding partitions, deleting the topic."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from moldau.admin import configs, groups, offsets, topics
from moldau.client import Client
from moldau.console import frame, paths
from moldau.console.model import figures
from moldau.console.model.topics import Reading, readings
from moldau.console.page_context import Desk
from moldau.console.pages.topics import partitions_of
from moldau.console.sampler import ends
from moldau.console.settings_table import settings_table
from moldau.records.subjects import pretty
from moldau.serdes.registry import Registered, RegistryError

GROUPS = 200  # that are asked for their committed offsets
LONGEST_SCHEMA = 200_000  # characters that are shown
NOT_FOUND = 404
Offsets = dict[Any, tuple[int, int]]
Sizes = dict[Any, dict[int, int]]


def show(desk: Desk) -> None:
    """Show the page."""
    name = desk.path["name"]
    with frame.heading(name):
        frame.link_button("Messages", "mail", paths.topic(name, "messages"), style="")
        frame.lineage_button(name)
        if desk.may_act:
            ui.button("Add partitions", icon="add", on_click=_growth(desk, name).open).props("outline")
            frame.delete_button(
                desk, name, "All its records are lost for good.", "/topics", topics.delete, desk.client, [name],
                seen=lambda: not partitions_of(desk.client, name),
            )  # fmt: skip
    with frame.panel():
        frame.tabs({title: partial(part, desk, name) for title, part in PARTS.items()}, desk.query.get("tab"))


def _growth(desk: Desk, name: str) -> ui.dialog:
    async def go() -> None:
        total, client = int(box.value or 0), desk.client
        done, seen = f"{name} has {total} partitions.", lambda: partitions_of(client, name) >= total
        if await frame.attempt(desk, done, topics.add_partitions, client, {name: total}, seen=seen):
            dialog.close()
            ui.navigate.reload()

    with frame.dialog("Add partitions") as dialog:
        ui.label("Keys may move to other partitions, and partitions cannot be removed again.").classes("wrap")
        box = ui.number("Total partitions", min=1, precision=0).props("autofocus").classes("w-full")
        with frame.buttons(dialog):
            ui.button("Add", on_click=go)
    return dialog


def _partitions(desk: Desk, name: str) -> None:
    def load() -> tuple[topics.TopicState, Offsets, Sizes]:
        [state] = topics.described(desk.client, [name])
        places = [(name, part.index) for part in state.partitions if part.leader >= 0]
        return state, offsets.ends(desk.client, places), topics.sizes(desk.client, [name])

    def show_partitions(found: tuple[topics.TopicState, Offsets, Sizes]) -> None:
        state, bounds, sizes = found
        numbers = ("partition", "first offset", "next offset", "records", "size")
        wide = ("first offset", "leader", "replicas", "in sync")
        table = frame.table(*numbers, "leader", "replicas", "in sync", numbers=numbers, if_wide=wide)
        frame.link_cell(table, "partition")
        table.rows = [_partition(state.name, part, bounds, sizes) for part in state.partitions]
        records = sum(last - first for first, last in bounds.values())
        size = sum(sum(replicas.values()) for replicas in sizes.values())
        words = f"{figures.count(records)} records and {figures.size(size)} in {len(state.partitions)} partitions"
        ui.label(f"{words}; replication factor {state.replication_factor}").classes("quiet text-sm")

    frame.Section(desk, load, show_partitions)


def _partition(name: str, part: topics.PartitionState, bounds: Any, sizes: Any) -> dict[str, Any]:
    first, last = bounds.get((name, part.index), (None, None))
    return {
        "partition": part.index,
        "link": paths.topic(name, f"messages?partition={part.index}"),
        "first offset": figures.count(first),
        "next offset": figures.count(last),
        "records": figures.count(None if last is None or first is None else last - first),
        "size": figures.size(sum(sizes.get((name, part.index), {}).values())),
        "leader": part.leader if part.leader >= 0 else "none",
        "replicas": ", ".join(map(str, part.replicas)),
        "in sync": ", ".join(map(str, part.isr)),
    }


def _settings(desk: Desk, name: str) -> None:
    settings_table(desk, configs.Resource(configs.Kind.TOPIC, name))


def _consumers(desk: Desk, name: str) -> None:
    def show_consumers(found: list[Reading]) -> None:
        if not found:
            frame.empty("No group reads this topic.", f"`moldau consume {name} --group NAME` creates one.", "groups")
            return
        table = frame.table("group", "partitions", "lag", numbers=("partitions", "lag"))
        frame.link_cell(table, "group")
        table.rows = [
            {
                "group": one.group,
                "link": paths.group(one.group),
                "partitions": one.partitions,
                "lag": figures.count(one.lag),
            }
            for one in found
        ]

    frame.Section(desk, lambda: consumers(desk.client, name), show_consumers)


def consumers(client: Client, name: str) -> list[Reading]:
    """Return the groups that have committed offsets in a topic."""
    known = ends(client, topics.partitions(client, [name]))
    return readings(name, groups.commits(client, groups.listed(client), GROUPS), known)


def _schemas(desk: Desk, name: str) -> None:
    def load() -> dict[str, Registered]:
        found: dict[str, Registered] = {}
        for field in ("value", "key"):
            try:
                found[f"{name}-{field}"] = desk.console.registry.latest(f"{name}-{field}")
            except RegistryError as error:
                if error.status != NOT_FOUND:
                    raise
        return found

    def show_schemas(found: dict[str, Registered]) -> None:
        if not found:
            remedy = f"`moldau schema register {name}-value FILE` registers one; producers with a serializer do too."
            frame.empty("There is no schema for this topic.", remedy, "schema")
        for subject, one in found.items():
            title = f"{subject} · {one.schema.type} · id {one.ref.id}"
            ui.link(title, paths.subject(subject)).classes("link font-semibold wrap")
            ui.label(pretty(one.schema.text)[:LONGEST_SCHEMA]).classes("mono wrap w-full")

    frame.Section(desk, load, show_schemas)


PARTS = {"Partitions": _partitions, "Settings": _settings, "Consumers": _consumers, "Schema": _schemas}
