"""Damage on the disk of one of three real nodes: the replica leaves the ISR, and is fetched again from the leader."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.client import CONTROLLER, Client
from moldau.client import messages as m
from moldau.testing import Cluster, cluster, eventually
from moldau.wire.records import Batch, starts

NODES = (1, 2, 3)
BATCHES = 8
topics = (f"healing-{number}" for number in count())


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with cluster(3, {"replica.lag.time.max.ms": "5000"}) as made:
        yield made


@pytest.fixture
def client(three: Cluster) -> Iterator[Client]:
    with Client({"bootstrap.servers": three.bootstrap_servers}) as made:
        yield made


def create(client: Client, replicas: tuple[int, ...] = NODES, **configs: str) -> str:
    """Make a topic with one partition, on these nodes; the first leads."""
    name = next(topics)
    placement = m.CreateTopicsRequest_CreatableReplicaAssignment(0, list(replicas))
    rows = [m.CreateTopicsRequest_CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    topic = m.CreateTopicsRequest_CreatableTopic(name, -1, -1, [placement], rows)
    response = client.send(m.CreateTopicsRequest([topic], 60_000), CONTROLLER, timeout_s=90)
    assert not response.topics[0].error_code, response
    eventually(lambda: in_sync(client, name) == sorted(replicas))
    return name


def partition(client: Client, topic: str) -> m.MetadataResponse_MetadataResponsePartition:
    """Return who leads the partition; the node that is asked may not know it yet."""
    asked = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name=topic)])
    return eventually(lambda: client.send(asked).topics[0].partitions)[0]


def in_sync(client: Client, topic: str) -> list[int]:
    return sorted(partition(client, topic).isr_nodes)


def write(three: Cluster, topic: str, first: int, batches: int = BATCHES) -> None:
    """Write numbered records, each in a batch of its own."""
    producer = Producer({"bootstrap.servers": three.bootstrap_servers, "linger.ms": 0, "log_level": 0})
    for number in range(first, first + batches):
        producer.produce(topic, b"%05d" % number * 20)
        assert producer.flush(60) == 0


def read(three: Cluster, topic: str, records: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": three.bootstrap_servers, "group.id": "readers", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        seen: list[int] = []
        while len(seen) < records and (found := consumer.consume(records - len(seen), 60)):
            seen += [int((record.value() or b"")[:5]) for record in found if not record.error()]
        return seen
    finally:
        consumer.close()


def file_of(three: Cluster, node: int, topic: str) -> Path:
    return Path(three[node].data_dir) / f"{topic}-0" / f"{0:020}.log"


def content(three: Cluster, node: int, topic: str) -> bytes:
    """Return the batches of a replica."""
    path = file_of(three, node, topic)
    return path.read_bytes() if path.exists() else b""


def damage(three: Cluster, node: int, topic: str, batch: int, at: int) -> bytes:
    """Flip a byte of a batch that lies in the midst of others; returns the file as it is now."""
    path = file_of(three, node, topic)
    data = bytearray(path.read_bytes())
    position = list(starts(memoryview(data)))[batch] + at
    data[position] ^= 0x55
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data[position : position + 1])
    return bytes(data)


def assert_healed(three: Cluster, client: Client, topic: str, node: int, records: int) -> None:
    """The replica is in sync again, its bytes are the leader's, and nothing is lost."""
    eventually(lambda: node in in_sync(client, topic))
    leader = partition(client, topic).leader_id
    eventually(lambda: content(three, node, topic) == content(three, leader, topic))
    data = memoryview(content(three, node, topic))
    assert all(Batch(data, at).is_valid() for at in starts(data))
    assert read(three, topic, records) == list(range(records))


def test_a_follower_that_finds_damage_at_its_start_fetches_its_log_again(three: Cluster, client: Client) -> None:
    topic = create(client, (1, 2, 3))
    write(three, topic, 0)
    eventually(lambda: content(three, 3, topic) == content(three, 1, topic))
    three.kill(3)
    damage(three, 3, topic, 4, 70)
    three.start_again(3)
    assert_healed(three, client, topic, 3, BATCHES)
    assert "a damaged log is fetched again" in three[3].log


def test_a_leader_whose_log_a_client_cannot_read_hands_over_first(three: Cluster, client: Client) -> None:
    topic = create(client, (2, 1, 3))
    write(three, topic, 0)
    damage(three, 2, topic, 4, 8)  # its length
    assert read(three, topic, BATCHES) == list(range(BATCHES))
    assert partition(client, topic).leader_id != 2
    write(three, topic, BATCHES)
    assert_healed(three, client, topic, 2, 2 * BATCHES)


def test_a_leader_whose_bytes_a_follower_refuses_looks_at_them_and_hands_over(three: Cluster, client: Client) -> None:
    topic = create(client, (1, 2, 3))
    three.kill(3)
    eventually(lambda: in_sync(client, topic) == [1, 2])
    write(three, topic, 0)
    damage(three, 1, topic, 4, 70)  # a record: only the checksum shows it
    three.start_again(3)
    eventually(lambda: in_sync(client, topic) == [1, 2, 3])
    assert "is damaged after offset" in three[1].log
    assert_healed(three, client, topic, 1, BATCHES)


def test_a_log_that_is_damaged_twice_is_not_fetched_again_and_again(three: Cluster, client: Client) -> None:
    topic = create(client, (3, 1, 2))
    write(three, topic, 0)
    damage(three, 3, topic, 4, 8)
    assert read(three, topic, BATCHES) == list(range(BATCHES))
    assert_healed(three, client, topic, 3, BATCHES)
    election = m.ElectLeadersRequest(0, [m.ElectLeadersRequest_TopicPartitions(topic, [0])], 60_000)
    client.send(election, CONTROLLER)
    eventually(lambda: partition(client, topic).leader_id == 3)
    damage(three, 3, topic, 4, 8)
    assert read(three, topic, BATCHES) == list(range(BATCHES))
    eventually(lambda: in_sync(client, topic) == [1, 2])
    assert three[3].log.count(f"a damaged log is fetched again partition={topic}-0") == 1


def test_what_nobody_else_has_is_kept_as_it_is(three: Cluster, client: Client) -> None:
    topic, other = create(client, (2,)), create(client)
    write(three, topic, 0)
    three.kill(2)
    damaged = damage(three, 2, topic, 4, 70)
    three.start_again(2)
    eventually(lambda: f"partition {topic}-0 is offline" in three[2].log)
    write(three, other, 0)
    assert read(three, other, BATCHES) == list(range(BATCHES))
    assert content(three, 2, topic) == damaged
    eventually(lambda: partition(client, topic).leader_id == 2)
    assert f"a damaged log is fetched again partition={topic}-0" not in three[2].log


def test_a_process_that_was_killed_need_not_wait_for_its_session_to_end(three: Cluster, client: Client) -> None:
    """The controller has fenced it because it is gone, not because it was silent."""
    topic = create(client)
    three.kill(3)
    eventually(lambda: in_sync(client, topic) == [1, 2])
    assert "DUPLICATE_BROKER_REGISTRATION" not in start_again(three, 3)


def test_a_node_that_was_stopped_in_order_is_taken_back_at_once(three: Cluster) -> None:
    for node in NODES:
        three[node].stop()
        assert "DUPLICATE_BROKER_REGISTRATION" not in start_again(three, node)


def start_again(three: Cluster, node: int) -> str:
    """Start a node, and return what it says."""
    before = three[node].log
    three.start_again(node)
    return three[node].log.removeprefix(before)
