"""The page of a subject: versions, two versions side by side, a new version that is checked, and where it is used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from nicegui import ui

from moldau.admin.connection import Connection
from moldau.admin.mistakes import Mistake
from moldau.console import frame, paths
from moldau.console.model.schemas import KINDS, LEVELS, Line, Version, candidate, compare, context_of, topic_of
from moldau.console.page_context import Desk
from moldau.records.subjects import ask, quoted

NOT_FOUND = "(40401)"  # of a subject, at the end of the registry's message
MOST_VERSIONS = 100  # the latest ones, which are loaded
COLOURS = {"same": "", "gone": "diff-gone", "new": "diff-new", "changed": "diff-changed"}


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject: its level, its versions, latest first, subjects with the same schema, and schemas that refer to it."""

    name: str
    level: str
    versions: tuple[Version, ...] = ()
    same: tuple[str, ...] = ()
    referenced: tuple[int, ...] = ()


def load(connection: Connection, name: str) -> Subject:
    """Load a subject. A new one has no versions."""
    path = f"/subjects/{quoted(name)}/versions"
    level = ask(connection, "GET", f"/config/{quoted(name)}?defaultToGlobal=true")["compatibilityLevel"]
    try:
        numbers = ask(connection, "GET", path)
    except Mistake as error:
        if NOT_FOUND not in str(error):
            raise
        return Subject(name, level)
    latest = sorted(numbers, reverse=True)[:MOST_VERSIONS]
    versions = tuple(Version.of(ask(connection, "GET", f"{path}/{number}")) for number in latest)
    used = ask(connection, "GET", f"/schemas/ids/{versions[0].id}/versions?subject={quoted(context_of(name))}")
    same = sorted({row["subject"] for row in used} - {name})
    referenced = ask(connection, "GET", f"{path}/{latest[0]}/referencedby")
    return Subject(name, level, versions, tuple(same), tuple(referenced))


def show(desk: Desk) -> None:
    """Show the page."""
    name, connection = desk.path["name"], desk.console.connection
    acts = frame.heading(name)
    with frame.panel():
        section = frame.Section(desk, lambda: load(connection, name), lambda found: _show(desk, found, acts, section))


def _show(desk: Desk, subject: Subject, acts: ui.row, section: frame.Section[Subject]) -> None:
    acts.clear()
    titles = (["Versions", "Compare", "Use"] if subject.versions else []) + (["New version"] if desk.may_act else [])
    if not titles:
        frame.empty(f"There is no subject {subject.name}.", icon="schema")
        return
    with acts:
        _level(desk, subject, section)
        if desk.may_act and subject.versions:
            warning = "It is deleted softly: old records can still be read. `moldau schema delete` can delete for good."
            change = (ask, desk.console.connection, "DELETE", f"/subjects/{quoted(subject.name)}")
            frame.delete_button(desk, subject.name, warning, "/schemas", *change)
    frame.tabs({title: partial(TABS[title], desk, subject, section) for title in titles}, desk.query.get("tab"))


def _level(desk: Desk, subject: Subject, section: frame.Section[Subject]) -> None:
    """Show the compatibility level, and let users who may act change it."""
    if not desk.may_act:
        ui.badge(subject.level, color="secondary")
        return

    async def change(event: Any) -> None:
        path, body = f"/config/{quoted(subject.name)}", {"compatibility": event.value}
        done = f"Compatibility is now {event.value}."
        if await frame.attempt(desk, done, ask, desk.console.connection, "PUT", path, body):
            await section.reload()

    options = list(dict.fromkeys((subject.level, *LEVELS)))
    ui.select(options, value=subject.level, label="Compatibility", on_change=change).classes("w-56")


def _versions(desk: Desk, subject: Subject, section: frame.Section[Subject]) -> None:
    for version in subject.versions:
        title = f"Version {version.number} · {version.kind} · id {version.id}"
        with ui.expansion(title, value=version is subject.versions[0]).classes("w-full"):
            ui.label(version.text).classes("mono wrap w-full")
            for name in version.references:
                ui.link(f"refers to {name}", paths.subject(name)).classes("link")


def _compare(desk: Desk, subject: Subject, section: frame.Section[Subject]) -> None:
    texts = {version.number: version for version in subject.versions}
    numbers = list(texts)
    if len(numbers) < 2:
        frame.empty("There is only one version.", "Two versions are shown side by side here.", "difference")
        return

    def draw() -> None:
        place.clear()
        with place:
            _sides(compare(texts[left.value].text, texts[right.value].text))

    with ui.row().classes("w-full gap-3"):
        left = ui.select(numbers, value=numbers[1], label="Version", on_change=lambda: draw()).classes("grow")
        right = ui.select(numbers, value=numbers[0], label="Next to version", on_change=lambda: draw()).classes("grow")
    place = ui.element("div").classes("diff mono")
    draw()


def _sides(lines: list[Line]) -> None:
    for line in lines:
        colour = COLOURS[line.what]
        for text, wrong in ((line.left, "new"), (line.right, "gone")):
            ui.label(text).classes("" if line.what == wrong else colour)


def _use(desk: Desk, subject: Subject, section: frame.Section[Subject]) -> None:
    topic = topic_of(subject.name)
    uses = [(f"By its name it describes the {topic[1]}s of", topic[0], paths.topic(topic[0]))] if topic else []
    uses += [("The latest version is also in", name, paths.subject(name)) for name in subject.same]
    with ui.column().classes("gap-2"):
        for words, name, path in uses:
            with ui.row().classes("gap-1"):
                ui.label(words)
                ui.link(name, path).classes("link")
        for number in subject.referenced:
            ui.label(f"The schema with id {number} refers to it.")
        if not (uses or subject.referenced):
            ui.label("It is not named after a topic, no other subject has the same schema, and no schema refers to it.")


def _new(desk: Desk, subject: Subject, section: frame.Section[Subject]) -> None:
    """Make a form in which a schema is written, checked against the existing versions, and saved."""
    latest, connection = subject.versions[0] if subject.versions else None, desk.console.connection

    def body() -> dict[str, Any]:
        return candidate(kind.value, text.value or "")

    async def check() -> None:
        await frame.fill(result, desk, desk.ask(lambda: objections(connection, subject, body())), _verdict)

    async def save() -> None:
        path = f"/subjects/{quoted(subject.name)}/versions"
        if await frame.attempt(desk, "Saved.", lambda: ask(connection, "POST", path, body())):
            await section.reload()

    kind = ui.select(list(KINDS), value=latest.kind if latest else KINDS[0], label="Type").classes("w-48")
    text = ui.textarea("Schema", value=latest.text if latest else "").props("autogrow spellcheck=false")
    text.props(remove="dense").classes("w-full mono")
    result = ui.column().classes("w-full gap-1")
    with ui.row().classes("w-full justify-end"):
        ui.button("Check", on_click=check).props("outline")
        ui.button("Save", on_click=save)


def objections(connection: Connection, subject: Subject, body: dict[str, Any]) -> list[str]:
    """Return why a schema cannot be the next version; nothing if it can, or if it would be the first."""
    if not subject.versions:
        return []
    path = f"/compatibility/subjects/{quoted(subject.name)}/versions?verbose=true"
    answer = ask(connection, "POST", path, body)
    return [] if answer["is_compatible"] else answer.get("messages") or ["It is not compatible."]


def _verdict(against: list[str]) -> None:
    if not against:
        with ui.row().classes("items-center gap-2").props("role=status"):
            ui.icon("check_circle", color="positive", size="22px")
            ui.label("It is compatible.")
        return
    with ui.row().classes("items-start no-wrap gap-2").props("role=alert"):
        ui.icon("error_outline", color="negative", size="22px")
        with ui.column().classes("gap-1"):
            ui.label("It is not compatible with the existing versions:").classes("font-semibold")
            for words in against:
                ui.label(words).classes("wrap mono")


TABS = {"Versions": _versions, "Compare": _compare, "Use": _use, "New version": _new}
