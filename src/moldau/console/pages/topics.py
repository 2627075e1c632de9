"""The topics: a list with search and sizes, a page of it at a time; and a form that makes one."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from moldau.admin import offsets, topics
from moldau.client import Client, ClientError, Error
from moldau.console import frame, paths
from moldau.console.model import figures
from moldau.console.model.problems import EXPECTED
from moldau.console.model.topics import SORTS, Chosen, TopicRow, choose, new_topic, rows, weighed
from moldau.console.page_context import Desk

AT_ONCE = 50
COLUMNS = ("name", "partitions", "replicas", "records", "records/s", "size", "state")
NONE = "There is no such topic. New topic makes one; Internal shows those that the platform keeps for itself."
NUMBERS = ("partitions", "replicas", "records", "records/s", "size")


def show(desk: Desk) -> None:
    """The page."""
    listing = Listing(desk)
    with frame.heading("Topics"):
        if desk.may_act:
            dialog = creation(desk, listing)
            ui.button("New topic", icon="add", on_click=dialog.open).props("no-caps")
    with frame.panel():
        listing.controls()
        listing.section = frame.Section(desk, listing.load, listing.shown)


class Listing:
    """The list as one user sees it: what is searched for, how it is sorted, and which page of it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.search, self.sort, self.internal, self.page = desk.query.get("search", ""), "name", False, 0
        self.known: list[TopicRow] = []
        self.section: frame.Section[list[TopicRow]] | None = None

    def load(self) -> list[TopicRow]:
        """All topics. Their sizes take longer to find out, and follow."""
        return rows(topics.listed(self._desk.client), self._desk.console.sampler.history.rates())

    async def _weigh(self) -> None:
        """Add the sizes; where brokers do not tell they are left out."""
        try:
            sizes = await self._desk.ask(topics.sizes, self._desk.client)
        except EXPECTED:
            return
        self.known = weighed(self.known, sizes)
        self.draw()

    def controls(self) -> None:
        with ui.row().classes("w-full items-center gap-3"):
            box = ui.input("Search", value=self.search, on_change=self.again).props(
                "dense outlined clearable debounce=150"
            )
            box.bind_value_to(self, "search", lambda text: text or "").classes("grow")
            ui.select(list(SORTS), value=self.sort, label="Sort by", on_change=self.again).props(
                "dense outlined"
            ).classes("w-32").bind_value_to(self, "sort")
            ui.checkbox("Internal", on_change=self.again).bind_value_to(self, "internal")

    def shown(self, found: list[TopicRow]) -> None:
        self.known = found
        if not found:
            frame.empty("There is no topic yet.", "Make one with New topic, or `moldau topic create NAME`.")
            return
        self._count = ui.label().classes("quiet text-sm").props("role=status")
        wide = ("partitions", "replicas", "records/s", "state")
        self._table = frame.table(*COLUMNS, numbers=NUMBERS, if_wide=wide, none=NONE)
        self._table.props("wrap-cells")
        frame.link_cell(self._table, "name")
        with ui.row().classes("w-full justify-center items-center"):
            self._pager = ui.pagination(1, 1, direction_links=True, on_change=self._turn).props("max-pages=7")
        self.draw()
        ui.timer(0, self._weigh, once=True)

    async def again(self) -> None:
        self.page = 0
        if self.known:
            self.draw()

    def _turn(self, event: Any) -> None:
        if event.value - 1 != self.page:
            self.page = event.value - 1
            self.draw()

    def draw(self) -> None:
        """Show the page; how many records there are is asked for this page alone."""
        chosen = choose(self.known, self.search, self.internal, self.sort, self.page, AT_ONCE)
        self.page = chosen.page
        self._pager.max = chosen.pages
        self._pager.value = chosen.page + 1
        self._pager.set_visibility(chosen.pages > 1)
        self._count.text = f"{chosen.found:,} of {len(self.known):,} topics"
        self._table.rows = [_cells(row, None) for row in chosen.rows]
        ui.timer(0, lambda: self._count_records(chosen), once=True)

    async def _count_records(self, chosen: Chosen) -> None:
        try:
            counts = await self._desk.ask(records, self._desk.client, chosen)
        except EXPECTED:
            return
        self._table.rows = [_cells(row, counts.get(row.name)) for row in chosen.rows]


def records(client: Client, chosen: Chosen) -> dict[str, int]:
    """How many records lie between the ends of each topic of a page."""
    places = [(row.name, part) for row in chosen.rows for part in range(row.partitions)]
    first = offsets.at(client, dict.fromkeys(places, offsets.EARLIEST))
    last = offsets.at(client, dict.fromkeys(places, offsets.LATEST))
    found: dict[str, int] = {}
    for place in places:
        if not first[place].error and not last[place].error:
            found[place[0]] = found.get(place[0], 0) + last[place].offset - first[place].offset
    return found


def partitions_of(client: Client, name: str) -> int:
    """How many partitions a topic has, as brokers know it; 0 if there is no such topic."""
    try:
        return len(topics.partitions(client, [name]))
    except ClientError as error:
        if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return 0


def _cells(row: TopicRow, count: int | None) -> dict[str, Any]:
    return {
        "name": row.name,
        "link": paths.topic(row.name),
        "partitions": row.partitions,
        "replicas": row.replication,
        "records": figures.count(count),
        "records/s": figures.count(row.rate),
        "size": figures.size(row.size),
        "state": "well" if row.is_well else "lacks replicas",
    }


def creation(desk: Desk, listing: Listing) -> ui.dialog:
    """The form of a new topic."""

    async def go() -> None:
        def act() -> None:
            topics.create(
                desk.client, [new_topic(name.value or "", partitions.value, replication.value, more.value or "")]
            )

        wanted = (name.value or "").strip()
        if await frame.attempt(desk, f"Made {wanted}.", act, seen=lambda: partitions_of(desk.client, wanted) > 0):
            dialog.close()
            if listing.section:
                await listing.section.reload()

    with ui.dialog() as dialog, ui.card().classes("q-pa-md gap-3 w-[32rem] max-w-full"):
        ui.label("New topic").classes("text-lg font-semibold")
        name = ui.input("Name").props("dense outlined autofocus").classes("w-full")
        with ui.row().classes("w-full no-wrap"):
            partitions = ui.number("Partitions", min=1, precision=0).props("dense outlined").classes("w-1/2")
            replication = ui.number("Replicas", min=1, precision=0).props("dense outlined").classes("w-1/2")
        more = ui.textarea("Settings, name=value a line").props("dense outlined autogrow").classes("w-full mono")
        ui.label("What is left empty is as the cluster is set.").classes("quiet text-sm")
        with ui.row().classes("w-full justify-end"):
            ui.button("Leave it", on_click=dialog.close).props("flat no-caps")
            ui.button("Create", on_click=go).props("no-caps")
    return dialog
