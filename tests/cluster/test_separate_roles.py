"""A Moldau controller that is no broker, and a Moldau broker that is no controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.admin import clusters, swapping
from moldau.client import Client
from moldau.machines.metadata.checkpoints import Checkpoint, read_checkpoint
from tests.cluster.clients import admin, place, read
from tests.cluster.mixed import DYNAMIC, MOLDAU, Cluster, cluster, eventually

OFTEN = {
    "metadata_log_max_snapshot_interval_ms": "500",
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": "100",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = {1: (MOLDAU, "controller"), 2: (MOLDAU, "broker")}
    with cluster(Path(), tmp_path_factory.mktemp("pair"), nodes, voters=DYNAMIC, **OFTEN) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == {2})
        yield made


def names(made: Cluster, node: int) -> list[Path]:
    """Return the snapshots that a node has written, or fetched."""
    found = sorted(made[node].folder.glob("data/__cluster_metadata-0/*.checkpoint"))
    return [path for path in found if int(path.name[:20])]


def written(made: Cluster, node: int) -> Checkpoint:
    """Return the newest snapshot of a node."""
    return read_checkpoint(eventually(lambda: names(made, node))[-1].read_bytes())


def test_a_controller_bears_topics_of_coordinators_that_it_does_not_hold(pair: Cluster) -> None:
    place(pair, "t", [2])
    producer = Producer(pair.client(transactional_id="x"))
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"7", partition=0)
    producer.commit_transaction(60)
    assert read(pair, "t", 1, 1, isolation_level="read_committed") == [7]
    pair[1].leave()
    pair[1].start()
    pair[1].await_port()
    before = names(pair, 1)
    eventually(lambda: names(pair, 1) != before)  # so its timers have run many times
    assert "Exception" not in pair[1].log.read_text()


def test_a_brokers_snapshot_says_who_votes(pair: Cluster) -> None:
    """Kafka, started on its directories, finds the controllers by it."""
    ours, theirs = written(pair, 2), written(pair, 1)
    assert ours.voters is not None and ours.voters == theirs.voters and ours.kraft_version == 1
    assert [voter.voter_id for voter in ours.voters.voters] == [1]
    with Client({"bootstrap.servers": pair.bootstrap}) as client:
        assert client.features()["kraft.version"] == 1
    pair[2].leave()
    pair[2].start()
    pair[2].await_port()
    eventually(lambda: set(admin(pair).list_topics(timeout=10).brokers) == {2})
    assert written(pair, 2).voters == theirs.voters


def test_a_plan_of_a_swap_asks_controllers_too(pair: Cluster) -> None:
    with Client({"bootstrap.servers": pair.bootstrap}) as client:
        seen = swapping.look(client)
    assert {node: one.kind for node, one in seen.nodes.items()} == {1: clusters.MOLDAU, 2: clusters.MOLDAU}
    assert {node: one.static["process.roles"] for node, one in seen.nodes.items()} == {1: "controller", 2: "broker"}
    assert seen.silent == {}
