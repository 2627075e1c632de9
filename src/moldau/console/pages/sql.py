"""The SQL editor: statements with completion, results as they come, and a plot of the numbers in them."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from moldau.console import charts, frame
from moldau.console.model import sql as model
from moldau.console.model.problems import EXPECTED
from moldau.console.page_context import READ_ONLY, Desk
from moldau.console.sql_run import Run
from moldau.sql.shell.completing import complete
from moldau.sql.shell.names import Names, load
from moldau.sql.shell.remote import Scope, Server
from moldau.sql.shell.statements import split

EVERY_S = 0.3
PROPOSED = 12
PLOT_PX = 220
FIRST = "SHOW STREAMS;"
KINDS = {"error": "text-negative", "hint": "text-warning"}
# The cursor of a text area is known to the browser alone.
TYPED = "(event) => emit(event.target.value, event.target.selectionStart, event.key)"


def show(desk: Desk) -> None:
    """Show the page."""
    Editor(desk).show()


class Editor:
    """What one user sees: the statements above, the results below."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._url = desk, desk.console.sql_url
        self._scope = Scope({"auto.offset.reset": "earliest"})
        self._run: Run | None = None
        self._names: Names | None = None
        self._typings = 0
        self._shown = (0, 0)  # columns and rows
        self._table: ui.table | None = None

    def show(self) -> None:
        with frame.heading("SQL", self._url):
            frame.link_button("Queries", "bolt", "/sql/queries")
        with frame.panel():
            self._box = ui.textarea(value=self._desk.query.get("sql", FIRST))
            self._box.props('autogrow outlined spellcheck=false aria-label="Statements"').classes("w-full mono")
            self._box.on("keyup", self._typed, js_handler=TYPED)
            self._box.on("keydown.ctrl.enter", self._go)
            self._proposals = ui.row().classes("w-full gap-1").props('role=listbox aria-label="Completions"')
            with ui.row().classes("items-center gap-2"):
                self._start = ui.button("Run", icon="play_arrow", on_click=self._go).tooltip("Ctrl+Enter")
                self._stop = ui.button("Stop", icon="stop", on_click=self._end).props("color=negative outline")
                self._stop.set_visibility(False)
                self._status = ui.label().classes("quiet text-sm").props("role=status")
        with frame.panel():
            self._lines = ui.column().classes("w-full gap-0").props('aria-label="Answers"')
            self._place = ui.column().classes("w-full gap-0")
            self._plot = ui.column().classes("w-full")
        self._timer = ui.timer(EVERY_S, self._update, active=False)
        ui.context.client.on_disconnect(self._end)

    # Completion

    async def _typed(self, event: Any) -> None:
        text, cursor, key = event.args
        self._typings = newest = self._typings + 1
        if key == "Escape":
            self._proposals.clear()
            return
        if self._names is None:
            try:
                self._names = await self._desk.ask(self._load)
            except EXPECTED:
                return  # running a statement reports the problem
            if newest != self._typings:
                return  # the next key's completions are on their way
        found = complete(text[:cursor], text[cursor:], self._names)[:PROPOSED] if text[:cursor].strip() else []
        self._proposals.clear()
        with self._proposals:
            for one in found:
                take = partial(self._take, text[: cursor - one.replaces] + one.text, text[cursor:])
                made = ui.button(one.text, on_click=take).props("flat dense size=sm role=option").classes("mono")
                if one.remark:
                    made.tooltip(one.remark)

    def _load(self) -> Names:
        server = Server(self._url)
        try:
            return load(server)
        finally:
            server.close()

    def _take(self, before: str, after: str) -> None:
        self._box.set_value(before + after)
        self._proposals.clear()
        self._box.run_method("focus")

    # Running

    async def _go(self) -> None:
        self._end()
        statements, rest = split(self._box.value or "")
        if rest:
            statements.append(rest)  # the last one may lack its semicolon
        if not self._desk.may_act and not all(map(model.only_looks, statements)):
            ui.notify(READ_ONLY, type="negative", multi_line=True)
            return
        begin = self._desk.ask if all(map(model.only_looks, statements)) else self._desk.act
        try:
            self._run = await begin(Run(self._url, statements, self._scope).start)
        except EXPECTED as error:
            ui.notify(self._desk.problem(error).sentence, type="negative", multi_line=True)
            return
        self._names, self._shown, self._table = None, (0, 0), None
        for place in (self._proposals, self._lines, self._place, self._plot):
            place.clear()
        self._stop.set_visibility(True)
        self._timer.activate()
        self._update()

    def _end(self) -> None:
        if self._run is not None and not self._run.done:
            self._run.stop()

    def _update(self) -> None:
        run = self._run
        if run is None:
            return
        done = run.done  # read first: what comes before it is shown
        self._tell(run)
        seen = (len(run.columns), run.count)
        if seen != self._shown:
            self._shown = seen
            self._show_rows(run)
        words = f"{run.count} rows" if run.columns else ""
        self._status.set_text(f"{words}{'' if done else ' so far' if words else 'Running …'}")
        if done:
            self._timer.deactivate()
            self._stop.set_visibility(False)

    def _tell(self, run: Run) -> None:
        with self._lines:
            while run.lines:
                line, meaning = run.lines.popleft()
                frame.Words("pre", line or " ").classes(f"mono q-ma-none {KINDS.get(meaning, '')}")

    def _show_rows(self, run: Run) -> None:
        rows = list(run.rows)
        if run.columns and self._table is None:
            with self._place:
                self._table = frame.table(*(f"c{at}" for at in range(len(run.columns))), key="id").props("wrap-cells")
            for column, name in zip(self._table.columns, run.columns, strict=True):
                column["label"] = name
            with self._plot:
                self._chart = charts.Lines(PLOT_PX, "Numbers of the rows as they came")
        if self._table is None:
            return
        first = run.count - len(rows)
        self._table.rows = [model.row(run.columns, values, first + at) for at, (_, values) in enumerate(rows)]
        lines = model.numbers(run.columns, rows)
        self._plot.set_visibility(bool(lines))
        self._chart.fill(lines)
