"""The message browser: records of a topic by partition, offset and time, the newest, or live; and a search."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui

from moldau.admin import resets, topics
from moldau.console import frame, paths
from moldau.console.browsing import Tail, Wanted, read
from moldau.console.decoding import Decoder
from moldau.console.model import figures
from moldau.console.model.problems import EXPECTED, Refused
from moldau.console.model.records import Row, as_csv, json_lines
from moldau.console.page_context import Desk
from moldau.console.pages.producing import produce_dialog
from moldau.console.pages.record import open_record
from moldau.extras import NotInstalled, require
from moldau.records.positions import BEGINNING, Span

if TYPE_CHECKING:
    from moldau.console.search.scanning import Search

ALL = "all"
NEWEST, OLDEST, OFFSET, TIME, LIVE = "Newest", "Oldest", "From offset", "From time", "Live"
STARTS = (NEWEST, OLDEST, OFFSET, TIME, LIVE)
LIMITS = (25, 50, 100, 500, 1000)
KEPT = 1000  # rows of a live view
FOUND = 500  # rows of a search
TAIL_S, PROGRESS_S = 0.6, 0.25
HINT = "e.g. value.amount > 1000 and key like 'eu-%'   or words"
# The parent of a cell is the scrolling element, not the table.
OPEN_CELL = """
<q-td :props="props"><q-btn flat dense no-caps class="mono text-primary" :label="String(props.value)"
  :aria-label="'Open offset ' + props.value" @click="() => {
    let at = $parent; while (at.$options.name !== 'QTable') at = at.$parent; at.$emit('look', props.row.id) }" /></q-td>
"""
TEXT_CELL = """
<q-td :props="props" class="mono" style="max-width: min(32rem, 42vw); overflow: hidden; text-overflow: ellipsis">
{{ props.value }}</q-td>
"""


def show(desk: Desk) -> None:
    """Show the page."""
    Browser(desk, desk.path["name"]).show()


COLUMNS = ("partition", "offset", "time", "key", "value", "size")


class Browser:
    """What one user sees: the controls above, the records below."""

    def __init__(self, desk: Desk, topic: str) -> None:
        self._desk, self.topic = desk, topic
        self._decoder = Decoder(topic, lambda: desk.console.registry)
        self.rows: Sequence[Row] = ()
        self._search: Search | None = None
        self._tail: Tail | None = None
        self._table: ui.table | None = None
        self._looking = False
        self._turn = 0  # counts reads and searches: only the result of the last one is shown

    def show(self) -> None:
        with frame.heading(self.topic):
            frame.link_button("Topic", "view_list", paths.topic(self.topic))
            self._export()
            if self._desk.may_act:
                ui.button("Produce", icon="send", on_click=produce_dialog(self._desk, self.topic, self.go).open)
        with frame.panel():
            self._choice()
        with frame.panel():
            self._status = ui.label().classes("quiet text-sm wrap").props("role=status")
            self._bar = ui.linear_progress(0, show_value=False).props('aria-label="Progress of the search"')
            self._bar.set_visibility(False)
            self._place = ui.column().classes("w-full gap-0")
        self._timer = ui.timer(PROGRESS_S, self._update, active=False)
        ui.timer(0, self.go, once=True)
        ui.timer(0, self._partitions, once=True)
        ui.context.client.on_disconnect(self._stop)

    def _choice(self) -> None:
        asked = self._desk.query
        with ui.row().classes("w-full items-start gap-3"):
            chosen = asked.get("partition", ALL)
            self._partition = ui.select([ALL, chosen] if chosen != ALL else [ALL], value=chosen, label="Partition")
            start = asked.get("start", NEWEST)
            self._start = ui.select(list(STARTS), value=start, label="Start", on_change=self._started)
            self._position = ui.input("Offset", value=asked.get("at", ""))
            self._limit = ui.select(list(LIMITS), value=50, label="At most")
            for box in (self._partition, self._start, self._position, self._limit):
                box.props("options-dense").classes("w-32")
            self._position.classes(remove="w-32", add="w-52")
            self._position.on("keydown.enter", self.go)
        with ui.row().classes("w-full items-start sm:flex-nowrap gap-3"):
            box = ui.input("Search key, value and headers", placeholder=HINT, value=asked.get("search", ""))
            self._text = box.props("clearable").classes("grow max-sm:w-full mono")
            self._text.on("keydown.enter", self.go)
            self._read = ui.button("Read", icon="refresh", on_click=self.go)
            self._cancel = ui.button("Stop", icon="stop", on_click=self._stop).props("color=negative outline")
            self._cancel.set_visibility(False)
        self._started()

    def _started(self) -> None:
        self._position.set_visibility(self._start.value in (OFFSET, TIME))
        label = "Time, e.g. -1h or 2026-11-15T10:00" if self._start.value == TIME else "Offset"
        self._position.props(f'label="{label}"')

    async def _partitions(self) -> None:
        try:
            [state] = await self._desk.ask(topics.described, self._desk.client, [self.topic])
        except EXPECTED:
            return  # reading the records reports the problem
        self._partition.set_options([ALL, *(str(part.index) for part in state.partitions)], value=self._partition.value)

    def wanted(self) -> Wanted:
        """Return what the controls ask for; Refused if that makes no sense."""
        given, text = str(self._partition.value), (self._position.value or "").strip()
        partition = None if given == ALL else int(given) if given.isdecimal() else -1
        most = int(self._limit.value)
        match self._start.value:
            case "Oldest":
                span = Span(word=BEGINNING)
            case "From offset":
                if not text.isdecimal() or len(text) > 18:
                    raise Refused("An offset is a whole number.")
                span = Span(offset=int(text))
            case "From time":
                span = Span(since_ms=resets.moment_ms(text))
            case _:
                span = Span(last=most)
        if (self._text.value or "").strip() and span.last is not None:
            span = Span(word=BEGINNING)  # a search reads all of it
        return Wanted(self.topic, partition, span, most)

    async def go(self) -> None:
        """Read, search or watch, as the controls say."""
        self._stop()
        self._turn += 1
        turn = self._turn
        try:
            wanted, text = self.wanted(), (self._text.value or "").strip()
            if self._start.value == LIVE:
                self._tail = Tail(self._desk.client, wanted, self._decoder)
                self._start_timer(TAIL_S, deque(maxlen=KEPT), "Waiting for records…")
            elif text:
                await self._run_search(wanted, text, turn)
            else:
                self._status.text = "Reading…"
                rows = await self._desk.ask(read, self._desk.client, wanted, self._decoder)
                if turn == self._turn:
                    self.fill(rows, f"{len(rows)} records")
        except EXPECTED as error:
            if turn == self._turn:
                self._stop()
                self._tell(error)

    def _start_timer(self, every_s: float, rows: Any, words: str) -> None:
        self.fill(rows, words)
        self._cancel.set_visibility(True)
        self._timer.interval = every_s
        self._timer.activate()

    async def _run_search(self, wanted: Wanted, text: str, turn: int) -> None:
        desk, decoder = self._desk, self._decoder

        def prepare() -> Any:  # importing takes a second, and only a search needs it
            try:
                require("console", "The search", "duckdb", "pyarrow")
            except NotInstalled as error:
                raise Refused(str(error)) from None
            from moldau.console.search import expression, scanning

            return scanning, expression.condition(text), scanning.Search(FOUND)

        self._status.text = "Searching…"
        scanning, condition, search = await desk.ask(prepare)
        self._search = search
        self._start_timer(PROGRESS_S, [], "Searching…")
        self._bar.set_visibility(True)
        await desk.ask(scanning.run, search, desk.client, wanted, condition, decoder, lambda: desk.console.registry)
        if turn == self._turn:
            self._search = None
            self._stop()
            self.fill(search.rows, summary(search))

    async def _update(self) -> None:
        if self._tail is not None and not self._looking:
            self._looking = True
            try:
                await self._look(self._tail)
            finally:
                self._looking = False
        elif self._search is not None:
            self._bar.value = self._search.progress
            self._status.text = summary(self._search)
            if len(self._search.rows) != len(self.rows):
                self.fill(list(self._search.rows), summary(self._search))

    async def _look(self, tail: Tail) -> None:
        try:
            found = await self._desk.ask(tail.look)
        except EXPECTED as error:
            self._stop()
            self._tell(error)
            return
        if tail is self._tail:
            rows: deque[Row] = deque(self.rows, maxlen=KEPT)
            rows.extendleft(reversed(found))
            at = figures.moment(time.time_ns() // 1_000_000)
            words = f"Live: {len(rows)} records. Last update: {at}."
            if found or not self.rows:
                self.fill(rows, words)
            self._status.text = words

    def _stop(self) -> None:
        """Stop the search or the live view."""
        if self._search is not None:
            self._search.cancelled.set()
            self._search = None
        self._tail = None
        self._timer.deactivate()
        self._cancel.set_visibility(False)
        self._bar.set_visibility(False)

    def _tell(self, error: Exception) -> None:
        self._status.text, self.rows = "", ()
        self._clear()
        with self._place:
            frame.tell(self._desk.problem(error))

    def _clear(self) -> None:
        self._table = None
        self._place.clear()

    def fill(self, rows: Sequence[Row], words: str) -> None:
        """Show these records."""
        self.rows, self._status.text = rows, words
        if not rows:
            self._clear()
            if self._tail is None and self._search is None:
                with self._place:
                    frame.empty("There are no records here.", "Choose another start, or produce one.", "mail")
            return
        if self._table is None:
            self._clear()
            with self._place:
                self._table = self._empty_table()
        self._table.rows = [row.cells() for row in rows]

    def _empty_table(self) -> ui.table:
        table = frame.table(*COLUMNS, key="id", numbers=("size",), if_wide=("partition", "time", "size"))
        table.add_slot("body-cell-offset", OPEN_CELL)
        for name in ("key", "value"):
            table.add_slot(f"body-cell-{name}", TEXT_CELL)
        table.on("look", lambda event: self._open(event.args))
        return table.props("virtual-scroll").style("max-height: 65vh")

    def _open(self, id: str) -> None:
        row = next((row for row in self.rows if row.id == id), None)
        if row is not None:
            open_record(self._desk, self.topic, row)

    def _export(self) -> None:
        with ui.button("Export", icon="download").props("outline"), ui.menu():
            ui.menu_item("JSON lines", lambda: ui.download.content(json_lines(self.rows), f"{self.topic}.jsonl"))
            ui.menu_item("CSV", lambda: ui.download.content(as_csv(self.rows), f"{self.topic}.csv"))


def summary(search: Search) -> str:
    """Say how far a search is, or how it ended."""
    rate = figures.count(search.rate)
    seen = f"{search.scanned:,} of {search.total:,} records, {rate} per second, {len(search.rows)} found"
    if search.ended is None:
        return f"Searching: {seen}"
    if search.has_enough:
        return f"Searched {seen}. There may be more: narrow the search, or start later."
    return f"{'Stopped' if search.cancelled.is_set() else 'Searched'}: {seen}"
