"""The page of a group: members, lag by partition and over time; resetting offsets, deleting the group."""

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
from moldau.console.model.problems import Refused
from moldau.console.page_context import Desk

EVERY_S = 2.0
HEIGHT_PX = 240
SHARE = "share"
Plan = tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]


@dataclass(frozen=True, slots=True)
class State:
    """A group as it is now."""

    group: groups.DescribedGroup
    lags: list[groups.Lag]


def load(client: Client, name: str) -> State:
    """Load a group and its lag; the offset of a share group is where its partition starts."""
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
    """Show the page."""
    name = desk.path["name"]
    acts = frame.heading(name)
    with frame.panel():
        section = frame.Section(desk, lambda: load(desk.client, name), lambda state: _show(desk, state, acts, section))
    with frame.panel("Lag over time"):
        ui.label("records that the group has not read yet").classes("quiet text-sm")
        _history(desk, name)


def _show(desk: Desk, state: State, acts: ui.row, section: frame.Section[State]) -> None:
    group = state.group
    frame.facts(
        {
            "state": group.state,
            "type": group.type.lower(),
            "members": str(len(group.members)),
            "lag": figures.count(total(state.lags)),
            "coordinator": f"{group.coordinator} ({group.coordinator_address})",
        }
    )
    _partitions(state)
    _members(group)
    acts.clear()
    with acts:
        frame.lineage_button(group.id)
        if desk.may_act:
            _acts(desk, state, section)


def _partitions(state: State) -> None:
    frame.subheading("Partitions")
    if not state.lags:
        frame.empty("The group has committed nothing, and nobody reads.", icon="hourglass_empty")
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
    frame.subheading("Members")
    if not group.members:
        ui.label("The group has no members.").classes("quiet")
        return
    table = frame.table("member", "client", "host", "partitions", numbers=("partitions",), if_wide=("host",))
    table.props("wrap-cells")
    table.rows = [
        {"member": one.id, "client": one.client_id, "host": one.host, "partitions": len(one.partitions)}
        for one in group.members
    ]


def _history(desk: Desk, name: str) -> None:
    """Draw the lag as a line that grows while somebody watches."""
    sampler = desk.console.sampler

    def update() -> None:
        sampler.watch()
        line = [(point.at_s, point.lags[name]) for point in list(sampler.history.points) if name in point.lags]
        view.fill([("lag", line)])

    view = Lines(HEIGHT_PX, f"Lag of {name} over time")
    ui.timer(EVERY_S, update, immediate=True)


def _acts(desk: Desk, state: State, section: frame.Section[State]) -> None:
    name = state.group.id
    if state.group.type.lower() != SHARE:
        reset = Reset(desk, state, section)
        ui.button("Reset offsets", icon="history", on_click=reset.dialog.open).props("outline")
    warning = "Its committed offsets are deleted: consumers that join it again start as new ones."
    frame.delete_button(desk, name, warning, "/groups", _delete, desk.client, name)


def _delete(client: Client, name: str) -> None:
    error = groups.delete(client, [name])[name]
    if error:
        raise ClientError(error, f"{name} was not deleted: {error.message}", retriable=False)


class Reset:
    """The dialog that resets offsets: it shows a preview, and can then do only what the preview shows."""

    def __init__(self, desk: Desk, state: State, section: frame.Section[State]) -> None:
        self._desk, self._name, self._section = desk, state.group.id, section
        self._new: Mapping[TopicPartition, int] = {}
        topics = [ALL_TOPICS, *sorted({row.topic for row in state.lags})]
        with frame.dialog("Reset offsets", "w-[36rem]") as self.dialog:
            self._topic = ui.select(topics, value=ALL_TOPICS, label="Where", on_change=self._changed)
            self._place = ui.select(list(PLACES), value=next(iter(PLACES)), label="To", on_change=self._changed)
            self._text = ui.input("Value", on_change=self._changed)
            for box in (self._topic, self._place, self._text):
                box.classes("w-full")
            self._preview = ui.column().classes("w-full gap-1 max-h-72 overflow-auto")
            with frame.buttons(self.dialog):
                ui.button("Preview", on_click=self.preview).props("outline")
                self._go = ui.button("Execute", color="negative", on_click=self.execute)
        self._changed()

    def _changed(self) -> None:
        """Drop the preview: it is not what the form says now."""
        self._new = {}
        self._preview.clear()
        self._go.disable()
        hint = PLACES[self._place.value].hint
        self._text.set_visibility(bool(hint))
        self._text.props(f'label="{hint}"')

    async def preview(self) -> None:
        def plan() -> Plan:
            to = wanted(self._place.value, self._text.value or "")
            return plan_reset(self._desk.client, self._name, to, self._topic.value)

        if await frame.fill(self._preview, self._desk, self._desk.ask(plan), self._show_plan):
            self._go.enable()

    def _show_plan(self, plan: Plan) -> None:
        before, self._new = plan
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
            for place, offset in sorted(self._new.items())
        ]

    async def execute(self) -> None:
        if self._new:
            done = f"Set {len(self._new)} offsets of {self._name}."
            change = (self._desk, done, resets.apply, self._desk.client, self._name, self._new)
            await frame.submit(self.dialog, self._section, *change)


def plan_reset(client: Client, name: str, to: resets.Wanted, topic: str) -> Plan:
    """Return what is committed, and what would be."""
    before = {place: one.offset for place, one in groups.committed(client, name).items()}
    if not before:
        raise Refused("The group has committed nothing yet.")
    return before, resets.plan(client, to, chosen(before, topic), before)
