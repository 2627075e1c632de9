"""Three of Apache Kafka's controllers, of which the active one goes away: Moldau's brokers find the next one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Client
from moldau.machines.metadata.records import TOPIC as METADATA_TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.clients import admin, is_placed, place, produce, read
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually

pytestmark = pytest.mark.needs("java", "kafka-jars")
CONTROLLERS, BROKERS = (1, 2, 3), (4, 5)


@pytest.fixture(scope="module")
def five(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = dict.fromkeys(CONTROLLERS, (KAFKA, "controller")) | dict.fromkeys(BROKERS, (MOLDAU, "broker"))
    with cluster(kafka_libs, tmp_path_factory.mktemp("five"), nodes, request_timeout_ms="5000") as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == set(BROKERS))
        place(made, "t", BROKERS, 2)
        produce(made, "t", range(100))
        yield made


def active(made: Cluster) -> int:
    """Return the active controller, as a Moldau broker is told when it forwards the question."""
    topic = m.DescribeQuorumRequest_TopicData(METADATA_TOPIC, [m.DescribeQuorumRequest_PartitionData(0)])
    with Client({"bootstrap.servers": made.bootstrap}) as client:
        answer = client.send(m.DescribeQuorumRequest([topic]), BROKERS[0])
    return answer.topics[0].partitions[0].leader_id


def epochs(made: Cluster) -> list[str]:
    """Return the lines in which Moldau's brokers say that they were fenced or have another epoch."""
    lines = [line for node in BROKERS for line in made[node].log.read_text().splitlines()]
    return [line for line in lines if "the broker is" in line]


@pytest.mark.parametrize("how", ["killed", "frozen", "stopped"])
def test_the_next_controller_is_found_and_nobody_is_fenced(five: Cluster, how: str) -> None:
    made, gone, before = five, active(five), epochs(five)

    def disturb() -> None:
        if how == "frozen":
            made[gone].send(signal.SIGSTOP)
        elif how == "killed":
            made[gone].stop(signal.SIGKILL)
        else:
            made[gone].leave()

    produce(made, "t", range(2000), disturb)
    place(made, f"after-{how}", BROKERS)
    eventually(lambda: is_placed(made, f"after-{how}", 4, BROKERS))
    produce(made, f"after-{how}", range(100))
    now = active(made)
    assert now in CONTROLLERS and now != gone
    if how == "frozen":
        made[gone].send(signal.SIGCONT)
    else:
        made[gone].start()
        made[gone].await_port()
    place(made, f"again-{how}", BROKERS)
    eventually(lambda: is_placed(made, f"again-{how}", 4, BROKERS))
    assert is_placed(made, "t", 4, BROKERS)
    assert read(made, f"after-{how}", 100, 1) == list(range(100))
    assert epochs(made) == before


def test_without_a_majority_clients_are_told_and_records_go_on(five: Cluster) -> None:
    """The last test here: two of the three controllers stay away."""
    for node in CONTROLLERS[:2]:
        five[node].stop(signal.SIGKILL)
    wanted = m.CreateTopicsRequest([m.CreateTopicsRequest_CreatableTopic("never", 1, 1)], timeout_ms=1000)
    with Client({"bootstrap.servers": five.bootstrap, "request.timeout.ms": 20_000}) as client:
        (row,) = client.send(wanted, BROKERS[0], retry=False).topics
    assert (row.name, row.error_code) == ("never", Error.REQUEST_TIMED_OUT)
    produce(five, "t", range(100))
    assert is_placed(five, "t", 4, BROKERS)
