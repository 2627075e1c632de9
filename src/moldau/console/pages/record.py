"""A record in full: key, value and headers as a tree, as text and in hex; and as a command or program to copy."""

from __future__ import annotations

import json
from functools import partial

from nicegui import ui

from moldau.console import frame, paths
from moldau.console.model import figures, snippets
from moldau.console.model.problems import Refused
from moldau.console.model.records import Part, Row, clean, hex_rows, tree
from moldau.console.page_context import Desk

TREE, TEXT, HEX = "Tree", "Text", "Hex"


def open_record(desk: Desk, topic: str, row: Row) -> None:
    """Open a dialog with the record."""
    with ui.dialog(value=True) as dialog, ui.card().classes("q-pa-md gap-3 w-[56rem] max-w-full"):
        dialog.on("hide", dialog.delete)
        with ui.row().classes("w-full items-center no-wrap"):
            ui.label(f"{topic}-{row.partition} @ {row.offset}").classes("text-lg font-semibold wrap")
            ui.space()
            ui.button(icon="close", on_click=dialog.close).props('flat round aria-label="Close"')
        with ui.row().classes("w-full justify-between gap-2"):
            ui.label(f"{figures.moment(row.timestamp)} UTC").classes("quiet")
            ui.link("Schemas of the topic", paths.topic(topic) + "?tab=Schema").classes("link")
        key, value = partial(_part, row.key), partial(_part, row.value)
        frame.tabs({"Value": value, "Key": key, f"Headers ({len(row.headers)})": partial(_headers, row)})
        python = snippets.python(topic, row, desk.console.connection.bootstrap_servers)
        with ui.row().classes("w-full justify-end"):
            ui.button("Copy value", on_click=lambda: _copy(row.value.long)).props("flat")
            ui.button("Copy as curl", on_click=lambda: _copy_curl(topic, row)).props("flat")
            ui.button("Copy as Python", on_click=lambda: _copy(python)).props("flat")


def _part(part: Part) -> None:
    ui.label(part.about if part.kind != "null" else "null").classes("quiet text-sm wrap")
    if part.kind == "null":
        return
    ways = [TREE, TEXT, HEX] if part.kind == "json" else [TEXT, HEX]
    way = ui.toggle(ways, value=HEX if part.kind == "bytes" else ways[0]).props('no-caps padding="3px 14px"')

    @ui.refreshable
    def body() -> None:
        if way.value == TREE:
            ui.tree(tree(part.document), label_key="label").classes("w-full mono").props("dense").expand([""])
        else:
            text = hex_rows(part.data) if way.value == HEX else _pretty(part)
            ui.label(text).classes("mono wrap w-full" if way.value == TEXT else "mono whitespace-pre overflow-x-auto")

    with ui.element("div").classes("w-full overflow-auto").style("max-height: 50vh"):
        body()
    way.on_value_change(body.refresh)


def _pretty(part: Part) -> str:
    if part.kind != "json":
        return part.long
    return clean(json.dumps(part.document, indent=2, ensure_ascii=False, default=str))[: len(part.long) * 4]


def _headers(row: Row) -> None:
    if not row.headers:
        ui.label("The record has no headers.").classes("quiet")
        return
    table = frame.table("name", "value").props("wrap-cells")
    table.rows = [{"name": name, "value": value} for name, value in row.headers]


def _copy(text: str) -> None:
    ui.clipboard.write(text)
    ui.notify("Copied.")


def _copy_curl(topic: str, row: Row) -> None:
    try:
        _copy(snippets.curl(topic, row))
    except Refused as error:
        ui.notify(str(error), type="warning")
