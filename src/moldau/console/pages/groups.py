"""The groups: a list with search, those that are furthest behind first."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from moldau.admin import groups
from moldau.console import frame, paths
from moldau.console.model import figures
from moldau.console.model.groups import GroupRow, rows
from moldau.console.page_context import Desk


def show(desk: Desk) -> None:
    """The page."""
    frame.heading("Groups")

    def load() -> list[GroupRow]:
        last = desk.console.sampler.history.last
        return rows(groups.listed(desk.client), last.lags if last else {})

    desk.console.sampler.watch()
    with frame.panel():
        frame.Section(desk, load, _shown)


def _shown(found: list[GroupRow]) -> None:
    if not found:
        frame.empty("No group reads anything.", "`moldau consume TOPIC --group NAME` makes one.", "groups")
        return
    box = ui.input("Search").props("dense outlined clearable debounce=150").classes("w-full")
    table = frame.table("group", "type", "state", "lag", numbers=("lag",), if_wide=("type",)).props("wrap-cells")
    frame.link_cell(table, "group")
    table.rows = [_cells(row) for row in found]
    table.bind_filter_from(box, "value", lambda text: text or "")
    frame.paged(table)


def _cells(row: GroupRow) -> dict[str, Any]:
    return {
        "group": row.name,
        "link": paths.group(row.name),
        "type": row.type.lower(),
        "state": row.state,
        "lag": figures.count(row.lag),
    }
