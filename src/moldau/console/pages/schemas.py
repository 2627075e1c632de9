"""The schemas: all subjects, with search, and a form that makes one."""

from __future__ import annotations

from nicegui import ui

from moldau.console import frame, paths
from moldau.console.model.schemas import topic_of
from moldau.console.page_context import Desk
from moldau.records.subjects import ask


def show(desk: Desk) -> None:
    """The page."""
    with frame.heading("Schemas"):
        if desk.may_act:
            ui.button("New schema", icon="add", on_click=_new().open).props("no-caps")
    with frame.panel():
        frame.Section(desk, lambda: subjects(desk), _shown)


def subjects(desk: Desk) -> list[str]:
    """All of them, in every context."""
    return sorted(ask(desk.console.connection, "GET", "/subjects?subjectPrefix=%3A*%3A"))


def _new() -> ui.dialog:
    """A name leads to the page where a schema is written, checked and saved."""

    def go() -> None:
        if box.value:
            ui.navigate.to(paths.subject(box.value.strip()) + "?tab=New+version")

    with ui.dialog() as dialog, ui.card().classes("q-pa-md gap-3 w-96 max-w-full"):
        ui.label("New schema").classes("text-lg font-semibold")
        ui.label("The values of the topic orders have the subject orders-value, its keys orders-key.").classes("wrap")
        box = ui.input("Subject").props("dense outlined autofocus").classes("w-full")
        box.on("keydown.enter", go)
        with ui.row().classes("w-full justify-end"):
            ui.button("Leave it", on_click=dialog.close).props("flat no-caps")
            ui.button("Go on", on_click=go).props("no-caps")
    return dialog


def _shown(found: list[str]) -> None:
    if not found:
        remedy = "Make one with New schema; producers with a serializer of the registry make theirs by themselves."
        frame.empty("There is no schema yet.", remedy, "schema")
        return
    box = ui.input("Search").props("dense outlined clearable debounce=150").classes("w-full")
    table = frame.table("subject", "topic", "of", if_wide=("topic", "of")).props("wrap-cells")
    frame.link_cell(table, "subject")
    frame.link_cell(table, "topic", "topic_link")
    table.rows = [_cells(name) for name in found]
    table.bind_filter_from(box, "value", lambda text: text or "")
    frame.paged(table)


def _cells(subject: str) -> dict[str, str | None]:
    topic, field = topic_of(subject) or (None, "–")
    return {
        "subject": subject,
        "link": paths.subject(subject),
        "topic": topic or "–",
        "topic_link": paths.topic(topic) if topic else None,
        "of": field,
    }
