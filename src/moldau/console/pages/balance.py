"""The page Balance: a plan that spreads replicas evenly, which can be carried out, paused, resumed and cancelled."""

from __future__ import annotations

from nicegui import ui

from moldau.admin import clusters
from moldau.balance.journal import RUNNING
from moldau.balance.moves import Plan, summary
from moldau.balance.progress import Wish
from moldau.console import charts, frame
from moldau.console.balancing import Watched
from moldau.console.model import balance as model
from moldau.console.model import figures
from moldau.console.model.problems import Refused
from moldau.console.page_context import Desk

EVERY_S = 2.0
RATE_MB = 50
CHANGES = ("leads", "replicas", "size")


def show(desk: Desk) -> None:
    """Show the page."""
    frame.heading("Balance")
    running = frame.Section(desk, desk.console.balancing.watch, lambda seen: _run(desk, seen), EVERY_S, still=True)
    with frame.panel("Plan"):
        text = "few moves that spread bytes, leaders and replicas over the brokers, with racks and disks respected"
        ui.label(text).classes("quiet text-sm")
        frame.Section(desk, lambda: clusters.described(desk.client), lambda state: _plan(desk, state, running))


def _plan(desk: Desk, state: clusters.ClusterState, running: frame.Section[Watched | None]) -> None:
    if len(state.brokers) < 2:
        frame.empty("With one broker there is nothing to balance.", icon="balance")
    else:
        Planning(desk, state, running)


def _run(desk: Desk, seen: Watched | None) -> None:
    """Show the last run: how far it is, and what can be done about it."""
    if seen is None:
        return
    run, now = seen.run, seen.progress
    with frame.panel("Last plan" if run.is_over else "Plan under way"):
        begun = figures.moment(run.begun_ms).partition(".")[0]
        rate = f"{figures.size(run.throttle)}/s for each broker" if run.throttle else "without a throttle"
        ui.label(f"{run.purpose}, begun {begun}, {rate}").classes("quiet text-sm")
        ui.label(model.state_words(run.state)).props("role=status").classes("wrap")
        if run.is_over:
            return
        with ui.row().classes("w-full items-center no-wrap gap-3"):
            ui.linear_progress(round(model.share(now), 3), show_value=False, size="10px").props("rounded")
            ui.label(model.progress_words(now)).classes("whitespace-nowrap")
        for trouble in (*now.trouble, *filter(None, (seen.error,))):
            ui.label(f"Waiting: {trouble}.").classes("quiet wrap")
        if desk.may_act:
            _steering(desk, seen)


STEERING = (
    ("Pause", "pause", Wish.PAUSE, "Moves under way come to their end; no more begin."),
    ("Resume", "play_arrow", Wish.RUN, "The plan goes on."),
    ("Cancel", "cancel", Wish.CANCEL, "Moves under way are called off; what was moved stays."),
)


def _steering(desk: Desk, seen: Watched) -> None:
    is_busy = seen.run.state == RUNNING and seen.is_ours
    with ui.row().classes("gap-2"):
        for title, icon, wish, done in STEERING:
            if (wish is Wish.RUN and is_busy) or (wish is Wish.PAUSE and seen.run.state != RUNNING):
                continue

            async def go(wish: Wish = wish, done: str = done) -> None:
                await frame.attempt(desk, done, desk.console.balancing.steer, wish)

            button = ui.button(title, icon=icon, on_click=go).props("outline")
            if wish is Wish.CANCEL:
                button.props("color=negative")


class Planning:
    """The form of a plan, what it comes to, and the button that carries out just that."""

    def __init__(self, desk: Desk, state: clusters.ClusterState, running: frame.Section[Watched | None]) -> None:
        self._desk, self._running = desk, running
        self._plan: Plan | None = None
        with ui.row().classes("items-center gap-3"):
            brokers = {one.id: f"broker {one.id}" for one in state.brokers}
            self._drain = ui.select(brokers, multiple=True, value=[], label="Empty these brokers").classes("w-56")
            self._rate = ui.number("Throttle, MB/s", value=RATE_MB, min=0, precision=1).classes("w-36")
            ui.button("Plan", icon="refresh", on_click=self.plan).props("outline")
        self._drain.on_value_change(self.plan)
        self._rate.on_value_change(self._tell)
        self._place = ui.column().classes("w-full gap-2")
        self._dialog, self._words = self._confirmation()
        ui.timer(0, self.plan, once=True)

    @property
    def rate(self) -> int:
        """Return the throttle in bytes a second; 0 does not throttle."""
        return round((self._rate.value or 0) * model.MB)

    async def plan(self) -> None:
        self._plan = None
        with self._place:
            self._place.clear()
            frame.loading()
        planned = self._desk.ask(self._desk.console.balancing.plan, list(self._drain.value))
        await frame.fill(self._place, self._desk, planned, self._show)

    def _show(self, made: Plan) -> None:
        self._plan = made
        self._summary = ui.label().props("role=status").classes("text-base wrap")
        self._tell()
        for problem in made.problems:
            ui.label(problem).classes("quiet wrap")
        table = frame.table("broker", "rack", *CHANGES, numbers=CHANGES, if_wide=("rack",))
        table.rows = model.load_rows(made)
        if not made.moves:
            return
        self._draw(made)
        if self._desk.may_act:
            ui.button("Carry out", icon="play_arrow", on_click=self.ask)
        with ui.expansion(f"{len(made.moves):,} moves").classes("w-full"):
            moves = frame.table("partition", "now", "then", "copies", numbers=("copies",))
            frame.link_cell(moves, "partition")
            moves.rows = model.move_rows(made)
            if len(made.moves) > model.MOST:
                ui.label(f"and {len(made.moves) - model.MOST:,} more").classes("quiet")

    def _tell(self) -> None:
        """Sum the plan up; how long it takes depends on the throttle."""
        if self._plan is not None:
            self._summary.set_text(summary(self._plan, self.rate, figures.size))

    def _draw(self, made: Plan) -> None:
        loads = made.loads()
        names = [f"broker {id}" for id in loads]
        with ui.grid().classes("w-full gap-4 grid-cols-1 lg:grid-cols-2"):
            for title, read, unit in (("replicas", "replicas", ""), ("size", "bytes", " MB")):
                scale = model.MB if unit else 1
                parts = {
                    word: [round(getattr(pair[when], read) / scale, 1) for pair in loads.values()]
                    for when, word in enumerate(("now", "then"))
                }
                with ui.column().classes("w-full gap-0"):
                    ui.label(title.capitalize()).classes("quiet text-sm")
                    charts.bars(names, parts, f"{title.capitalize()} of each broker", unit, stacked=False)

    def _confirmation(self) -> tuple[ui.dialog, ui.label]:
        with frame.dialog("Carry out this plan?") as made:
            words = ui.label("").classes("wrap")
            text = "Clients go on meanwhile. The plan can be paused and cancelled on this page."
            ui.label(text).classes("quiet wrap")
            with frame.buttons(made, "Close"):
                ui.button("Carry out", on_click=self.carry_out)
        return made, words

    def ask(self) -> None:
        if self._plan is not None:
            self._words.set_text(summary(self._plan, self.rate, figures.size))
            self._dialog.open()

    async def carry_out(self) -> None:
        """Hand in the plan that is shown, and no other."""
        purpose = f"drain {', '.join(map(str, self._drain.value))}" if self._drain.value else "balance"
        if await frame.attempt(self._desk, "The plan is under way.", self._begin, self._plan, purpose, self.rate):
            self._dialog.close()
            self._plan = None
            self._place.clear()
            with self._place:
                ui.label("Plan again when the plan under way has ended.").classes("quiet")
            await self._running.reload()

    def _begin(self, made: Plan | None, purpose: str, rate: int) -> None:
        if made is None:
            raise Refused("There is no plan any more: make a new one.")
        self._desk.console.balancing.begin(made, purpose, rate)
