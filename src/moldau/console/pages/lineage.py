"""The page Lineage: topics, applications and groups as a graph and as a table."""

from __future__ import annotations

from nicegui import ui

from moldau.console import drawing, flows, frame
from moldau.console.model import figures
from moldau.console.model.lineage import INTERNAL, Graph, chosen, labels, without_own
from moldau.console.page_context import Desk

HINT = "Readers are known by the offsets that groups commit, writers by the ids of transactional producers."


def show(desk: Desk) -> None:
    """Show the page."""
    frame.heading("Lineage")
    with frame.panel():
        frame.Section(desk, lambda: flows.load_graph(desk.client), lambda whole: _show(desk, whole))


def _show(desk: Desk, whole: Graph) -> None:
    if not whole.nodes:
        frame.empty(
            "There are no topics yet.", "Topics, their readers and their writers are shown here.", "account_tree"
        )
        return

    def again() -> None:
        place.clear()
        with place:
            _draw(desk, whole, chosen(whole if internal.value else without_own(whole), box.value or ""))

    asked = desk.query.get("of", "")
    with ui.row().classes("w-full items-center gap-3"):
        box = ui.input("Search", value=asked, on_change=again).props("clearable debounce=300")
        box.classes("grow")
        internal = ui.checkbox("Internal", value=asked.endswith(INTERNAL), on_change=again)
    place = ui.column().classes("w-full gap-2")
    again()


def _draw(desk: Desk, whole: Graph, part: Graph) -> None:
    words = f"{len(part.nodes)} of {len(whole.nodes)} topics, applications and groups. {HINT}"
    ui.label(words).classes("quiet text-sm")
    if not part.nodes:
        frame.empty("Nothing matches.", icon="search_off")
        return
    drawing.draw(part, lambda: labels(part, drawing.flow(desk)))
    table = frame.table("from", "to", "lag", numbers=("lag",), key="id").props("wrap-cells")
    for column in ("from", "to"):
        frame.link_cell(table, column, f"{column}_link")
    table.rows = [
        {
            "id": number,
            "from": f"{source.kind} {source.name}",
            "from_link": drawing.path_of(source),
            "to": f"{target.kind} {target.name}",
            "to_link": drawing.path_of(target),
            "lag": figures.count(lag),
        }
        for number, ((source, target), lag) in enumerate(sorted(part.edges.items(), key=lambda row: row[0]))
    ]
