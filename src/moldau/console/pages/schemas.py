"""The list of subjects, with search, and a form that leads to a new one."""

from __future__ import annotations

from nicegui import ui

from moldau.console import frame, paths
from moldau.console.model.schemas import topic_of
from moldau.console.page_context import Desk
from moldau.records.subjects import ask


def show(desk: Desk) -> None:
    """Show the page."""
    with frame.heading("Schemas"):
        if desk.may_act:
            ui.button("New schema", icon="add", on_click=_new().open)
    with frame.panel():
        frame.Section(desk, lambda: subjects(desk), _show)


def subjects(desk: Desk) -> list[str]:
    """Return all subjects, in every context."""
    return sorted(ask(desk.console.connection, "GET", "/subjects?subjectPrefix=%3A*%3A"))


def _new() -> ui.dialog:
    """Ask for a name, and lead to the page where a schema is written, checked and saved."""

    def go() -> None:
        if box.value:
            ui.navigate.to(paths.subject(box.value.strip()) + "?tab=New+version")

    with frame.dialog("New schema") as dialog:
        hint = "The subject for the values of the topic orders is orders-value, for its keys orders-key."
        ui.label(hint).classes("wrap")
        box = ui.input("Subject").props("autofocus").classes("w-full")
        box.on("keydown.enter", go)
        with frame.buttons(dialog):
            ui.button("Continue", on_click=go)
    return dialog


def _show(found: list[str]) -> None:
    if not found:
        remedy = "Create one with New schema; producers with a serializer of the registry register theirs themselves."
        frame.empty("There are no schemas yet.", remedy, "schema")
        return
    table = frame.search_table("subject", "topic", "of", if_wide=("topic", "of"))
    frame.link_cell(table, "subject")
    frame.link_cell(table, "topic", "topic_link")
    table.rows = [_cells(name) for name in found]


def _cells(subject: str) -> dict[str, str | None]:
    topic, field = topic_of(subject) or (None, "–")
    return {
        "subject": subject,
        "link": paths.subject(subject),
        "topic": topic or "–",
        "topic_link": paths.topic(topic) if topic else None,
        "of": field,
    }
