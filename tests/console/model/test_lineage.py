"""What flows where, from what a cluster tells."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.admin.groups import SubTopology
from moldau.console.model.history import Flow
from moldau.console.model.lineage import (
    Application,
    Graph,
    Kind,
    Node,
    Seen,
    application_of,
    applications,
    around,
    chosen,
    graph,
    labels,
    layers,
    place_nodes,
    store_of,
    topology,
    without_own,
)
from moldau.spark.runner.reports import Fallback, Report
from moldau.spark.runner.status import State

ORDERS, BILLS = Node(Kind.TOPIC, "orders"), Node(Kind.TOPIC, "bills")
BILLER, MAIL = Node(Kind.APPLICATION, "biller"), Node(Kind.GROUP, "mail")
SEEN = Seen(
    ("orders", "bills", "lonely", "biller-counts-changelog", "__consumer_offsets"),
    {"biller": "Classic", "mail": "Consumer"},
    {"biller": {"orders": 3}, "mail": {"bills": 0}},
    {"bills": {7}, "biller-counts-changelog": {7, 8}, "__consumer_offsets": {7}},
    {7: "moldau-sink-biller-0"},
)


@pytest.mark.parametrize(
    ("id", "application"),
    [
        ("moldau-sink-my-app-12", "my-app"),
        ("shop-1f0e9d3c-5f7d-4a53-9c0b-0123456789ab-3", "shop"),
        ("anything", "anything"),
    ],
)
def test_an_application_is_known_by_the_ids_that_it_writes_under(id: str, application: str) -> None:
    assert application_of(id) == application


def test_a_group_that_writes_is_an_application() -> None:
    whole = graph(SEEN)
    assert {BILLER, MAIL, ORDERS, BILLS} < set(whole.nodes) and Node(Kind.GROUP, "biller") not in whole.nodes
    assert whole.edges[ORDERS, BILLER] == 3 and whole.edges[BILLS, MAIL] == 0
    assert whole.out_of(BILLER) == [Node(Kind.TOPIC, "biller-counts-changelog"), BILLS]
    assert not any(node.name.startswith("__") for node in whole.nodes)


def test_edges_say_how_much_flows_and_how_far_behind_readers_are() -> None:
    flow = Flow({"bills": 4.0}, {("biller", "orders"): 12.5, ("app", "orders"): 3.0}, {("biller", "orders"): 7})
    whole = graph(SEEN)
    found = labels(whole, flow)
    assert found[ORDERS, BILLER] == "12/s · lag 7" and found[BILLER, BILLS] == "4.0/s" and found[BILLS, MAIL] == ""
    assert labels(whole, Flow())[ORDERS, BILLER] == "lag 3"
    parts = topology([SubTopology("0", ("orders",), (), (), ("app-counts-changelog",))])
    assert labels(parts, flow, "app")[ORDERS, Node(Kind.PART, "0")] == "3.0/s"


def test_applications_are_listed_with_what_they_read_and_write() -> None:
    [found] = applications(graph(replace(SEEN, states={"biller": "Stable"})), 0)
    assert found == Application("biller", "Stable", None, None, ("orders",), ("bills",), 3)
    assert store_of("biller-counts-changelog", "biller") == "counts" and store_of("bills", "biller") is None
    assert store_of("biller-moldau.shards-changelog", "biller") is None


def test_a_report_says_what_an_application_without_members_does() -> None:
    slow = (Fallback(0, 3, "an aggregate is None"),)
    failed = Report(State.FAILED, 5, 9, error="no weights", fallbacks=slow)
    seen = replace(SEEN, states={"biller": "Empty", "mail": "Empty"}, reports={"biller": failed, "mail": failed})
    biller, mail = applications(graph(seen), 10)
    assert (biller.state, biller.since_ms, biller.detail, biller.fallbacks) == ("failed", 5, "no weights", slow)
    assert mail.name == "mail", "who reports is an application, also without topics of its own"
    [joined, _] = applications(graph(replace(seen, states={"biller": "Stable"})), 10)
    assert (joined.state, joined.detail) == ("Stable", None), "another program has joined the group since"


def test_topics_that_an_application_keeps_for_itself_are_left_out() -> None:
    shown = without_own(graph(SEEN))
    assert Node(Kind.TOPIC, "biller-counts-changelog") not in shown.nodes and shown.out_of(BILLER) == [BILLS]
    alone = Seen(("x-changelog",), {}, {}, {}, {})
    assert without_own(graph(alone)).nodes == (Node(Kind.TOPIC, "x-changelog"),), "it belongs to nobody"


def test_a_search_finds_what_it_comes_from_and_leads_to() -> None:
    whole = graph(SEEN)
    assert set(chosen(whole, "mail").nodes) == {MAIL, BILLS, BILLER, ORDERS}
    assert set(around(whole, [ORDERS]).nodes) >= {ORDERS, BILLER, BILLS, MAIL}
    assert Node(Kind.TOPIC, "lonely") not in chosen(whole, "").nodes
    assert chosen(whole, "lonely").nodes == (Node(Kind.TOPIC, "lonely"),)
    assert chosen(whole, "no such").nodes == ()


def test_what_comes_of_something_stands_to_its_right() -> None:
    depth = layers(graph(SEEN))
    assert depth[ORDERS] < depth[BILLER] < depth[BILLS] < depth[MAIL]


def test_nodes_stand_beside_what_they_come_from() -> None:
    first, second, third = (Node(Kind.TOPIC, name) for name in "abc")
    early, late = Node(Kind.APPLICATION, "early"), Node(Kind.APPLICATION, "later")
    found = place_nodes(
        Graph((first, second, third, early, late), {(first, late): 0, (second, early): 0, (third, early): 0})
    )
    assert found == {first: (0, 1), second: (0, 2), third: (0, 3), late: (1, 1), early: (1, 2)}


def test_sub_topologies_stand_between_their_topics() -> None:
    first = SubTopology("0", ("orders",), (), ("app-by-user-repartition",), ())
    second = SubTopology("1", (), ("app-by-user-repartition",), (), ("app-counts-changelog",))
    depth = layers(topology([first, second]))
    assert [node.name for node in sorted(depth, key=lambda node: depth[node])] == [
        "orders",
        "0",
        "app-by-user-repartition",
        "1",
        "app-counts-changelog",
    ]


NODES = [Node(Kind.TOPIC, str(number)) for number in range(6)]


@settings(deadline=None)
@given(st.sets(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES))))
def test_circles_have_an_end(edges: set[tuple[Node, Node]]) -> None:
    depth = layers(Graph(tuple(NODES), dict.fromkeys(edges)))
    assert all(0 <= found < len(NODES) for found in depth.values())
