"""The page Health: what is wrong and why, moves under way, and what has happened in the cluster."""

from __future__ import annotations

from nicegui import ui

from moldau.admin import health, log_dirs, moves
from moldau.console import charts, frame
from moldau.console.model.cluster import event_rows, move_rows, trouble_rows
from moldau.console.model.timeline import KINDS, Event
from moldau.console.page_context import Desk

EVERY_S = 3.0
PAGE = 20  # rows of troubles on a page: one dead broker can make thousands


def show(desk: Desk) -> None:
    """Show the page. Tables are made once and filled again and again, so that search and page stay."""
    frame.heading("Health")
    with frame.panel():
        state = ui.column().classes("w-full gap-2")
        troubles = frame.table("where", "reason", "details", key="place").props("wrap-cells")
        frame.paged_by(troubles, PAGE)
        frame.link_cell(troubles, "where")
        frame.badge_cell(troubles, "reason")
    with frame.panel("Moves") as panel:
        under_way = frame.table("partition", "to", "from", "copied", if_wide=("from",))
        frame.link_cell(under_way, "partition")
        frame.progress_cell(under_way, "copied")

    def fill(sight: health.Sight) -> None:
        wrong = [one for one in health.judge(sight) if one.is_unwell]
        _state(sight, wrong)
        troubles.rows = trouble_rows(wrong)
        under_way.rows = move_rows(moves.under_way(sight.moves, log_dirs.sizes(sight.folders)))
        troubles.set_visibility(bool(wrong))
        panel.set_visibility(bool(sight.moves))

    troubles.set_visibility(False)
    panel.set_visibility(False)
    with state:
        frame.Section(desk, lambda: health.look(desk.client), fill, EVERY_S)
    with frame.panel("What has happened"):
        ui.label("elections, replicas in sync and brokers, from the log of the metadata").classes("quiet text-sm")
        _history(desk)


def _state(sight: health.Sight, wrong: list[health.Trouble]) -> None:
    with ui.row().classes("items-center gap-2 no-wrap").props("role=status"):
        icon, colour = ("warning", "warning") if wrong else ("check_circle", "positive")
        ui.icon(icon, color=colour, size="22px")
        ui.label(_sentence(sight, wrong))


def _sentence(sight: health.Sight, wrong: list[health.Trouble]) -> str:
    parts = sum(len(topic.partitions) for topic in sight.topics)
    brokers = len(sight.cluster.brokers)
    looked = f"{brokers} broker{'s' * (brokers != 1)} and {parts:,} partitions"
    what = "thing is" if len(wrong) == 1 else "things are"
    return f"{len(wrong):,} {what} wrong with {looked}." if wrong else f"All is well with {looked}."


def _history(desk: Desk) -> None:
    """Show events in a chart, and in a table whose search stays while they come."""

    def fill(found: list[Event]) -> None:
        if found:
            charts.marks(KINDS, [(one.at_ms / 1000, one.kind) for one in found], "Events over time")
        else:
            frame.empty("Nothing has happened lately.", icon="history")
        rows.set_visibility(bool(found))
        table.rows = event_rows(found)

    frame.Section(desk, desk.console.timeline.read, fill, EVERY_S)
    with ui.column().classes("w-full gap-2") as rows:
        table = frame.search_table("time", "event", "where", "details", key="place", if_wide=("details",))
        frame.link_cell(table, "where")
    rows.set_visibility(False)
