"""The list of topics, with search and sizes, one page at a time; and a form that creates a topic."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from moldau.admin import offsets, topics
from moldau.client import Client, ClientError, Error
from moldau.console import frame, paths
from moldau.console.model import figures
from moldau.console.model.problems import EXPECTED
from moldau.console.model.topics import SORTS, Chosen, TopicRow, choose, new_topic, rows, with_sizes
from moldau.console.page_context import Desk

AT_ONCE = 50
COLUMNS = ("name", "partitions", "replicas", "records", "records/s", "size", "state")
NONE = "No topic matches. New topic creates one; Internal shows the platform's own topics."
NUMBERS = ("partitions", "replicas", "records", "records/s", "size")


def show(desk: Desk) -> None:
    """Show the page."""
    listing = Listing(desk)
    acts = frame.heading("Topics")
    with frame.panel():
        listing.controls()
        section = frame.Section(desk, listing.load, listing.show)
    if desk.may_act:
        with acts:
            ui.button("New topic", icon="add", on_click=_new_topic(desk, section).open)


class Listing:
    """The list as one user sees it: its search, its order and its page."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.search, self.sort, self.internal, self.page = desk.query.get("search", ""), "name", False, 0
        self.known: list[TopicRow] = []

    def load(self) -> list[TopicRow]:
        """Return all topics. Their sizes take longer, and follow."""
        return rows(topics.listed(self._desk.client), self._desk.console.sampler.history.rates())

    async def _weigh(self) -> None:
        """Add the sizes, if the brokers tell them."""
        try:
            sizes = await self._desk.ask(topics.sizes, self._desk.client)
        except EXPECTED:
            return
        self.known = with_sizes(self.known, sizes)
        self.draw()

    def controls(self) -> None:
        with ui.row().classes("w-full items-center gap-3"):
            box = ui.input("Search", value=self.search, on_change=self.again).props("clearable debounce=150")
            box.bind_value_to(self, "search", lambda text: text or "").classes("grow")
            sort = ui.select(list(SORTS), value=self.sort, label="Sort by", on_change=self.again)
            sort.classes("w-32").bind_value_to(self, "sort")
            ui.checkbox("Internal", on_change=self.again).bind_value_to(self, "internal")

    def show(self, found: list[TopicRow]) -> None:
        self.known = found
        if not found:
            frame.empty("There are no topics yet.", "Create one with New topic, or `moldau topic create NAME`.")
            return
        self._count = ui.label().classes("quiet text-sm").props("role=status")
        wide = ("partitions", "replicas", "records/s", "state")
        self._table = frame.table(*COLUMNS, numbers=NUMBERS, if_wide=wide, none=NONE).props("wrap-cells")
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
        """Show the current page, and count the records of its topics."""
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
    """Count the records between the ends of each topic of a page."""
    places = [(row.name, part) for row in chosen.rows for part in range(row.partitions)]
    first = offsets.at(client, dict.fromkeys(places, offsets.EARLIEST))
    last = offsets.at(client, dict.fromkeys(places, offsets.LATEST))
    counts: dict[str, int] = {}
    for place in places:
        if not first[place].error and not last[place].error:
            counts[place[0]] = counts.get(place[0], 0) + last[place].offset - first[place].offset
    return counts


def partitions_of(client: Client, name: str) -> int:
    """Return how many partitions a topic has according to the brokers; 0 if there is no such topic."""
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
        "state": "healthy" if row.is_well else "lacks replicas",
    }


def _new_topic(desk: Desk, section: frame.Section[Any]) -> ui.dialog:
    async def go() -> None:
        def create() -> None:
            wanted = new_topic(name.value or "", partitions.value, replication.value, more.value or "")
            topics.create(desk.client, [wanted])

        made = (name.value or "").strip()
        there = lambda: partitions_of(desk.client, made) > 0  # noqa: E731
        await frame.submit(dialog, section, desk, f"Created {made}.", create, seen=there)

    with frame.dialog("New topic", "w-[32rem]") as dialog:
        name = ui.input("Name").props("autofocus").classes("w-full")
        with ui.row().classes("w-full no-wrap"):
            partitions = ui.number("Partitions", min=1, precision=0).classes("w-1/2")
            replication = ui.number("Replicas", min=1, precision=0).classes("w-1/2")
        more = ui.textarea("Settings, one name=value per line").props("autogrow").classes("w-full mono")
        ui.label("Empty fields take the cluster's defaults.").classes("quiet text-sm")
        with frame.buttons(dialog):
            ui.button("Create", on_click=go)
    return dialog
