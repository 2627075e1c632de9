"""Streams applications, of Moldau and of Kafka Streams: what they read and write, their stores, and their lag."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from nicegui import ui

from moldau.admin import groups
from moldau.client import Client
from moldau.console import drawing, flows, frame, paths
from moldau.console.model import figures
from moldau.console.model.lineage import (
    STREAMS,
    Application,
    Graph,
    Kind,
    Node,
    application,
    applications,
    fallback_line,
    is_own,
    labels,
    store_of,
    topology,
)
from moldau.console.page_context import Desk
from moldau.console.store_box import store_box


@dataclass(frozen=True, slots=True)
class Found:
    """The applications of a cluster, and the topology of one of them if it has told it."""

    graph: Graph
    topology: list[groups.SubTopology] = field(default_factory=list)


def load(client: Client, name: str | None = None) -> Found:
    """All applications; with the topology of the one that is named."""
    streams = name and any(one.id == name and one.type.lower() == STREAMS for one in groups.listed(client))
    return Found(flows.found(client), groups.topology(client, name) if name and streams else [])


def show(desk: Desk) -> None:
    """The list."""
    frame.heading("Applications")
    with frame.panel():
        frame.Section(desk, lambda: load(desk.client), _listed)


def _listed(found: Found) -> None:
    mine = applications(found.graph, now_ms())
    if not mine:
        remedy = "`moldau streams run FILE` starts one, `moldau demo` two; those of Kafka Streams are shown too."
        frame.empty("No streams application has run here.", remedy, "bolt")
        return
    columns = ("application", "state", "since", "reads", "writes", "lag")
    table = frame.table(*columns, numbers=("lag",), if_wide=("since",)).props("wrap-cells")
    frame.link_cell(table, "application")
    table.rows = [
        {
            "application": one.name,
            "link": paths.application(one.name),
            "state": f"{one.state}: {one.detail}" if one.detail else one.state,
            "since": since(one),
            "reads": ", ".join(one.reads) or "–",
            "writes": ", ".join(one.writes) or "–",
            "lag": figures.count(one.lag),
        }
        for one in mine
    ]


def show_one(desk: Desk) -> None:
    """The page of an application."""
    name = desk.path["name"]
    with frame.heading(name):
        ui.button("Its group", icon="groups", on_click=lambda: ui.navigate.to(paths.group(name))).props(
            "no-caps outline"
        )
        frame.lineage_button(name)
    with frame.panel():
        frame.Section(
            desk, lambda: load(desk.client, name), lambda found: _one(desk, found, Node(Kind.APPLICATION, name))
        )


def _one(desk: Desk, found: Found, node: Node) -> None:
    if node not in found.graph.nodes:
        frame.empty(f"There is no application {node.name}.", "It may have been reset. Its group may be there.", "bolt")
        return
    read, written = found.graph.into(node), found.graph.out_of(node)
    own = [topic for topic in found.graph.nodes if topic.kind is Kind.TOPIC and is_own(topic.name, node.name)]
    near = {node, *read, *(topic for topic in written if topic not in own)}
    whole = found.graph
    part = Graph(
        tuple(one for one in whole.nodes if one in near),
        {edge: lag for edge, lag in whole.edges.items() if near.issuperset(edge) and node in edge},
    )
    _state(application(whole, node, now_ms()))
    drawing.draw(part, lambda: labels(part, drawing.flow(desk)))
    for title, topics in (
        ("Reads", read),
        ("Writes", [topic for topic in written if topic not in own]),
        ("Stores and topics of its own", own),
    ):
        _topics(title, topics)
    if found.topology:
        _topology(desk, node.name, found.topology)
    if stores := [name for topic in own if (name := store_of(topic.name, node.name))]:
        store_box(desk, node.name, stores)


def _state(one: Application) -> None:
    """What it does; why it does not, and what slows it down, in sentences."""
    with ui.row().classes("gap-6"):
        for label, text in (("state", one.state), ("since", since(one)), ("lag", figures.count(one.lag))):
            with ui.column().classes("gap-0"):
                ui.label(label).classes("quiet text-sm")
                ui.label(text).classes("font-semibold")
    for sentence in filter(None, (one.detail, *map(fallback_line, one.fallbacks))):
        ui.label(sentence).classes("wrap")


def since(one: Application) -> str:
    return "–" if one.since_ms is None else figures.moment(one.since_ms)[:-4]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _topology(desk: Desk, application: str, parts: list[groups.SubTopology]) -> None:
    ui.label("Topology").classes("font-semibold q-mt-sm").props("role=heading aria-level=2")
    whole = topology(parts)
    drawing.draw(whole, lambda: labels(whole, drawing.flow(desk), application))
    table = frame.table("sub-topology", "reads", "repartitions to", "stores").props("wrap-cells")
    table.rows = [
        {
            "sub-topology": part.id,
            "reads": ", ".join((*part.sources, *part.repartition_sources)) or "–",
            "repartitions to": ", ".join(part.repartition_sinks) or "–",
            "stores": ", ".join(part.changelogs) or "–",
        }
        for part in parts
    ]


def _topics(title: str, topics: Sequence[Node]) -> None:
    ui.label(title).classes("font-semibold q-mt-sm").props("role=heading aria-level=2")
    if not topics:
        ui.label("none").classes("quiet")
    for topic in topics:
        ui.link(topic.name, paths.topic(topic.name)).classes("link wrap")
