"""The cluster that tests get: what its brokers hear of each other, and clients of them, while the network is cut."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.client import Client
from moldau.testing import Cluster, cluster, eventually
from moldau.testing.network import CLIENTS
from moldau.wire import messages as m

QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200"}


@pytest.fixture(scope="module")
def started() -> Iterator[Cluster]:
    with cluster(3, QUICK) as made:
        client = admin(made)  # to drop it would end the request
        client.create_topics([NewTopic("t", 3)])["t"].result(30)
        eventually(lambda: all(in_sync(made, node) == {1, 2, 3} for node in (1, 2, 3)))
        yield made


@pytest.fixture
def three(started: Cluster) -> Iterator[Cluster]:
    yield started
    started.heal()
    eventually(lambda: in_sync(started) == {1, 2, 3})


def admin(made: Cluster, *nodes: int) -> AdminClient:
    servers = ",".join(made[node].bootstrap_servers for node in nodes) or made.bootstrap_servers
    return AdminClient({"bootstrap.servers": servers, "broker.address.family": "v4", "log_level": 0})


def in_sync(made: Cluster, *through: int) -> set[int]:
    """Return who is in sync in all partitions, as some brokers say."""
    parts = admin(made, *through).list_topics("t", timeout=20).topics["t"].partitions.values()
    return set.intersection(*(set(part.isrs) for part in parts)) if parts else set()  # a broker may not know it yet


def leader(made: Cluster) -> int:
    asked = m.DescribeQuorumRequest_TopicData("__cluster_metadata", [m.DescribeQuorumRequest_PartitionData(0)])
    with Client({"bootstrap.servers": made.bootstrap_servers}) as client:
        return client.send(m.DescribeQuorumRequest([asked])).topics[0].partitions[0].leader_id


def test_a_broker_that_is_cut_off_is_fenced_and_comes_back(three: Cluster) -> None:
    three.partition(3)
    eventually(lambda: in_sync(three, 1, 2) == {1, 2})
    three.heal()
    eventually(lambda: in_sync(three, 1, 2) == {1, 2, 3})


def test_two_brokers_that_are_cut_off_together_go_on(three: Cluster) -> None:
    three.partition(1, 2)
    eventually(lambda: in_sync(three, 1, 2) == {1, 2})


def test_an_active_controller_whose_words_get_lost_is_replaced(three: Cluster) -> None:
    mute = leader(three)
    three.partition(mute, one_way=True)
    eventually(lambda: leader(three) != mute)


def test_clients_do_not_reach_a_broker_that_is_cut_off_from_them(three: Cluster) -> None:
    three.network.hold([(CLIENTS, 2), (2, CLIENTS)])
    with pytest.raises(KafkaException):
        admin(three, 2).list_topics(timeout=1)
    assert in_sync(three, 1, 3) == {1, 2, 3}, "the brokers still hear each other"


def test_a_slow_link_slows_down_clients(three: Cluster) -> None:
    three.slow(1, delay_s=0.2, clients=True)
    began = time.monotonic()
    admin(three, 1).list_topics(timeout=20)
    assert time.monotonic() - began >= 0.4, "there and back"


def test_a_killed_broker_is_seen_to_be_gone_through_its_proxy(three: Cluster) -> None:
    """Others fence it when its listener refuses connections: long before its session ends."""
    dead = 1 + leader(three) % 3
    others = [node for node in (1, 2, 3) if node != dead]
    three.kill(dead)
    eventually(lambda: refuses(three, dead))
    eventually(lambda: dead not in in_sync(three, *others))
    three.start_again(dead)
    assert not refuses(three, dead)


def refuses(made: Cluster, node: int) -> bool:
    host, _, port = made[node].bootstrap_servers.partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_the_fixture_gives_a_cluster_that_can_be_cut(kafka_cluster: Callable[..., Cluster]) -> None:
    made = kafka_cluster(2, broker_heartbeat_interval_ms=200)
    made.partition(1, clients=True)
    with pytest.raises(KafkaException):
        admin(made, 1).list_topics(timeout=1)
    made.heal()
    eventually(lambda: admin(made, 1).list_topics(timeout=20).brokers)


def test_a_cluster_without_proxies_says_that_it_cannot_be_cut() -> None:
    made = Cluster(3, proxied=False)
    try:
        with pytest.raises(ValueError, match="proxied=False"):
            made.partition(1)
    finally:
        made.close()
