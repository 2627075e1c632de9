"""What the pages of SQL show: rows of answers, what can be plotted of them, queries, and topologies as graphs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.console import paths
from moldau.console.model.lineage import Graph, Kind, Node
from moldau.sql.shell.statements import words
from moldau.sql.shell.tables import cell

COLOURS = {"RUNNING": "positive", "ERROR": "negative", "PAUSED": "warning"}
LOOKS = ("SELECT", "WITH", "PRINT", "SHOW", "LIST", "DESCRIBE", "EXPLAIN", "SET", "UNSET", "DEFINE", "UNDEFINE")
Line = tuple[str, list[tuple[float, float]]]  # a name, and numbers over time
MOST_LINES = 5  # of a plot
_STEP = re.compile(r"(Source|Processor|Sink): (\S+)(?: \((topics?|stores): \[?([^\])]*)\]?\))?")
_NEXT = re.compile(r"--> (.+)")


def only_looks(statement: str) -> bool:
    """Return whether a statement changes nothing, so that those who may only look may execute it."""
    return words(statement, 1)[:1] in [[word] for word in LOOKS]


def row(columns: Sequence[str], values: Sequence[Any], number: int) -> dict[str, Any]:
    """Return a row of a table; columns are told apart by their place, because names may be equal."""
    return {"id": number, **{f"c{at}": cell(value) for at, value in enumerate(values[: len(columns)])}}


def numbers(names: Sequence[str], rows: Sequence[tuple[float, Sequence[Any]]]) -> list[Line]:
    """Return the lines of a plot: the columns that have numbers, over the times at which rows came."""
    lines = []
    for at, name in enumerate(names):
        points = [(when, values[at]) for when, values in rows if at < len(values) and _is_number(values[at])]
        if points and all(_is_number(values[at]) or values[at] is None for _, values in rows if at < len(values)):
            lines.append((name, points))
    return lines[:MOST_LINES]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def query_rows(queries: Sequence[Mapping[str, Any]], lags: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the rows of the list of queries, those with errors first."""
    made = []
    for one in queries:
        state = state_of(one)
        made.append(
            {
                "query": one["id"],
                "link": paths.sql_query(one["id"]),
                "type": str(one.get("queryType", "")).lower(),
                "state": state,
                "state_colour": COLOURS.get(state, "grey"),
                "sink": ", ".join(one.get("sinks", ())),
                "lag": lags.get(one["id"], "–"),
                "statement": " ".join(str(one.get("queryString", "")).split()),
            }
        )
    return sorted(made, key=lambda row: (row["state"] != "ERROR", row["query"]))


def state_of(query: Mapping[str, Any]) -> str:
    return str(query.get("state") or "").partition(":")[0]


def group_of(service_id: str, query_id: str) -> str:
    """Return the consumer group of a query, which is also the prefix of its topics."""
    return f"_confluent-ksql-{service_id}query_{query_id}"


def picture(topology: str, group: str) -> Graph:
    """Return a described topology as a graph of topics and steps; internal topics have the group's prefix."""
    nodes: dict[Node, None] = {}
    edges: dict[tuple[Node, Node], int | None] = {}
    step: Node | None = None
    steps: dict[str, Node] = {}
    following: list[tuple[Node, str]] = []
    for line in topology.splitlines():
        found, after = _STEP.search(line), _NEXT.search(line)
        if found is not None:
            kind, name, what, named = found.groups()
            label = f"{name} ({named})" if what == "stores" and named else name
            step = steps[name] = Node(Kind.STEP, label)
            nodes[step] = None
            for topic in (one.strip() for one in (named or "").split(",") if what in ("topic", "topics")):
                full = f"{group}-{topic}" if topic.endswith("-repartition") else topic
                place = Node(Kind.TOPIC, full)
                nodes[place] = None
                edges[(step, place) if kind == "Sink" else (place, step)] = None
        elif after is not None and step is not None and after.group(1) != "none":
            following += [(step, name.strip()) for name in after.group(1).split(",")]
    edges |= {(source, steps[name]): None for source, name in following if name in steps}
    return Graph(tuple(nodes), edges)
