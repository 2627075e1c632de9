"""A graph of topics, groups and applications as a chart, in columns from left to right; each node leads to its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nicegui import ui

from moldau.console import paths
from moldau.console.charts import SVG
from moldau.console.model.history import Flow
from moldau.console.model.lineage import Graph, Kind, Node, place_nodes
from moldau.console.page_context import Desk

COLUMN_PX, ROW_PX, HEAD_PX = 210, 60, 80
COLOURS = {
    Kind.TOPIC: "#1f8fb3",
    Kind.APPLICATION: "#b5651d",
    Kind.GROUP: "#2f855a",
    Kind.PART: "#8e5bb5",
    Kind.STEP: "#8e5bb5",
}
SHAPES = {
    Kind.TOPIC: "roundRect",
    Kind.APPLICATION: "diamond",
    Kind.GROUP: "circle",
    Kind.PART: "diamond",
    Kind.STEP: "circle",
}
PATHS = {Kind.TOPIC: paths.topic, Kind.GROUP: paths.group, Kind.APPLICATION: paths.application}
GREY = "#8795a1"
LETTER_PX, SIDE_PX = 7.5, 30  # of a name; and beside it
LONGEST = 30  # characters of a label
EVERY_S = 3.0
Edge = tuple[Node, Node]


def path_of(node: Node) -> str | None:
    """Return the address of a node's page; a part of an application has none."""
    path = PATHS.get(node.kind)
    return path(node.name) if path else None


def draw(of: Graph, labels: Callable[[], Mapping[Edge, str]]) -> None:
    """Draw the chart; a click leads to the page of a node. `labels` of edges are updated every few seconds."""
    places = place_nodes(of)
    widest = max((column for column, _ in places.values()), default=0) + 1
    nodes = [_node(node, *place, widest) for node, place in places.items()]
    tallest = max((row for _, row in places.values()), default=1)

    def go(event: Any) -> None:
        clicked = next((node for node in of.nodes if _key(node) == (event.data or {}).get("id")), None)
        if clicked is not None and (path := path_of(clicked)):
            ui.navigate.to(path)

    with ui.element("div").classes("w-full overflow-x-auto"):
        view = ui.echart(_options(of, nodes, widest, tallest, labels()), on_point_click=go, renderer=SVG)
        least = (widest - 1) * COLUMN_PX + sum(_sides(nodes))
        view.style(f"height: {tallest * ROW_PX + HEAD_PX}px; min-width: {least}px")
        view.classes("w-full graph").props('aria-label="What flows where; the table below says the same" role=img')

    def renew() -> None:
        view.options["series"][0]["links"] = _links(of, labels())
        view.update()

    ui.timer(EVERY_S, renew)


def flow(desk: Desk) -> Flow:
    """Return the current flow, and let the sampler know that somebody watches."""
    desk.console.sampler.watch()
    return desk.console.sampler.history.flow()


def _key(node: Node) -> str:
    return f"{node.kind}/{node.name}"


def _node(node: Node, x: int, y: int, columns: int) -> dict[str, Any]:
    """Make a node. Names are outside of the first and last columns, and above the others, where no edge runs."""
    side = "top" if 0 < x < columns - 1 else "left" if x == 0 < columns - 1 else "right"
    full = f"{node.kind} {node.name}" if node.kind is Kind.PART else node.name
    short = full if len(full) <= LONGEST else f"{full[: LONGEST - 1]}…"
    return {
        "id": _key(node),
        "name": short,
        "value": [x, y],
        "symbol": SHAPES[node.kind],
        "symbolSize": 22,
        "category": list(Kind).index(node.kind),
        "label": {"show": True, "position": side, "fontSize": 13},
        "cursor": "pointer",
    }


def _sides(nodes: list[dict[str, Any]]) -> tuple[int, int]:
    """Return the space for names before the first and after the last column."""

    def widest(side: str) -> int:
        names = [len(node["name"]) for node in nodes if node["label"]["position"] == side]
        return SIDE_PX + round(LETTER_PX * max(names, default=0))

    return widest("left"), widest("right")


def _links(of: Graph, labels: Mapping[Edge, str]) -> list[dict[str, Any]]:
    return [
        {
            "source": _key(edge[0]),
            "target": _key(edge[1]),
            "label": {"show": bool(text), "formatter": text, "fontSize": 12},
        }
        for edge in of.edges
        for text in (labels.get(edge, ""),)
    ]


def _options(
    of: Graph, nodes: list[dict[str, Any]], widest: int, tallest: int, labels: Mapping[Edge, str]
) -> dict[str, Any]:
    shown = {node.kind for node in of.nodes}
    left, right = _sides(nodes)
    return {
        "animation": False,
        "legend": {"top": 0, "left": 0, "data": [str(kind) for kind in Kind if kind in shown]},
        "color": [COLOURS[kind] for kind in Kind],
        "grid": {"left": left, "right": right, "top": 30, "bottom": 10},
        "xAxis": {"show": False, "min": 0, "max": max(1, widest - 1)},
        "yAxis": {"show": False, "min": 0.4, "max": tallest + 0.6, "inverse": True},
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "coordinateSystem": "cartesian2d",
                "categories": [{"name": str(kind)} for kind in Kind],
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 8,
                "lineStyle": {"color": GREY, "width": 1.5, "opacity": 0.8, "curveness": 0.06},
                "emphasis": {"focus": "adjacency"},
                "data": nodes,
                "links": _links(of, labels),
            }
        ],
    }
