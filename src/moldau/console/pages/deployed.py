"""Parts of the pages of applications: deployed ones, with their verbs, versions and errors; workers and their lanes."""

from __future__ import annotations

from functools import partial

from nicegui import ui

from moldau.console import frame
from moldau.console.model import deployed as model
from moldau.console.page_context import Desk
from moldau.flows import catalog
from moldau.flows.definition import Definition
from moldau.flows.diff import diff_of
from moldau.flows.overview import Overview, WorkerInfo, overviews, workers
from moldau.flows.verbs import VERBS, act

EVERY_S = 3.0
ICONS = {"pause": "pause", "resume": "play_arrow", "restart": "restart_alt", "stop": "stop", "rollback": "undo"}
KINDS_OF_LINES = {"+": "diff-new", "-": "diff-gone", "@": "diff-changed"}


def workers_panel(desk: Desk) -> None:
    """Show the workers and their lanes, if there are any."""
    with frame.panel("Workers"):
        frame.Section(desk, lambda: workers(desk.client), _show_workers, EVERY_S)


def _show_workers(found: list[WorkerInfo]) -> None:
    if not found:
        remedy = "Deployed applications wait for one: `moldau worker` starts it; `moldau up` has one."
        frame.empty("No worker runs.", remedy, "engineering")
        return
    numbers = ("memory", "batches", "batch")
    columns = ("worker", "host", "memory", "lane", "applications", "batches", "batch")
    table = frame.table(*columns, key="place", numbers=numbers, if_wide=("host", "lane", "batches")).props("wrap-cells")
    table.rows = model.worker_rows(found)


def load(desk: Desk, name: str) -> Overview | None:
    """Return a deployed application; None if there is none of that name."""
    known = catalog.read(desk.client)
    return next((one for one in overviews(known, desk.client) if one.name == name), None) if name in known else None


class Deployed:
    """The panel of a deployed application."""

    def __init__(self, desk: Desk, name: str) -> None:
        self._desk, self._name = desk, name
        self._panel = frame.panel("Deployed")
        self._panel.set_visibility(False)
        with self._panel:
            self._section = frame.Section(desk, lambda: load(desk, name), self._show, EVERY_S, still=True)
            self._diff = ui.column().classes("w-full")

    def _show(self, one: Overview | None) -> None:
        self._panel.set_visibility(one is not None)
        if one is None:
            return
        frame.facts(model.facts(one, None if one.figures is None else one.figures.lag))
        for sentence in filter(None, (one.note, one.error)):
            ui.label(sentence).classes("wrap")
        if one.trace:
            with ui.expansion("Trace", value=True).classes("w-full"):
                frame.Words("pre", one.trace).classes("mono wrap")
        with ui.row().classes("items-center gap-2"):
            if self._desk.may_act:
                self._buttons(one)
            if one.previous is not None:
                ui.button("Compare versions", icon="difference", on_click=self._compare).props("outline")

    def _buttons(self, one: Overview) -> None:
        for verb in model.verbs(one):
            made = ui.button(verb.capitalize(), icon=ICONS[verb], on_click=partial(self._act, verb))
            made.props("outline").tooltip(VERBS[verb].doc)
        settings = self._desk.console.connection.kafka_settings
        undeploy = (act, settings, self._desk.client, self._name, "undeploy")
        words = VERBS["undeploy"].doc
        frame.delete_button(self._desk, self._name, words, "/applications", *undeploy, title="Undeploy")

    async def _act(self, verb: str) -> None:
        settings = self._desk.console.connection.kafka_settings
        change = (act, settings, self._desk.client, self._name, verb)
        if await frame.attempt(self._desk, f"{self._name}: {verb} is on its way.", *change):
            await self._section.reload()

    async def _compare(self) -> None:
        def changes() -> str:
            flow = catalog.read(self._desk.client).get(self._name)
            return diff_of(self._desk.client, flow) if isinstance(flow, Definition) else ""

        await frame.fill(self._diff, self._desk, self._desk.ask(changes), _show_diff)


def _show_diff(text: str) -> None:
    if not text:
        frame.empty("Both versions have the same files.", icon="difference")
        return
    with ui.element("div").classes("mono wrap w-full").props('aria-label="Changes of the code"'):
        for line in text.splitlines():
            frame.Words("pre", line or " ").classes(f"wrap q-ma-none {KINDS_OF_LINES.get(line[:1], '')}")
