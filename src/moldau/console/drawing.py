"""A graph of topics, groups and applications as a chart: in columns from left to right, each node a way to its page."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from moldau.console import paths
from moldau.console.model import figures
from moldau.console.model.lineage import Graph, Kind, Node, layers

COLUMN_PX, ROW_PX, HEAD_PX = 190, 64, 90
COLOURS = {Kind.TOPIC: "#1f8fb3", Kind.APPLICATION: "#b5651d", Kind.GROUP: "#2f855a", Kind.PART: "#8e5bb5"}
SHAPES = {Kind.TOPIC: "roundRect", Kind.APPLICATION: "diamond", Kind.GROUP: "circle", Kind.PART: "diamond"}
INK = "#8795a1"  # readable on light and on dark
LONGEST = 30  # characters of a label


def path_of(node: Node) -> str | None:
    """Where a node has its page; a part of an application has none."""
    match node.kind:
        case Kind.TOPIC:
            return paths.topic(node.name)
        case Kind.GROUP:
            return paths.group(node.name)
        case Kind.APPLICATION:
            return paths.application(node.name)
        case Kind.PART:
            return None


def draw(of: Graph) -> None:
    """The chart; a click leads on."""
    depth = layers(of)
    columns: dict[int, int] = {}
    nodes = []
    for node in of.nodes:
        row = columns[depth[node]] = columns.get(depth[node], 0) + 1
        nodes.append(_node(node, depth[node], row))
    tallest, widest = max(columns.values(), default=1), max(columns, default=0) + 1

    def go(event: Any) -> None:
        found = next((node for node in of.nodes if _key(node) == (event.data or {}).get("id")), None)
        if found is not None and (path := path_of(found)):
            ui.navigate.to(path)

    with ui.element("div").classes("w-full overflow-x-auto"):
        view = ui.echart(_options(of, nodes, widest, tallest), on_point_click=go)
        view.style(f"height: {tallest * ROW_PX + HEAD_PX}px; min-width: {widest * COLUMN_PX}px")
        view.classes("w-full").props('aria-label="What flows where; the table below says the same" role=img')


def _key(node: Node) -> str:
    return f"{node.kind}/{node.name}"


def _node(node: Node, x: int, y: int) -> dict[str, Any]:
    full = f"{node.kind} {node.name}" if node.kind is Kind.PART else node.name
    short = full if len(full) <= LONGEST else f"{full[: LONGEST - 1]}…"
    return {
        "id": _key(node),
        "name": short,
        "value": [x, y],
        "symbol": SHAPES[node.kind],
        "symbolSize": 22,
        "category": list(Kind).index(node.kind),
        "label": {"show": True, "position": "bottom", "color": INK, "fontSize": 12},
        "cursor": "pointer",
    }


def _options(of: Graph, nodes: list[dict[str, Any]], widest: int, tallest: int) -> dict[str, Any]:
    shown = {node.kind for node in of.nodes}
    links = [
        {
            "source": _key(source),
            "target": _key(target),
            "label": {"show": bool(lag), "formatter": f"lag {figures.count(lag)}", "color": INK, "fontSize": 11},
        }
        for (source, target), lag in of.edges.items()
    ]
    return {
        "animation": False,
        "legend": {"top": 0, "data": [str(kind) for kind in Kind if kind in shown], "textStyle": {"color": INK}},
        "color": [COLOURS[kind] for kind in Kind],
        "grid": {"left": 0, "right": 0, "top": 30, "bottom": 10},
        "xAxis": {"show": False, "min": -0.5, "max": widest - 0.5},
        "yAxis": {"show": False, "min": 0.4, "max": tallest + 0.6, "inverse": True},
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "coordinateSystem": "cartesian2d",
                "categories": [{"name": str(kind)} for kind in Kind],
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 8,
                "lineStyle": {"color": INK, "width": 1.5, "opacity": 0.8, "curveness": 0.06},
                "emphasis": {"focus": "adjacency"},
                "data": nodes,
                "links": links,
            }
        ],
    }
