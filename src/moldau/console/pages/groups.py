"""The list of groups, with search, those with the largest lag first."""

from __future__ import annotations

from moldau.admin import groups
from moldau.console import frame, paths
from moldau.console.model import figures
from moldau.console.model.groups import GroupRow, rows
from moldau.console.page_context import Desk


def show(desk: Desk) -> None:
    """Show the page."""
    frame.heading("Groups")

    def load() -> list[GroupRow]:
        last = desk.console.sampler.history.last
        return rows(groups.listed(desk.client), last.lags if last else {})

    desk.console.sampler.watch()
    with frame.panel():
        frame.Section(desk, load, _show)


def _show(found: list[GroupRow]) -> None:
    if not found:
        frame.empty("There are no groups yet.", "`moldau consume TOPIC --group NAME` creates one.", "groups")
        return
    table = frame.search_table("group", "type", "state", "lag", numbers=("lag",), if_wide=("type",))
    frame.link_cell(table, "group")
    table.rows = [
        {
            "group": row.name,
            "link": paths.group(row.name),
            "type": row.type.lower(),
            "state": row.state,
            "lag": figures.count(row.lag),
        }
        for row in found
    ]
