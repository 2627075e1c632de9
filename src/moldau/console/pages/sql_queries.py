"""The pages of SQL queries: a list with states and lag, and one query with its errors and its topology."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from nicegui import ui

from moldau.admin import groups
from moldau.client import ClientError
from moldau.console import drawing, frame
from moldau.console.model import sql as model
from moldau.console.model.lineage import labels
from moldau.console.page_context import Desk
from moldau.sql.shell.remote import Server

T = TypeVar("T")
EVERY_S = 3.0
VERBS = {"RUNNING": ("PAUSE", "TERMINATE"), "PAUSED": ("RESUME", "TERMINATE"), "ERROR": ("TERMINATE",)}
ICONS = {"PAUSE": "pause", "RESUME": "play_arrow", "TERMINATE": "stop"}


def on_server(desk: Desk, function: Callable[[Server], T]) -> T:
    """Call a function with a connection to the SQL server."""
    server = Server(desk.console.sql_url)
    try:
        return function(server)
    finally:
        server.close()


def _queries(server: Server) -> tuple[str, list[dict[str, Any]]]:
    service_id = str(server.info().get("ksqlServiceId", ""))
    return service_id, [one for entity in server.execute("SHOW QUERIES;") for one in entity.get("queries", ())]


def lag_of(desk: Desk, group: str) -> int | None:
    """Return how many records a query has not processed; None if its group does not exist."""
    try:
        return sum(one.lag or 0 for one in groups.lags(desk.client, groups.described(desk.client, group)))
    except ClientError:
        return None


def show(desk: Desk) -> None:
    """Show the list."""
    with frame.heading("SQL queries"):
        frame.link_button("Editor", "terminal", "/sql")
    with frame.panel():
        frame.Section(desk, partial(_load, desk), _show_list, EVERY_S)


def _load(desk: Desk) -> list[dict[str, Any]]:
    service_id, found = on_server(desk, _queries)
    lags = {one["id"]: lag_of(desk, model.group_of(service_id, one["id"])) for one in found}
    return model.query_rows(found, {name: lag for name, lag in lags.items() if lag is not None})


def _show_list(rows: list[dict[str, Any]]) -> None:
    if not rows:
        frame.empty("No queries run.", "CREATE STREAM ... AS SELECT in the editor starts one.", "bolt")
        return
    columns = ("query", "type", "state", "sink", "lag", "statement")
    table = frame.table(*columns, numbers=("lag",), if_wide=("type", "sink", "statement")).props("wrap-cells")
    frame.link_cell(table, "query")
    frame.badge_cell(table, "state")
    table.rows = rows


@dataclass(frozen=True, slots=True)
class Found:
    """A query: its description, its state and its lag."""

    described: dict[str, Any]
    state: str
    group: str
    lag: int | None
    errors: list[str] = field(default_factory=list)


def load(desk: Desk, name: str) -> Found:
    def ask(server: Server) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
        return *_queries(server), server.execute(f"EXPLAIN {name};")[0]["queryDescription"]

    service_id, known, described = on_server(desk, ask)
    state = next((model.state_of(one) for one in known if one["id"] == name), "")
    group = str(described.get("consumerGroupId") or model.group_of(service_id, name))
    errors = [str(one.get("errorMessage")) for one in described.get("queryErrors") or ()]
    return Found(described, state, group, lag_of(desk, group), errors)


def show_one(desk: Desk) -> None:
    """Show the page of a query."""
    name = desk.path["name"]
    with frame.heading(name):
        frame.link_button("Queries", "bolt", "/sql/queries")
    with frame.panel():
        show = partial(_show_state, desk, name)
        state = frame.Section(desk, lambda: load(desk, name), show, EVERY_S, still=True)
        state.place.props('aria-label="State"')
    with frame.panel("Topology"):
        frame.Section(desk, lambda: load(desk, name), partial(_show_topology, desk))


def _show_state(desk: Desk, name: str, found: Found) -> None:
    described = found.described
    frame.facts(
        {
            "state": found.state or "–",
            "lag": "–" if found.lag is None else f"{found.lag:,}",
            "reads": ", ".join(described.get("sources", ())) or "–",
            "writes": ", ".join(described.get("sinks", ())) or "–",
        }
    )
    frame.Words("pre", str(described.get("statementText", ""))).classes("mono wrap q-ma-none")
    for error in found.errors:
        frame.Words("pre", error).classes("mono wrap text-negative").props("role=alert")
    if desk.may_act:
        with ui.row().classes("items-center gap-2"):
            for verb in VERBS.get(found.state, ()):
                act = partial(_act, desk, name, verb)
                ui.button(verb.capitalize(), icon=ICONS[verb], on_click=act).props("outline")


async def _act(desk: Desk, name: str, verb: str) -> None:
    def change() -> Any:
        return on_server(desk, lambda server: server.execute(f"{verb} {name};"))

    await frame.attempt(
        desk, f"{name}: {verb.lower()} is done.", change, then="/sql/queries" if verb == "TERMINATE" else None
    )


def _show_topology(desk: Desk, found: Found) -> None:
    graph = model.picture(str(found.described.get("topology") or ""), found.group)
    if not graph.nodes:
        frame.empty("The server does not describe it.", icon="account_tree")
        return
    drawing.draw(graph, lambda: labels(graph, drawing.flow(desk), found.group))
    with ui.expansion("As text").classes("w-full"):
        frame.Words("pre", str(found.described["topology"])).classes("mono wrap")
