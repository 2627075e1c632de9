"""Plans of swaps: the order of the nodes, what is refused, and what stops meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moldau.admin.clusters import KAFKA, MOLDAU
from moldau.admin.reassignments import Reassignment
from moldau.admin.swapping import Node, Plan, Seen, Verdict, plan
from moldau.admin.topics import PartitionState
from tests.admin.test_health import part, quorum, sight

SUPPORTED = {"metadata.version": (7, 30), "kraft.version": (0, 1)}
PLAIN = {"node.id": "1", "listeners": "PLAINTEXT://:9092"}


def seen(*parts: PartitionState, voters: tuple[int, ...] = (11, 12, 13), least: int = 2, **more: Any) -> Seen:
    facts: dict[str, Any] = {
        "nodes": {one: Node(KAFKA, 30, PLAIN, {}) for one in (1, 2, 3)},
        "features": {"metadata.version": 30},
        "everywhere": {},
        "topics": {"t": {}},
        "least": {"t": least},
        **more,
    }
    known = replace(quorum(), leader=voters[0], replicas=_voting(voters))
    return Seen(sight(*(parts or (part(1, (1, 2, 3), (1, 2, 3)),)), quorum=known), **facts)


def _voting(voters: tuple[int, ...]) -> Any:
    return tuple(replace(one, is_voter=True) for one in quorum(*((node, 100, 50_000) for node in voters)).replicas)


def of(found: Plan, verdict: Verdict = Verdict.REFUSED) -> list[tuple[str, str]]:
    return [(one.where, one.sentence) for one in found.remarks if one.verdict is verdict]


def test_a_sound_cluster_is_swapped_node_by_node_the_idle_ones_first() -> None:
    parts = (part(1, (1, 2, 3), (1, 2, 3)), part(1, (1, 3), (1, 3)))
    found = plan(seen(*parts, least=2), SUPPORTED)
    assert [(one.node, one.role, one.leaders) for one in found.steps] == [
        (2, "broker", 0),
        (3, "broker", 0),
        (1, "broker", 2),
    ]
    assert found.is_possible and of(found) == []


def test_voters_come_last_and_the_leader_of_the_quorum_at_the_very_end() -> None:
    cluster = seen(voters=(1, 2, 11))
    found = plan(cluster, SUPPORTED)
    assert [(one.node, one.role) for one in found.steps] == [(3, "broker"), (2, "voter"), (1, "quorum leader")]
    assert "nothing can be changed" in of(plan(seen(voters=(1,)), SUPPORTED), Verdict.STOPS)[0][1]


def test_controllers_that_are_no_brokers_are_swapped_too_if_they_tell_what_they_are() -> None:
    nodes = {one: Node(KAFKA, 30, PLAIN, {}) for one in (1, 2, 3, 11, 12)}
    found = plan(seen(nodes=nodes, silent={13: "nobody listens there"}), SUPPORTED)
    assert [(one.node, one.role) for one in found.steps[3:]] == [(12, "voter"), (11, "quorum leader")]
    assert found.is_possible and of(found)[0][0] == "node 13" and "nobody listens there" in of(found)[0][1]


def test_nodes_that_are_moldaus_are_left_out() -> None:
    nodes = {1: Node(KAFKA, 30, PLAIN, {}), 2: Node(MOLDAU, 30, PLAIN, {})}
    assert [one.node for one in plan(seen(nodes=nodes), SUPPORTED).steps] == [1]


@pytest.mark.parametrize(
    ("facts", "where", "said"),
    [
        ({"features": {"metadata.version": 31}}, "features", "level 31, and Moldau has 7 to 30"),
        ({"features": {"odd.version": 1}}, "features", "does not know it"),
        ({"topics": {"t": {"remote.storage.enable": "true"}}}, "topic t", "Moldau cannot serve it"),
    ],
)
def test_what_moldau_cannot_take_is_refused(facts: dict[str, Any], where: str, said: str) -> None:
    found = plan(seen(**facts), SUPPORTED)
    assert not found.is_possible
    assert [(one, said in sentence) for one, sentence in of(found)] == [(where, True)]


def test_nothing_is_swapped_while_replicas_lag_or_move() -> None:
    lagging = plan(seen(part(1, (1, 2, 3), (1, 2))), SUPPORTED)
    assert not lagging.is_possible and "missing 3" in of(lagging)[0][1]
    cluster = seen(part(1, (1, 2, 3), (1, 2, 3)))
    moves = {("t", 0): Reassignment((1, 2, 3), (3,), (2,))}
    moving = plan(replace(cluster, sight=replace(cluster.sight, moves=moves)), SUPPORTED)
    assert not moving.is_possible and "being moved" in of(moving)[0][1]


def test_nothing_is_swapped_while_a_voter_is_away_or_behind() -> None:
    cluster = seen(voters=(11, 12, 13))
    assert cluster.sight.quorum is not None
    leader, away, behind = cluster.sight.quorum.replicas
    replicas = (leader, replace(away, last_fetch_ms=-1), replace(behind, log_end_offset=leader.log_end_offset - 101))
    known = replace(cluster.sight.quorum, replicas=replicas)
    found = plan(replace(cluster, sight=replace(cluster.sight, quorum=known)), SUPPORTED)
    assert not found.is_possible
    assert [(where, "does not hear" in said, "101 offsets" in said) for where, said in of(found)] == [
        ("voter 12", True, False),
        ("voter 13", False, True),
    ]


def test_a_node_whose_settings_moldau_refuses_is_left_out_and_others_go_on() -> None:
    bad = {**PLAIN, "log.segment.bytes": "many"}
    nodes = {
        1: Node(KAFKA, 30, bad, {}),
        2: Node(KAFKA, 30, PLAIN, {"odd.setting": "1"}),
        3: Node(KAFKA, 29, PLAIN, {}),
    }
    found = plan(seen(nodes=nodes), SUPPORTED)
    assert [one.node for one in found.steps] == [2, 3] and found.is_possible
    assert of(found)[0][0] == "node 1" and "log.segment.bytes" in of(found)[0][1]
    notes = dict(of(found, Verdict.NOTE))
    assert "odd.setting is unknown" in notes["node 2"] and "different releases" in notes["features"]


def test_what_stops_while_a_node_is_away_is_told() -> None:
    assert "one replica" in of(plan(seen(part(1, (1,), (1,))), SUPPORTED), Verdict.STOPS)[0][1]
    pair = part(1, (1, 2), (1, 2))
    assert "acks=all fails" in of(plan(seen(pair), SUPPORTED), Verdict.STOPS)[0][1]
    assert "single disk" in of(plan(seen(pair, least=1), SUPPORTED), Verdict.NOTE)[0][1]
    unclean = plan(seen(unclean=frozenset({"t"})), SUPPORTED)
    assert "records be lost" in of(unclean, Verdict.STOPS)[0][1]
