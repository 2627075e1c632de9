"""Brokers with what they carry, put together from what was seen of a cluster."""

from __future__ import annotations

from moldau.admin.brokers import Sight, rows
from moldau.admin.clusters import KAFKA, MOLDAU, BrokerState, ClusterState, Quorum, Replica
from moldau.admin.log_dirs import LogDir
from moldau.admin.log_dirs import Replica as Kept
from moldau.admin.topics import PartitionState, TopicState
from moldau.client import Error

PLACE = ("t", 0)


def folder(size: int, free: int = 500) -> LogDir:
    return LogDir("/data", Error.NONE, (Kept(PLACE, size, 0, False), Kept(PLACE, 7, 0, True)), 1000, free)


def sight() -> Sight:
    """Broker 1 leads, 2 lags, 3 is silent, 4 is fenced."""
    brokers = tuple(BrokerState(one, "h", 9090 + one, f"r{one}", False, one == 4) for one in (1, 2, 3, 4))
    part = PartitionState(0, 1, 0, (1, 2, 4), (1,))
    voters = tuple(Replica(one, bytes(16), 10, 0, 0, one != 4) for one in (1, 2, 4))
    return Sight(
        ClusterState("c", 1, brokers),
        [TopicState("t", bytes(16), False, (part,))],
        {1: KAFKA, 2: MOLDAU},
        {1: [folder(100), LogDir("/more", Error.NONE, (), 1000, 300)], 2: [folder(40)]},
        Quorum(2, 5, 10, voters),
    )


def test_a_broker_is_shown_with_its_kind_state_load_and_lag() -> None:
    first, second, third, fourth = rows(sight())
    assert (first.address, first.rack, first.kind, first.state) == ("h:9091", "r1", "Kafka", "up")
    assert (first.leaders, first.replicas, first.not_in_sync, first.behind_bytes) == (1, 1, 0, 0)
    assert (first.bytes, first.free_bytes, first.log_dirs) == (107, 300, ("/data", "/more"))
    assert (second.kind, second.leaders, second.replicas, second.not_in_sync) == ("Moldau", 0, 1, 1)
    assert second.behind_bytes == 60, "what its replica lacks of the leader's"
    assert (third.kind, third.state, third.bytes, third.free_bytes) == (None, "silent", None, None)
    assert (fourth.state, fourth.is_fenced, fourth.behind_bytes) == ("fenced", True, 100)


def test_voters_have_a_part_in_the_quorum_and_its_leader_is_the_controller() -> None:
    found = rows(sight())
    assert [one.quorum for one in found] == ["voter", "leader", None, None]
    assert [one.is_controller for one in found] == [False, True, False, False]
