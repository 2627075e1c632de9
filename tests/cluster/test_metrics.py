"""Metrics of three real brokers, while one is killed, comes back, and a partition is moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moldau.admin import clusters, reassignments, topics
from moldau.broker.counters import ClusterCounters
from moldau.client import Client, Record, build, produce
from moldau.machines.metadata.cluster import Cluster as Image
from moldau.testing import eventually
from moldau.testing.clusters import Cluster
from moldau.testing.ports import free_ports
from moldau.wire import messages as m
from tests.broker.test_metrics import samples

WAIT_S = 120.0
TOPIC_ID = bytes(range(16))
Samples = dict[int, dict[tuple[str, tuple[str, ...]], float]]


class Watched:
    """A cluster whose brokers serve metrics."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.ports = dict(zip(cluster.brokers, free_ports(len(cluster.brokers)), strict=True))
        self.dead: set[int] = set()
        for node, broker in cluster.brokers.items():
            broker.arguments = ("--metrics-port", str(self.ports[node]))

    def read(self) -> Samples:
        return {node: samples(port) for node, port in self.ports.items() if node not in self.dead}

    def each(self, name: str) -> dict[int, float]:
        return {node: found[f"moldau_{name}", ()] for node, found in self.read().items()}

    def total(self, name: str) -> float:
        return sum(self.each(name).values())

    def states(self) -> list[str]:
        return sorted(labels[0] for found in self.read().values() for name, labels in found if name == STATE)


STATE = "moldau_quorum_state"


@contextmanager
def watched() -> Iterator[Watched]:
    cluster = Cluster(3)
    made = Watched(cluster)
    try:
        cluster.start()
        yield made
    finally:
        cluster.close()


def wait(condition: Callable[[], bool], what: str) -> None:
    eventually(condition, WAIT_S, what)


def test_metrics_follow_a_cluster_through_a_crash_and_a_move() -> None:
    with watched() as made, Client({"bootstrap.servers": made.cluster.bootstrap_servers}) as client:
        active = clusters.quorum(client).leader
        victim, target = (node for node in made.cluster.brokers if node != active)
        topics.create(client, [topics.NewTopic("t", 3), topics.NewTopic("alone", assignments={0: [victim]})])
        produce(client, "alone", 0, build([Record(0, 0, None, bytes(1000))] * 500))
        wait(lambda: made.total("leaders") >= 4, "leaders of all partitions")

        assert {node for node, one in made.each("active_controller").items() if one} == {active}
        assert set(made.each("active_brokers").values()) == {3} and not made.total("fenced_brokers")
        assert made.states() == ["follower", "follower", "leader"]
        assert len(set(made.each("quorum_epoch").values())) == 1
        found = made.read()[active]
        assert found["moldau_metadata_commits_total", ()] > 0 and found["moldau_metadata_commit_seconds_total", ()] > 0
        wait(lambda: not made.total("under_replicated_partitions"), "replicas in sync")
        made.cluster.kill(victim)
        made.dead.add(victim)
        wait(lambda: set(made.each("fenced_brokers").values()) == {1}, "fencing")
        wait(lambda: made.total("under_replicated_partitions") == made.total("at_min_isr_partitions") == 3, "ISRs")
        assert set(made.each("offline_partitions").values()) == {1} and not made.total("under_min_isr_partitions")
        assert made.total("isr_shrinks_total") >= 3
        assert made.total("leader_elections_total") > 0 and not made.total("unclean_leader_elections_total")

        made.cluster.start_again(victim)
        made.dead.discard(victim)
        wait(lambda: not made.total("under_replicated_partitions") and not made.total("offline_partitions"), "health")
        assert made.total("isr_expansions_total") >= 3

        reassignments.alter(client, {("alone", 0): [target]})
        wait(lambda: ("alone", 0) not in reassignments.listed(client), "the move")
        sent = made.each("reassignment_sent_bytes_total")
        received = made.each("reassignment_received_bytes_total")
        assert received[target] > 500_000 and sent[victim] == received[target]
        assert not sent[target] and not received[victim]
        wait(lambda: not made.total("reassigning_partitions"), "the end of the move on its leader")
        assert not made.total("replica_max_lag")


def test_elections_are_clean_or_not_by_who_was_in_sync() -> None:
    image, counters = Image(), ClusterCounters()
    image.replay(m.TopicRecord("t", TOPIC_ID))
    placed = {"replicas": [1, 2, 3], "isr": [1, 2], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    image.replay(m.PartitionRecord(partition_id=0, topic_id=TOPIC_ID, **placed))
    for leader in (-2, -1, 1):
        counters.note_election(image, m.PartitionChangeRecord(0, TOPIC_ID, leader=leader))
    assert (counters.elections, counters.unclean_elections) == (0, 0)
    counters.note_election(image, m.PartitionChangeRecord(0, TOPIC_ID, leader=2))
    assert (counters.elections, counters.unclean_elections) == (1, 0)
    counters.note_election(image, m.PartitionChangeRecord(0, TOPIC_ID, leader=3))
    assert (counters.elections, counters.unclean_elections) == (2, 1)


def test_an_isr_shrinks_and_expands_but_not_by_replicas_that_are_moved_away() -> None:
    counters = ClusterCounters()
    for before, after, replicas in (((), (1, 2), (1, 2)), ((1, 2), (2, 1), (1, 2)), ((1, 2), (2,), (2, 3))):
        counters.note_isr(before, after, replicas)
    assert (counters.isr_shrinks, counters.isr_expansions) == (0, 0)
    counters.note_isr((1, 2, 3), (1, 2), (1, 2, 3))
    counters.note_isr((1, 2), (1, 2, 3), (1, 2, 3))
    assert (counters.isr_shrinks, counters.isr_expansions) == (1, 1)
