"""What the pages of SQL show, without a server."""

from __future__ import annotations

import pytest

from moldau.console.model import sql
from moldau.console.model.lineage import Kind, Node
from moldau.plan.describe import describe
from moldau.sql.engine import Engine
from moldau.sql.lowering import build


@pytest.mark.parametrize(
    ("text", "looks"),
    [("select 1", True), ("/* x */ SHOW STREAMS", True), ("INSERT INTO x VALUES (1)", False), ("TERMINATE ALL", False)],
)
def test_who_only_looks_changes_nothing(text: str, looks: bool) -> None:
    assert sql.only_looks(text) is looks


def test_numbers_of_rows_can_be_plotted() -> None:
    rows = [(1.0, ["a", 1, None, True, 2.5]), (2.0, ["b", 3, 4, False, "x"])]
    lines = sql.numbers(["S", "I", "N", "B", "MIXED"], rows)
    assert lines == [("I", [(1.0, 1), (2.0, 3)]), ("N", [(2.0, 4)])]


def test_rows_keep_equal_names_apart() -> None:
    assert sql.row(["A", "A"], [1, {"x": None}], 7) == {"id": 7, "c0": "1", "c1": "{x=null}"}


def test_queries_that_failed_come_first() -> None:
    found = [
        {"id": "CSAS_A_1", "state": "RUNNING:1", "queryType": "PERSISTENT", "sinks": ["A"], "queryString": "x\n y"},
        {"id": "CSAS_B_2", "state": "ERROR:1", "queryType": "PERSISTENT", "sinks": ["B"], "queryString": "z"},
    ]
    rows = sql.query_rows(found, {"CSAS_A_1": 3})
    assert [(row["query"], row["state"], row["lag"]) for row in rows] == [
        ("CSAS_B_2", "ERROR", "–"),
        ("CSAS_A_1", "RUNNING", 3),
    ]
    assert rows[1]["statement"] == "x y" and rows[1]["link"] == "/sql/queries/CSAS_A_1"


def test_topology_becomes_a_picture() -> None:
    engine = Engine()
    (plan,) = engine.execute_text(
        "CREATE STREAM pay (id INT KEY, card STRING, amount INT) WITH (kafka_topic='pay', value_format='JSON');"
        "CREATE TABLE spend AS SELECT card, SUM(amount) AS total FROM pay GROUP BY card;"
    )
    topology = build(plan).build()
    graph = sql.picture(describe(topology.plan(topology.settings)), "app")
    topics = {node.name for node in graph.nodes if node.kind is Kind.TOPIC}
    assert topics == {"pay", "SPEND", "app-Aggregate-GroupBy-repartition"}
    assert graph.into(Node(Kind.TOPIC, "pay")) == [] and graph.out_of(Node(Kind.TOPIC, "SPEND")) == []
    inner = Node(Kind.TOPIC, "app-Aggregate-GroupBy-repartition")
    assert len(graph.into(inner)) == len(graph.out_of(inner)) == 1
    assert any("Aggregate-Aggregate-Materialize" in node.name for node in graph.nodes)
    reached, before = {Node(Kind.TOPIC, "pay")}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {target for source, target in graph.edges if source in reached}
    assert reached == set(graph.nodes)
