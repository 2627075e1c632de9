"""The form that queries the stores of an application: by key, by range, by SQL."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from moldau.admin.connection import Connection
from moldau.console import frame
from moldau.console.model.stores import KEY, MOST_ROWS, RANGE, SQL, WAYS, Question, table
from moldau.console.page_context import Desk
from moldau.records import stores
from moldau.records.formats import connect_registry
from moldau.serdes.formats import FORMATS

SERVED = "Address of application.server (empty: read the changelog)"


def query(connection: Connection, application: str, asked: Question) -> Any:
    """Ask the application, or read the store's changelog if there is no address."""
    asked.check()
    key, sql = asked.key if asked.way == KEY else "", asked.sql if asked.way == SQL else ""
    if asked.address:
        return stores.over_http(asked.address, asked.store, key, sql, asked.parameters)
    serdes = (
        stores.serde_of(name, partial(connect_registry, connection)) for name in (asked.key_format, asked.value_format)
    )
    spec = stores.spec_of(asked.store, stores.Kind(asked.kind), asked.window_size_ms, *serdes)
    served = stores.by_id(application, spec, connection.kafka_settings)
    return stores.of_views(served, asked.store, key, sql, asked.parameters)


def store_box(desk: Desk, application: str, names: list[str]) -> None:
    """Make the form. A read-only user can query changelogs only: for an address the console sends requests there."""

    async def go() -> None:
        place.clear()
        with place:
            frame.loading()
        asked = question()
        ask = desk.act if asked.address else desk.ask
        await frame.fill(place, desk, ask(query, desk.console.connection, application, asked), _show)

    frame.subheading("Query its stores")
    with ui.row().classes("items-center gap-3"):
        store = ui.select(names, value=names[0], label="Store").classes("min-w-40")
        way = ui.toggle(list(WAYS), value=KEY).props("no-caps unelevated")
    boxes = _boxes(way, go)
    more = _more(desk)

    def question() -> Question:
        texts = {name: str(box.value or "") for name, box in {**boxes, **more}.items() if name != "window_size_ms"}
        return Question(store.value, way.value, **texts, window_size_ms=int(more["window_size_ms"].value or 0))

    ui.button("Query", icon="search", on_click=go)
    place = ui.column().classes("w-full gap-2")


def _boxes(way: ui.toggle, go: Any) -> dict[str, Any]:
    """Make an input for each part of a question; only those of the chosen way are visible."""
    boxes: dict[str, Any] = {}
    for of_way, words in ((KEY, {"key": "Key"}), (RANGE, {"low": "From", "high": "To", "prefix": "Prefix"})):
        with ui.row().classes("w-full gap-2").bind_visibility_from(way, "value", value=of_way):
            for name, label in words.items():
                boxes[name] = ui.input(label).classes("grow mono")
                boxes[name].on("keydown.enter", go)
    boxes["sql"] = ui.textarea("SQL over stores: select key, value from …").props("autogrow")
    boxes["sql"].classes("w-full mono").bind_visibility_from(way, "value", value=SQL)
    return boxes


def _more(desk: Desk) -> dict[str, Any]:
    """Make the inputs for the location of the store and the formats of its entries."""
    more: dict[str, Any] = {}
    with ui.expansion("Location and formats").props("dense").classes("w-full"):
        more["address"] = ui.input(SERVED, placeholder="http://127.0.0.1:7070")
        more["address"].classes("w-full mono").set_visibility(desk.may_act)
        with ui.row().classes("w-full gap-2 q-mt-sm"):
            for name, label, choices in (
                ("kind", "Kind", list(stores.Kind)),
                ("key_format", "Format of keys", FORMATS),
                ("value_format", "Format of values", FORMATS),
            ):
                names = [str(one) for one in choices]
                first = "string" if "string" in names else names[0]
                more[name] = ui.select(names, value=first, label=label).classes("min-w-40")
            more["window_size_ms"] = ui.number("Window size in ms", min=1, precision=0)
    return more


def _show(found: Any) -> None:
    columns, rows = table(found)
    if not rows:
        frame.empty("Nothing was found.", "Keys are compared in their serialized form.", "search_off")
        return
    made = frame.table(*columns, key="#").props("wrap-cells").classes("mono")
    made.rows = rows
    if len(rows) == MOST_ROWS:
        ui.label(f"The first {MOST_ROWS}; narrow the query to see others.").classes("quiet")
