"""A subject: its versions, two of them side by side, a new one that is checked before it is saved, and who uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nicegui import ui

from moldau.admin.connection import Connection
from moldau.admin.mistakes import Mistake
from moldau.console import frame, paths
from moldau.console.model.problems import EXPECTED
from moldau.console.model.schemas import KINDS, LEVELS, Line, Version, candidate, compared, context_of, topic_of
from moldau.console.page_context import Desk
from moldau.records.subjects import ask, quoted

NOT_FOUND = "(40401)"  # of a subject, at the end of the registry's words
MOST_VERSIONS = 100  # the latest, that are asked for
COLOURS = {"same": "", "gone": "diff-gone", "new": "diff-new", "changed": "diff-changed"}
CSS = """
.diff-gone { background: rgba(197, 48, 48, .16); }
.diff-new { background: rgba(47, 133, 90, .18); }
.diff-changed { background: rgba(183, 121, 31, .18); }
.diff { display: grid; grid-template-columns: 1fr 1fr; width: 100%; }
.diff > div { white-space: pre-wrap; overflow-wrap: anywhere; min-height: 1.3em; padding: 0 6px; }
@media (max-width: 639px) { .diff { font-size: .66rem; } .diff > div { padding: 0 2px; } }
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject as the registry has it: versions, the latest first, how they must fit, and who refers to the latest."""

    name: str
    level: str
    versions: tuple[Version, ...] = ()
    same: tuple[str, ...] = ()
    referenced: tuple[int, ...] = ()


def load(connection: Connection, name: str) -> Subject:
    """One that is not there yet has no versions."""
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
    return Subject(
        name, level, versions, tuple(same), tuple(ask(connection, "GET", f"{path}/{latest[0]}/referencedby"))
    )


def show(desk: Desk) -> None:
    """The page."""
    name = desk.path["name"]
    ui.add_css(CSS)
    acts = frame.heading(name)
    with frame.panel():
        section = frame.Section(
            desk, lambda: load(desk.console.connection, name), lambda found: _shown(desk, found, acts, section)
        )


def _shown(desk: Desk, subject: Subject, acts: ui.row, section: frame.Section[Subject]) -> None:
    acts.clear()
    titles = (["Versions", "Compare", "Use"] if subject.versions else []) + (["New version"] if desk.may_act else [])
    if not titles:
        frame.empty(f"There is no subject {subject.name}.", icon="schema")
        return
    with acts:
        _level(desk, subject, section)
        if desk.may_act and subject.versions:
            _delete(desk, subject.name)
    first = desk.query.get("tab", titles[0])
    with ui.tabs().props("no-caps dense align=left").classes("w-full") as tabs:
        for title in titles:
            ui.tab(title)
    with ui.tab_panels(tabs, value=first if first in titles else titles[0]).classes("w-full bg-transparent"):
        for title in titles:
            with ui.tab_panel(title).classes("q-px-none"):
                TABS[title](desk, subject, section)


def _level(desk: Desk, subject: Subject, section: frame.Section[Subject]) -> None:
    """How versions must fit each other; a choice for who may act."""
    if not desk.may_act:
        ui.badge(subject.level, color="secondary")
        return

    async def change(event: Any) -> None:
        path, body = f"/config/{quoted(subject.name)}", {"compatibility": event.value}
        if await frame.attempt(
            desk, f"Versions must fit: {event.value}.", ask, desk.console.connection, "PUT", path, body
        ):
            await section.reload()

    options = list(dict.fromkeys((subject.level, *LEVELS)))
    box = ui.select(options, value=subject.level, label="Compatibility", on_change=change)
    box.props("dense outlined").classes("w-56")


def _delete(desk: Desk, name: str) -> None:
    async def delete() -> None:
        path = f"/subjects/{quoted(name)}"
        if await frame.attempt(desk, f"Deleted {name}.", ask, desk.console.connection, "DELETE", path):
            ui.navigate.to("/schemas")

    warning = "It is deleted softly: what was written with it can still be read. `moldau schema delete` goes further."
    end = frame.confirm(f"Delete {name}?", warning, name, delete)
    ui.button("Delete", icon="delete", on_click=end.open).props("no-caps outline color=negative")


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
        frame.empty("There is one version only.", "With a second one they stand here side by side.", "difference")
        return

    def draw() -> None:
        place.clear()
        with place:
            _sides(compared(texts[left.value].text, texts[right.value].text))

    with ui.row().classes("w-full gap-3"):
        left = ui.select(numbers, value=numbers[1], label="Version", on_change=lambda: draw())
        right = ui.select(numbers, value=numbers[0], label="Beside version", on_change=lambda: draw())
        for box in (left, right):
            box.props("dense outlined").classes("grow")
    place = ui.element("div").classes("diff mono")
    draw()


def _sides(lines: list[Line]) -> None:
    for line in lines:
        colour = COLOURS[line.what]
        for text, wrong in ((line.left, "new"), (line.right, "gone")):
            ui.label(text).classes("" if line.what == wrong else colour)


def _use(desk: Desk, subject: Subject, section: frame.Section[Subject]) -> None:
    topic = topic_of(subject.name)
    with ui.column().classes("gap-2"):
        if topic:
            with ui.row().classes("gap-1"):
                ui.label(f"By its name it is of the {topic[1]}s of")
                ui.link(topic[0], paths.topic(topic[0])).classes("link")
        for name in subject.same:
            with ui.row().classes("gap-1"):
                ui.label("The latest version is also in")
                ui.link(name, paths.subject(name)).classes("link")
        for number in subject.referenced:
            ui.label(f"The schema with id {number} refers to it.")
        if not (topic or subject.same or subject.referenced):
            ui.label("No topic has its name, no other subject has the same schema, and none refers to it.")


def _new(desk: Desk, subject: Subject, section: frame.Section[Subject]) -> None:
    """A schema that is written, checked against what is there, and saved."""
    latest = subject.versions[0] if subject.versions else None

    def body() -> dict[str, Any]:
        return candidate(kind.value, text.value or "")

    async def check() -> None:
        told.clear()
        try:
            found = await desk.ask(checked, desk.console.connection, subject, body())
        except EXPECTED as error:
            with told:
                frame.tell(desk.problem(error))
            return
        with told:
            _verdict(found)

    async def save() -> None:
        path = f"/subjects/{quoted(subject.name)}/versions"
        try:
            wanted = body()
        except EXPECTED as error:
            told.clear()
            with told:
                frame.tell(desk.problem(error))
            return
        if await frame.attempt(desk, "Saved.", ask, desk.console.connection, "POST", path, wanted):
            await section.reload()

    kind = ui.select(list(KINDS), value=latest.kind if latest else KINDS[0], label="Type")
    kind.props("dense outlined").classes("w-48")
    text = ui.textarea("Schema", value=latest.text if latest else "").props("outlined autogrow spellcheck=false")
    text.classes("w-full mono")
    told = ui.column().classes("w-full gap-1")
    with ui.row().classes("w-full justify-end"):
        ui.button("Check", on_click=check).props("no-caps outline")
        ui.button("Save", on_click=save).props("no-caps")


def checked(connection: Connection, subject: Subject, body: dict[str, Any]) -> list[str]:
    """What stands against a schema as the next version; nothing if it fits, or if it would be the first."""
    if not subject.versions:
        return []
    path = f"/compatibility/subjects/{quoted(subject.name)}/versions?verbose=true"
    answer = ask(connection, "POST", path, body)
    return [] if answer["is_compatible"] else answer.get("messages") or ["It does not fit."]


def _verdict(against: list[str]) -> None:
    if not against:
        with ui.row().classes("items-center gap-2").props("role=status"):
            ui.icon("check_circle", color="positive", size="22px")
            ui.label("It fits.")
        return
    with ui.row().classes("items-start no-wrap gap-2").props("role=alert"):
        ui.icon("error_outline", color="negative", size="22px")
        with ui.column().classes("gap-1"):
            ui.label("It does not fit what is there:").classes("font-semibold")
            for words in against:
                ui.label(words).classes("wrap mono")


TABS = {"Versions": _versions, "Compare": _compare, "Use": _use, "New version": _new}
