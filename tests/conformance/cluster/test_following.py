"""Followers that were away while their leader's log moved on, was shortened, or went another way: each side in turn.

Afterwards both replicas hold the same batches, byte for byte.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, TopicPartition

from tests.cluster.clients import admin, batches_of, bounds, delete_records, is_placed, place, produce, read
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually

pytestmark = pytest.mark.needs("java", "kafka-jars")
SIDES = {"moldau": (2, 3), "kafka": (3, 2)}  # who leads -> its broker, and the other one
FENCED_S = 60.0


@pytest.fixture(scope="module")
def trio(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = {1: (KAFKA, "controller"), 2: (MOLDAU, "broker"), 3: (KAFKA, "broker")}
    with cluster(kafka_libs, tmp_path_factory.mktemp("trio"), nodes) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == {2, 3})
        yield made


def come_back(made: Cluster, node: int) -> None:
    made[node].start()
    made[node].await_port()


def lead(made: Cluster, topic: str, node: int, kind: ElectionType = ElectionType.PREFERRED) -> None:
    """Let the preferred replica lead again."""
    client = admin(made)
    client.elect_leaders(kind, [TopicPartition(topic, 0)]).result(30)
    eventually(lambda: is_placed(made, topic, node, [2, 3]))


def same(made: Cluster, topic: str, start: int = 0) -> bool:
    ours, theirs = batches_of(made, 2, topic, start), batches_of(made, 3, topic, start)
    assert ours[0].keys() == theirs[0].keys()
    assert ours == theirs
    return bool(ours[0])


@pytest.mark.parametrize("leads", SIDES)
def test_a_follower_whose_end_is_before_the_leaders_start_begins_anew(trio: Cluster, leads: str) -> None:
    leader, follower = SIDES[leads]
    topic = f"shorter-{leads}"
    place(trio, topic, [leader, follower])
    produce(trio, topic, range(1000))
    eventually(lambda: is_placed(trio, topic, leader, [2, 3]))
    trio[follower].leave()
    eventually(lambda: is_placed(trio, topic, leader, [leader]))
    produce(trio, topic, range(1000, 2000))
    delete_records(trio, topic, 1777)  # within a batch
    come_back(trio, follower)
    eventually(lambda: is_placed(trio, topic, leader, [2, 3]))
    produce(trio, topic, range(2000, 2100))
    eventually(lambda: same(trio, topic, 1777))
    trio[leader].leave()
    eventually(lambda: is_placed(trio, topic, follower, [follower]))
    assert bounds(trio, topic) == (1777, 2100)
    assert read(trio, topic, 323, 1) == list(range(1777, 2100))
    come_back(trio, leader)
    eventually(lambda: is_placed(trio, topic, follower, [2, 3]))


@pytest.mark.parametrize("leads", SIDES)
def test_a_followers_log_begins_where_the_leaders_does(trio: Cluster, leads: str) -> None:
    leader, follower = SIDES[leads]
    topic = f"moving-{leads}"
    place(trio, topic, [leader, follower])
    produce(trio, topic, range(1000))
    eventually(lambda: is_placed(trio, topic, leader, [2, 3]))
    delete_records(trio, topic, 500)
    delete_records(trio, topic, 600)
    produce(trio, topic, range(1000, 1100))
    trio[leader].leave()
    eventually(lambda: is_placed(trio, topic, follower, [follower]))
    assert bounds(trio, topic) == (600, 1100)
    come_back(trio, leader)
    eventually(lambda: is_placed(trio, topic, follower, [2, 3]))
    lead(trio, topic, leader)
    assert bounds(trio, topic) == (600, 1100)
    eventually(lambda: same(trio, topic, 600))


@pytest.mark.parametrize("leads", SIDES)
def test_a_killed_leader_drops_what_its_successor_never_had(trio: Cluster, leads: str) -> None:
    leader, follower = SIDES[leads]
    topic = f"parting-{leads}"
    place(trio, topic, [leader, follower])
    produce(trio, topic, range(1000))
    eventually(lambda: is_placed(trio, topic, leader, [2, 3]))
    trio[follower].send(signal.SIGSTOP)
    for number in range(1000, 1010):  # the first comes along with the fetch that waits; the others are the leader's
        produce(trio, topic, [number], acks=1, enable_idempotence=False, bootstrap_servers=trio[leader].address)
    trio[leader].stop(signal.SIGKILL)
    trio[follower].send(signal.SIGCONT)
    eventually(lambda: is_placed(trio, topic, follower, [follower]), FENCED_S)
    produce(trio, topic, range(2000, 2500))
    come_back(trio, leader)
    eventually(lambda: is_placed(trio, topic, None, [2, 3]), FENCED_S)
    produce(trio, topic, range(2500, 2600))
    eventually(lambda: same(trio, topic))
    seen = read(trio, topic, bounds(trio, topic)[1], 1)
    assert [number for number in seen if number < 1000 or number >= 2000] == [*range(1000), *range(2000, 2600)]
    assert len(seen) - 1600 < 10, "some of the unacknowledged records must be gone, or nothing was tried"
    lead(trio, topic, leader)
    assert read(trio, topic, len(seen), 1) == seen


@pytest.mark.parametrize("leads", SIDES)
def test_an_unclean_leaders_history_becomes_everybodys(trio: Cluster, leads: str) -> None:
    leader, follower = SIDES[leads]
    topic = f"unclean-{leads}"
    place(trio, topic, [leader, follower], unclean_leader_election_enable="true")
    produce(trio, topic, range(1000))
    eventually(lambda: is_placed(trio, topic, leader, [2, 3]))
    trio[follower].leave()
    eventually(lambda: is_placed(trio, topic, leader, [leader]))
    produce(trio, topic, range(1000, 2000))
    trio[leader].stop(signal.SIGKILL)
    time.sleep(5)  # it is fenced, or the other one would not be asked
    come_back(trio, follower)
    eventually(lambda: is_placed(trio, topic, follower, [follower]), FENCED_S)
    produce(trio, topic, range(2000, 2100))
    come_back(trio, leader)
    eventually(lambda: is_placed(trio, topic, None, [2, 3]), FENCED_S)
    produce(trio, topic, range(2100, 2200))
    eventually(lambda: same(trio, topic))
    expected = [*range(1000), *range(2000, 2200)]
    assert read(trio, topic, len(expected), 1) == expected
    lead(trio, topic, leader)
    assert read(trio, topic, len(expected), 1) == expected
