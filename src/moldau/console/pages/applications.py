"""The pages of streams applications, of Moldau and of Kafka Streams: state, lag, inputs, outputs, stores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from nicegui import ui

from moldau.admin import groups
from moldau.client import Client
from moldau.console import drawing, flows, frame, paths
from moldau.console.model import deployed as model
from moldau.console.model import figures, lineage
from moldau.console.model.lineage import Graph, Kind, Node
from moldau.console.page_context import Desk
from moldau.console.pages import deployed
from moldau.console.store_box import store_box
from moldau.flows import catalog
from moldau.flows.overview import Overview, overviews

EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Found:
    """The applications of a cluster, and the topology of one of them if it is known."""

    graph: Graph
    topology: list[groups.SubTopology] = field(default_factory=list)
    deployed: list[Overview] = field(default_factory=list)


def load(client: Client, name: str | None = None) -> Found:
    """Load all applications, and the topology of the one that is named."""
    streams = name and any(one.id == name and one.type.lower() == lineage.STREAMS for one in groups.listed(client))
    topology = groups.topology(client, name) if name and streams else []
    return Found(flows.load_graph(client), topology, overviews(catalog.read(client), client, with_queries=True))


def show(desk: Desk) -> None:
    """Show the list."""
    frame.heading("Applications")
    with frame.panel():
        frame.Section(desk, lambda: load(desk.client), _show_list, EVERY_S)
    deployed.workers_panel(desk)


def _show_list(found: Found) -> None:
    rows = model.rows(lineage.applications(found.graph, now_ms()), found.deployed)
    if not rows:
        remedy = "`moldau streams deploy FILE` deploys one; applications of Kafka Streams are shown too."
        frame.empty("No streams application has run here.", remedy, "bolt")
        return
    columns = ("application", "state", "since", "reads", "writes", "lag", "rate", "worker")
    narrow = ("since", "rate", "worker")
    table = frame.table(*columns, numbers=("lag", "rate"), if_wide=narrow).props("wrap-cells")
    frame.link_cell(table, "application")
    table.rows = rows


def show_one(desk: Desk) -> None:
    """Show the page of an application."""
    name = desk.path["name"]
    with frame.heading(name):
        frame.link_button("Group", "groups", paths.group(name))
        frame.lineage_button(name)
    deployed.Deployed(desk, name)
    with frame.panel():
        node = Node(Kind.APPLICATION, name)
        frame.Section(desk, lambda: load(desk.client, name), lambda found: _show_application(desk, found, node))


def _show_application(desk: Desk, found: Found, node: Node) -> None:
    whole = found.graph
    if node not in whole.nodes and any(one.name == node.name for one in found.deployed):
        frame.empty("It has not read or written anything yet.", icon="hourglass_empty")
        return
    if node not in whole.nodes:
        frame.empty(
            f"There is no application {node.name}.", "It may have been reset. Its group may still exist.", "bolt"
        )
        return
    own = [topic for topic in whole.nodes if topic.kind is Kind.TOPIC and lineage.is_own(topic.name, node.name)]
    read, written = whole.into(node), [topic for topic in whole.out_of(node) if topic not in own]
    near = {node, *read, *written}
    part = Graph(
        tuple(one for one in whole.nodes if one in near),
        {edge: lag for edge, lag in whole.edges.items() if near.issuperset(edge) and node in edge},
    )
    one = lineage.application(whole, node, now_ms())
    frame.facts({"state": one.state, "since": model.moment(one.since_ms), "lag": figures.count(one.lag)})
    for sentence in filter(None, (one.detail, *map(lineage.fallback_line, one.fallbacks))):
        ui.label(sentence).classes("wrap")
    drawing.draw(part, lambda: lineage.labels(part, drawing.flow(desk)))
    for title, topics in (("Reads", read), ("Writes", written), ("Its own stores and topics", own)):
        _topics(title, topics)
    if found.topology:
        _topology(desk, node.name, found.topology)
    if stores := [name for topic in own if (name := lineage.store_of(topic.name, node.name))]:
        store_box(desk, node.name, stores)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _topology(desk: Desk, application: str, parts: list[groups.SubTopology]) -> None:
    frame.subheading("Topology")
    whole = lineage.topology(parts)
    drawing.draw(whole, lambda: lineage.labels(whole, drawing.flow(desk), application))
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
    frame.subheading(title)
    if not topics:
        ui.label("none").classes("quiet")
    for topic in topics:
        ui.link(topic.name, paths.topic(topic.name)).classes("link wrap")
