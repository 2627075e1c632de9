"""The graph of what flows where: topics, applications that read and write them, and groups that only read.

The committed offsets of groups show who reads a topic; the transactional ids of the producers that a partition
remembers show who writes it. An application has both under one name: Kafka Streams and Moldau derive their
transactional ids from the application's id. A producer without transactions has no name and is not shown.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from moldau.admin.groups import SubTopology
from moldau.console.model import figures
from moldau.console.model.history import Flow
from moldau.spark.runner.reports import Activity, Fallback, Report, activity

OWN_SINK = re.compile(r"moldau-sink-(.+)-\d+")
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
KAFKA_STREAMS = re.compile(rf"(.+)-{UUID}-\d+")
CHANGELOG = "-changelog"
RUNNER = "moldau."  # the prefix of stores that belong to the runner and not to the topology
INTERNAL = (CHANGELOG, "-repartition")
STREAMS = "streams"
WITHOUT_MEMBERS = frozenset({"", "Empty", "Dead"})  # states of groups; their applications may run without members
UNKNOWN = "–"
MOST_NODES = 200  # that are shown at once; the search finds the others


class Kind(StrEnum):
    """What a node is."""

    TOPIC = "topic"
    GROUP = "group"
    APPLICATION = "application"
    PART = "sub-topology"
    STEP = "step"


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A topic, a group or an application."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What the cluster reported: topics, types and lags of groups, producers of topics, and names of producers."""

    topics: tuple[str, ...]
    types: Mapping[str, str]
    reads: Mapping[str, Mapping[str, int]]  # group -> topic -> lag
    writers: Mapping[str, set[int]]  # topic -> producer ids
    names: Mapping[int, str]  # producer id -> transactional id
    states: Mapping[str, str] = field(default_factory=dict)  # of groups
    reports: Mapping[str, Report] = field(default_factory=dict)  # of applications on Spark, by group


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and edges; the number at an edge from a topic is the lag there. The whole graph also has the states of
    groups and the reports of applications.
    """

    nodes: tuple[Node, ...] = ()
    edges: Mapping[tuple[Node, Node], int | None] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    reports: Mapping[str, Report] = field(default_factory=dict)

    def into(self, node: Node) -> list[Node]:
        return sorted(source for source, target in self.edges if target == node)

    def out_of(self, node: Node) -> list[Node]:
        return sorted(target for source, target in self.edges if source == node)


def application_of(transactional_id: str) -> str:
    """Return the application that an id was made for, or the id itself if it does not say."""
    match = OWN_SINK.fullmatch(transactional_id) or KAFKA_STREAMS.fullmatch(transactional_id)
    return match[1] if match else transactional_id


def graph(seen: Seen) -> Graph:
    """Make the graph of everything that was seen, without Kafka's own topics."""
    writing = {
        topic: {application_of(seen.names[number]) for number in ids if number in seen.names}
        for topic, ids in seen.writers.items()
        if is_shown(topic)
    }
    applications = {name for names in writing.values() for name in names}
    applications |= {name for name, kind in seen.types.items() if kind.lower() == STREAMS} | seen.reports.keys()
    internal = [topic for topic in seen.topics if topic.endswith(INTERNAL)]
    applications |= {name for name in seen.types if any(is_own(topic, name) for topic in internal)}
    edges: dict[tuple[Node, Node], int | None] = {}
    for name, topics in seen.reads.items():
        reader = Node(Kind.APPLICATION if name in applications else Kind.GROUP, name)
        edges |= {(Node(Kind.TOPIC, topic), reader): lag for topic, lag in topics.items() if is_shown(topic)}
    for topic, names in writing.items():
        edges |= {(Node(Kind.APPLICATION, name), Node(Kind.TOPIC, topic)): None for name in names}
    nodes = {node for edge in edges for node in edge}
    nodes |= {Node(Kind.TOPIC, topic) for topic in seen.topics if is_shown(topic)}
    nodes |= {Node(Kind.APPLICATION, name) for name in applications}
    nodes |= {Node(Kind.GROUP, name) for name in seen.types if name not in applications}
    return Graph(tuple(sorted(nodes)), edges, seen.states, seen.reports)


def is_shown(topic: str) -> bool:
    return not topic.startswith("_")


def is_own(topic: str, application: str) -> bool:
    """Say whether a topic is an internal topic of an application."""
    return topic.startswith(f"{application}-") and topic.endswith(INTERNAL)


def store_of(topic: str, application: str) -> str | None:
    """Return the store whose changelog a topic is, if it is one."""
    if not topic.startswith(f"{application}-") or not topic.endswith(CHANGELOG):
        return None
    name = topic[len(application) + 1 : -len(CHANGELOG)]
    return name if name and not name.startswith(RUNNER) else None


def topology(parts: Iterable[SubTopology]) -> Graph:
    """Make a graph of the sub-topologies of an application and the topics between them."""
    edges: dict[tuple[Node, Node], int | None] = {}
    for part in parts:
        here = Node(Kind.PART, part.id)
        edges |= {(Node(Kind.TOPIC, name), here): None for name in (*part.sources, *part.repartition_sources)}
        edges |= {(here, Node(Kind.TOPIC, name)): None for name in (*part.repartition_sinks, *part.changelogs)}
    return Graph(tuple(sorted({node for edge in edges for node in edge})), edges)


@dataclass(frozen=True, slots=True)
class Application:
    """An application: its state, since when, a sentence about it, and what it reads and writes besides its internal
    topics. `fallbacks` are batches that it processed record by record.
    """

    name: str
    state: str
    since_ms: int | None
    detail: str | None
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    lag: int | None
    fallbacks: tuple[Fallback, ...] = ()


def applications(whole: Graph, now_ms: int) -> list[Application]:
    return [application(whole, node, now_ms) for node in whole.nodes if node.kind is Kind.APPLICATION]


def application(whole: Graph, node: Node, now_ms: int) -> Application:
    written = tuple(topic.name for topic in whole.out_of(node) if not is_own(topic.name, node.name))
    read, lag = tuple(topic.name for topic in whole.into(node)), lag_of(whole, node)
    does = activity_of(whole, node.name, lag, now_ms)
    return Application(node.name, does.state, does.since_ms, does.detail, read, written, lag, does.fallbacks)


def activity_of(whole: Graph, name: str, lag: int | None, now_ms: int) -> Activity:
    """Return the state of an application: that of its group if it has members, otherwise that of its report."""
    state, report = whole.states.get(name, ""), whole.reports.get(name)
    if report is not None and state in WITHOUT_MEMBERS:
        return activity(report, lag, now_ms)
    return Activity(state or UNKNOWN)


def fallback_line(one: Fallback) -> str:
    return f"{one.batches:,} batches of sub-topology {one.sub_topology} were processed record by record: {one.reason}"


def lag_of(whole: Graph, reader: Node) -> int | None:
    """Return the lag of a reader, summed over all topics that it reads."""
    known = [lag for (_, target), lag in whole.edges.items() if target == reader and lag is not None]
    return sum(known) if known else None


def labels(of: Graph, flow: Flow, application: str = "") -> dict[tuple[Node, Node], str]:
    """Return the labels of edges: records per second, and the lag if there is one. Sub-topologies and steps read as the
    group of their `application`.
    """
    found: dict[tuple[Node, Node], str] = {}
    for (source, target), lag in of.edges.items():
        if source.kind is Kind.TOPIC:
            place = (application if target.kind in (Kind.PART, Kind.STEP) else target.name, source.name)
            rate, behind = flow.read.get(place), flow.lag.get(place, lag)
        else:
            rate, behind = flow.written.get(target.name), None
        speed = f"{figures.count(rate)}/s" if rate is not None else ""
        found[source, target] = " · ".join(filter(None, (speed, f"lag {figures.count(behind)}" if behind else "")))
    return found


def around(whole: Graph, wanted: Iterable[Node]) -> Graph:
    """Return the part of the graph that is upstream or downstream of some nodes."""
    start = set(wanted)
    return _only(whole, _reached(whole, start, forward=True) | _reached(whole, start, forward=False))


def _reached(whole: Graph, start: set[Node], *, forward: bool) -> set[Node]:
    beside = _neighbours(whole, forward=forward)
    found, waiting = set(start), deque(start)
    while waiting:
        for other in beside.get(waiting.popleft(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _neighbours(of: Graph, *, forward: bool) -> dict[Node, list[Node]]:
    found: dict[Node, list[Node]] = {}
    for source, target in of.edges if forward else ((target, source) for source, target in of.edges):
        found.setdefault(source, []).append(target)
    return found


def chosen(whole: Graph, search: str) -> Graph:
    """Return what matches a search and everything around it, or all that is connected; at most MOST_NODES nodes."""
    words = search.lower().split()
    if words:
        hits = [node for node in whole.nodes if all(word in node.name.lower() for word in words)]
        found = around(whole, hits[:MOST_NODES])
    else:
        linked = {node for edge in whole.edges for node in edge}
        found = _only(whole, linked or set(whole.nodes))
    return _only(found, set(found.nodes[:MOST_NODES]))


def without_own(whole: Graph) -> Graph:
    """Return the graph without the internal topics of applications."""
    names = [node.name for node in whole.nodes if node.kind is Kind.APPLICATION]
    own = {
        node
        for node in whole.nodes
        if node.kind is Kind.TOPIC and node.name.endswith(INTERNAL) and any(is_own(node.name, name) for name in names)
    }
    return _only(whole, set(whole.nodes) - own)


def _only(whole: Graph, kept: set[Node]) -> Graph:
    edges = {edge: lag for edge, lag in whole.edges.items() if kept.issuperset(edge)}
    return Graph(tuple(node for node in whole.nodes if node in kept), edges)


def layers(of: Graph) -> dict[Node, int]:
    """Return the column of each node: to the right of all its sources. Edges that close a cycle do not count."""
    back = _ways_back(of)
    onward = [edge for edge in of.edges if edge not in back]
    depth = dict.fromkeys(of.nodes, 0)
    for _ in of.nodes:
        behind = [(source, target) for source, target in onward if depth[target] <= depth[source]]
        for source, target in behind:
            depth[target] = max(depth[target], depth[source] + 1)
        if not behind:
            break
    return depth


def place_nodes(of: Graph) -> dict[Node, tuple[int, int]]:
    """Return column (from 0) and row (from 1) of each node. Within a column, nodes are ordered by the mean row of their
    sources, so that fewer edges cross and labels can be read.
    """
    depth = layers(of)
    above: dict[Node, list[Node]] = {}
    for source, target in of.edges:
        above.setdefault(target, []).append(source)
    rows: dict[Node, int] = {}
    for column in sorted(set(depth.values())):
        here = [node for node in of.nodes if depth[node] == column]
        middle = {node: _mean([rows[one] for one in above.get(node, ()) if one in rows]) for node in here}
        for row, node in enumerate(sorted(here, key=lambda node: middle[node]), 1):
            rows[node] = row
    return {node: (depth[node], rows[node]) for node in of.nodes}


def _mean(rows: list[int]) -> float:
    return sum(rows) / len(rows) if rows else 0.0


def _ways_back(of: Graph) -> set[tuple[Node, Node]]:
    """Return the edges that close a cycle: those to a node on the current path of a depth-first walk."""
    beside = _neighbours(of, forward=True)
    begun: set[Node] = set()
    open_now: set[Node] = set()
    back: set[tuple[Node, Node]] = set()
    for root in of.nodes:
        path = [] if root in begun else [(root, iter(beside.get(root, ())))]
        begun.add(root)
        open_now |= {node for node, _ in path}
        while path:
            node, others = path[-1]
            other = next(others, None)
            if other is None:
                open_now.discard(node)
                path.pop()
            elif other in open_now:
                back.add((node, other))
            elif other not in begun:
                begun.add(other)
                open_now.add(other)
                path.append((other, iter(beside.get(other, ()))))
    return back
