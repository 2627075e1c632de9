"""What is wrong with a cluster is told with the reason, the worst one of each partition."""

from __future__ import annotations

from typing import Any

from moldau.admin import health
from moldau.admin.clusters import BrokerState, ClusterState, Quorum, Replica
from moldau.admin.health import Sight, Trouble, judge
from moldau.admin.log_dirs import LogDir
from moldau.admin.reassignments import Reassignment
from moldau.admin.topics import PartitionState, TopicState
from moldau.client import Error

GOOD = LogDir("/data", Error.NONE, ())


def sight(*parts: PartitionState, least: int = 2, fenced: tuple[int, ...] = (), **more: Any) -> Sight:
    brokers = tuple(BrokerState(one, "h", 9092, None, one == 1, one in fenced) for one in (1, 2, 3))
    facts: dict[str, Any] = {
        "folders": {one: [GOOD] for one in (1, 2, 3) if one not in fenced},
        "quorum": quorum((1, 100, 50_000)),
        "moves": {},
        **more,
    }
    return Sight(
        ClusterState("c", 1, brokers), (TopicState("t", bytes(16), False, parts),), least={"t": least}, **facts
    )


def quorum(*replicas: tuple[int, int, int], leader: int = 1) -> Quorum:
    known = (Replica(one, bytes(16), end, at, at, one < 10) for one, end, at in replicas)
    return Quorum(leader, 3, 100, tuple(known))


def part(leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionState:
    return PartitionState(0, leader, 0, replicas, isr)


def test_nothing_is_wrong_with_a_sound_cluster() -> None:
    assert judge(sight(part(1, (1, 2, 3), (1, 2, 3)))) == []
    assert judge(sight(part(1, (1,), (1,)), least=2)) == [], "a topic cannot need more replicas than it has"


def test_a_partition_has_its_worst_reason_and_names_who_is_missing() -> None:
    def found(one: PartitionState, **more: Any) -> tuple[str, str]:
        trouble = judge(sight(one, **more))[-1]
        assert trouble.where == "t-0" and trouble.is_unwell
        return trouble.reason, trouble.details

    three = (1, 2, 3)
    assert found(part(-1, three, ()), fenced=(2, 3)) == (
        health.NO_LEADER,
        "replicas 1, 2, 3, in sync nobody; missing 1, 2 (fenced), 3 (fenced)",
    )
    few = part(1, three, (1,))
    assert found(few)[0] == health.UNDER_MIN_ISR
    assert found(few, least=1)[0] == health.AT_MIN_ISR
    assert found(part(1, three, (1, 3)), least=1) == (
        health.UNDER_REPLICATED,
        "2 of 3 in sync, acks=all needs 1; missing 2",
    )


def test_replicas_that_only_come_by_a_move_are_not_missing() -> None:
    moves = {("t", 0): Reassignment((3, 1, 2), (3,), (2,))}
    [trouble] = judge(sight(part(1, (3, 1, 2), (1, 2)), moves=moves))
    assert trouble == Trouble("t-0", health.MOVING, "leader 1; moving to 3, from 2") and not trouble.is_unwell


def test_brokers_directories_and_the_quorum_are_looked_at() -> None:
    offline = LogDir("/bad", Error.KAFKA_STORAGE_ERROR, ())
    lagging = quorum((1, 100, 50_000), (2, 100, 20_000), (3, 90, 45_000), (4, 50, 20_000), (13, 9, 100))
    found = judge(sight(fenced=(3,), folders={1: [GOOD, offline]}, quorum=lagging))
    assert [(one.where, one.reason) for one in found] == [
        ("broker 3", health.FENCED),
        ("broker 2", health.SILENT),
        ("broker 1", health.OFFLINE),
        ("quorum", health.LAGS),
        ("quorum", health.LAGS),
    ]
    assert found[3].details == "voter 4 is 50 offsets behind, for 30 s"
    [away] = judge(sight(quorum=quorum((1, 100, 50_000), (2, 90, -1))))
    assert away.details == "voter 2 has never caught up with leader 1", "it died before this one led"
    assert [one.reason for one in judge(sight(quorum=quorum((1, 1, 1), leader=-1)))] == [health.NO_QUORUM]
