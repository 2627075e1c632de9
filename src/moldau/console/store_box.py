"""The box that asks the stores of an application: by key, by range, by SQL."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from moldau.admin.connection import Connection
from moldau.console import frame
from moldau.console.model.problems import EXPECTED
from moldau.console.model.stores import KEY, MOST_ROWS, RANGE, SQL, WAYS, Question, table
from moldau.console.page_context import Desk
from moldau.records import stores
from moldau.records.formats import connect_registry
from moldau.serdes.formats import FORMATS

SERVED = "Address of application.server (empty: the changelog is read)"


def answered(connection: Connection, application: str, asked: Question) -> Any:
    """What the application answers, or what its changelog says."""
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
    """The box. Who may only look asks changelogs: an address is asked by the console for whoever types it."""

    async def go() -> None:
        place.clear()
        with place:
            ui.spinner(size="28px").props('aria-label="Loading"')
        asked = question()
        ask = desk.act if asked.address else desk.ask
        try:
            found, problem = await ask(answered, desk.console.connection, application, asked), None
        except EXPECTED as error:
            found, problem = None, desk.problem(error)
        place.clear()
        with place:
            frame.tell(problem) if problem else _shown(found)

    ui.label("Ask its stores").classes("font-semibold q-mt-sm").props("role=heading aria-level=2")
    with ui.row().classes("items-center gap-3"):
        store = ui.select(names, value=names[0], label="Store").props("dense outlined").classes("min-w-40")
        way = ui.toggle(list(WAYS), value=KEY).props("no-caps unelevated")
    boxes = _boxes(way, go)
    more = _more(desk)

    def question() -> Question:
        texts = {name: str(box.value or "") for name, box in {**boxes, **more}.items() if name != "window_size_ms"}
        return Question(store.value, way.value, **texts, window_size_ms=int(more["window_size_ms"].value or 0))

    ui.button("Ask", icon="search", on_click=go).props("no-caps")
    place = ui.column().classes("w-full gap-2")


def _boxes(way: ui.toggle, go: Any) -> dict[str, Any]:
    """A box for each word of a question; only those of the chosen way are seen."""
    boxes: dict[str, Any] = {}
    for of_way, words in ((KEY, {"key": "Key"}), (RANGE, {"low": "From", "high": "To", "prefix": "Prefix"})):
        with ui.row().classes("w-full gap-2").bind_visibility_from(way, "value", value=of_way):
            for name, label in words.items():
                boxes[name] = ui.input(label).props("dense outlined").classes("grow mono")
                boxes[name].on("keydown.enter", go)
    boxes["sql"] = ui.textarea("SQL over stores: select key, value from …").props("dense outlined autogrow")
    boxes["sql"].classes("w-full mono").bind_visibility_from(way, "value", value=SQL)
    return boxes


def _more(desk: Desk) -> dict[str, Any]:
    """Where the store is, and how it is written."""
    more: dict[str, Any] = {}
    with ui.expansion("Where, and how it is written").props("dense").classes("w-full"):
        more["address"] = ui.input(SERVED, placeholder="http://127.0.0.1:7070").props("dense outlined")
        more["address"].classes("w-full mono").set_visibility(desk.may_act)
        with ui.row().classes("w-full gap-2 q-mt-sm"):
            for name, label, choices in (
                ("kind", "Kind", list(stores.Kind)),
                ("key_format", "Format of keys", FORMATS),
                ("value_format", "Format of values", FORMATS),
            ):
                found = [str(one) for one in choices]
                first = "string" if "string" in found else found[0]
                more[name] = ui.select(found, value=first, label=label).props("dense outlined").classes("min-w-40")
            more["window_size_ms"] = ui.number("Windows of, in ms", min=1, precision=0).props("dense outlined")
    return more


def _shown(found: Any) -> None:
    columns, rows = table(found)
    if not rows:
        frame.empty("There is nothing.", "Keys are compared as their format writes them.", "search_off")
        return
    made = frame.table(*columns, key="#").props("wrap-cells").classes("mono")
    made.rows = rows
    if len(rows) == MOST_ROWS:
        ui.label(f"The first {MOST_ROWS}; ask for less to see others.").classes("quiet")
