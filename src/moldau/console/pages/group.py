"""A group: its members, its lag by partition and over time; offsets set after a look at what would be, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nicegui import ui

from moldau.admin import TopicPartition, groups, resets, shares
from moldau.client import Client, ClientError
from moldau.console import frame, paths
from moldau.console.charts import Lines
from moldau.console.model import figures
from moldau.console.model.groups import ALL_TOPICS, PLACES, chosen, total, wanted
from moldau.console.model.problems import EXPECTED, Refused
from moldau.console.page_context import Desk

EVERY_S = 2.0
HEIGHT_PX = 240
SHARE = "share"


@dataclass(frozen=True, slots=True)
class State:
    """A group as it is now."""

    group: groups.DescribedGroup
    lags: list[groups.Lag]


def load(client: Client, name: str) -> State:
    found = groups.described(client, name)
    if found.type.lower() != SHARE:
        return State(found, groups.lags(client, found))
    rows = [
        groups.Lag(one.topic, one.partition, one.start, None, _end(one), None) for one in shares.offsets(client, name)
    ]
    return State(found, rows)


def _end(one: shares.ShareOffset) -> int | None:
    return None if one.start is None or one.lag is None else one.start + one.lag


def show(desk: Desk) -> None:
    """The page."""
    name = desk.path["name"]
    acts = frame.heading(name)
    with frame.panel():
        section = frame.Section(desk, lambda: load(desk.client, name), lambda state: _shown(desk, state, acts, section))
    with frame.panel("Lag over time"):
        ui.label("records that the group has still to read").classes("quiet text-sm")
        _history(desk, name)


def _shown(desk: Desk, state: State, acts: ui.row, section: frame.Section[State]) -> None:
    group = state.group
    facts = {
        "state": group.state,
        "type": group.type.lower(),
        "members": str(len(group.members)),
        "lag": figures.count(total(state.lags)),
        "coordinator": f"{group.coordinator} ({group.coordinator_address})",
    }
    with ui.row().classes("gap-6"):
        for label, text in facts.items():
            with ui.column().classes("gap-0"):
                ui.label(label).classes("quiet text-sm")
                ui.label(text).classes("font-semibold wrap")
    _partitions(state)
    _members(group)
    acts.clear()
    with acts:
        frame.lineage_button(group.id)
        if desk.may_act:
            _acts(desk, state, section)


def _partitions(state: State) -> None:
    ui.label("Partitions").classes("font-semibold q-mt-md").props("role=heading aria-level=2")
    if not state.lags:
        frame.empty("Nothing is committed, and nobody reads.", icon="hourglass_empty")
        return
    numbers = ("partition", "offset", "end", "lag")
    table = frame.table("topic", *numbers, "client", "host", numbers=numbers, key="place", if_wide=("client", "host"))
    frame.link_cell(table, "topic")
    frame.link_cell(table, "offset", "at")
    table.rows = [
        {
            "place": f"{row.topic}-{row.partition}",
            "topic": row.topic,
            "link": paths.topic(row.topic),
            "at": paths.record(row.topic, row.partition, row.offset),
            "partition": row.partition,
            "offset": figures.count(row.offset),
            "end": figures.count(row.end),
            "lag": figures.count(row.lag),
            "client": row.member.client_id if row.member else "–",
            "host": row.member.host if row.member else "–",
        }
        for row in state.lags
    ]


def _members(group: groups.DescribedGroup) -> None:
    ui.label("Members").classes("font-semibold q-mt-md").props("role=heading aria-level=2")
    if not group.members:
        ui.label("Nobody is there now.").classes("quiet")
        return
    table = frame.table("member", "client", "host", "partitions", numbers=("partitions",), if_wide=("host",)).props(
        "wrap-cells"
    )
    table.rows = [
        {"member": one.id, "client": one.client_id, "host": one.host, "partitions": len(one.partitions)}
        for one in group.members
    ]


def _history(desk: Desk, name: str) -> None:
    """A line that grows while one looks."""
    sampler = desk.console.sampler

    def update() -> None:
        sampler.watch()
        line = [(point.at_s, point.lags[name]) for point in list(sampler.history.points) if name in point.lags]
        view.fill([("lag", line)])

    view = Lines(HEIGHT_PX, f"Lag of {name} over time")
    ui.timer(EVERY_S, update, immediate=True)


def _acts(desk: Desk, state: State, section: frame.Section[State]) -> None:
    name = state.group.id

    async def delete() -> None:
        if await frame.attempt(desk, f"Deleted {name}.", _delete, desk.client, name):
            ui.navigate.to("/groups")

    warning = "What it has committed is forgotten: whoever joins it again begins anew."
    end = frame.confirm(f"Delete {name}?", warning, name, delete)
    if state.group.type.lower() != SHARE:
        reset = Reset(desk, state, section)
        ui.button("Reset offsets", icon="history", on_click=reset.dialog.open).props("no-caps outline")
    ui.button("Delete", icon="delete", on_click=end.open).props("no-caps outline color=negative")


def _delete(client: Client, name: str) -> None:
    error = groups.delete(client, [name])[name]
    if error:
        raise ClientError(error, f"{name} was not deleted: {error.message}", retriable=False)


class Reset:
    """The dialog that sets offsets: what would be is shown first, and only that can then be done."""

    def __init__(self, desk: Desk, state: State, section: frame.Section[State]) -> None:
        self._desk, self._name, self._section = desk, state.group.id, section
        self._new: Mapping[TopicPartition, int] = {}
        topics = [ALL_TOPICS, *sorted({row.topic for row in state.lags})]
        with ui.dialog() as self.dialog, ui.card().classes("q-pa-md gap-3 w-[36rem] max-w-full"):
            ui.label("Reset offsets").classes("text-lg font-semibold")
            self._topic = ui.select(topics, value=ALL_TOPICS, label="Where", on_change=self._changed)
            self._place = ui.select(list(PLACES), value=next(iter(PLACES)), label="To", on_change=self._changed)
            self._text = ui.input("Value", on_change=self._changed)
            for box in (self._topic, self._place, self._text):
                box.props("dense outlined").classes("w-full")
            self._shown = ui.column().classes("w-full gap-1 max-h-72 overflow-auto")
            with ui.row().classes("w-full justify-end"):
                ui.button("Leave it", on_click=self.dialog.close).props("flat no-caps")
                ui.button("Preview", on_click=self.preview).props("no-caps outline")
                self._go = ui.button("Execute", color="negative", on_click=self.execute).props("no-caps")
        self._changed()

    def _changed(self) -> None:
        """What was looked at before is not what is asked for now."""
        self._new = {}
        self._shown.clear()
        self._go.disable()
        hint = PLACES[self._place.value]
        self._text.set_visibility(bool(hint))
        self._text.props(f'label="{hint}"')

    async def preview(self) -> None:
        try:
            to = wanted(self._place.value, self._text.value or "")
            before, self._new = await self._desk.ask(planned, self._desk.client, self._name, to, self._topic.value)
        except EXPECTED as error:
            self._shown.clear()
            with self._shown:
                frame.tell(self._desk.problem(error))
            return
        self._shown.clear()
        with self._shown:
            _plan(before, self._new)
        self._go.enable()

    async def execute(self) -> None:
        done = f"Set {len(self._new)} offsets of {self._name}."
        if self._new and await frame.attempt(self._desk, done, resets.apply, self._desk.client, self._name, self._new):
            self.dialog.close()
            await self._section.reload()


def planned(
    client: Client, name: str, to: resets.Wanted, topic: str
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """What is committed, and what would be."""
    before = {place: one.offset for place, one in groups.committed(client, name).items()}
    if not before:
        raise Refused("The group has committed nothing yet.")
    return before, resets.plan(client, to, chosen(before, topic), before)


def _plan(before: Mapping[TopicPartition, int], new: Mapping[TopicPartition, int]) -> None:
    numbers = ("partition", "now", "then", "change")
    table = frame.table("topic", *numbers, numbers=numbers, key="place")
    table.rows = [
        {
            "place": f"{place[0]}-{place[1]}",
            "topic": place[0],
            "partition": place[1],
            "now": figures.count(before.get(place)),
            "then": figures.count(offset),
            "change": f"{offset - before.get(place, offset):+,}",
        }
        for place, offset in sorted(new.items())
    ]
