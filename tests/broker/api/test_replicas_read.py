"""What clients see of a partition with several replicas: from a follower, a new leader, a replica nearby."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.broker.api.fetch import RACK_AWARE
from moldau.broker.partition import Partition
from moldau.cluster.throttling import GRACE_MS
from moldau.machines.metadata.cluster import Partition as Placement
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.conftest import World
from tests.log.logs import NOW, batch

EPOCH = 3


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"broker.rack": "here", "replica.selector.class": RACK_AWARE})


def replicated(world: World, leader: int, high_watermark: int) -> tuple[Partition, bytes]:
    """A partition of brokers 1 (this one) and 2 with ten records."""
    topic_id = world.create("t")
    partition = world.node.replicas.by_name["t"][0]
    for _ in range(5):
        partition.append(batch(b"x", b"y"), NOW)
    partition.log.high_watermark = high_watermark
    placement = Placement(0, (1, 2), (1, 2), leader, leader_epoch=EPOCH, partition_epoch=9)
    if leader == 1:
        partition.lead(placement, 0.0)
    else:
        partition.follow(placement)
    return partition, topic_id


def fetch(world: World, topic_id: bytes, offset: int, version: int = 17, epoch: int = EPOCH, rack: str = "") -> Any:
    part = m.FetchRequest_FetchPartition(0, epoch, offset, -1, -1, 1 << 20)
    topic = m.FetchRequest_FetchTopic("t", topic_id, [part])
    request = m.FetchRequest(max_bytes=1 << 20, session_epoch=-1, topics=[topic], rack_id=rack)
    return world.call(request, version).responses[0].partitions[0]


def test_a_follower_serves_consumers_up_to_its_high_watermark(world: World) -> None:
    _, topic_id = replicated(world, leader=2, high_watermark=6)
    row = fetch(world, topic_id, 4)
    assert (row.error_code, row.high_watermark) == (0, 6)
    assert len(row.records) == len(batch(b"x", b"y"))
    for offset in (6, 8):
        row = fetch(world, topic_id, offset)
        assert (row.error_code, len(row.records)) == (0, 0), "it is there and not known to be committed"
    assert fetch(world, topic_id, 11).error_code == Error.OFFSET_OUT_OF_RANGE


def test_a_follower_compares_epochs_and_sends_old_clients_to_the_leader(world: World) -> None:
    _, topic_id = replicated(world, leader=2, high_watermark=6)
    assert fetch(world, topic_id, 0, epoch=EPOCH - 1).error_code == Error.FENCED_LEADER_EPOCH
    assert fetch(world, topic_id, 0, epoch=EPOCH + 1).error_code == Error.UNKNOWN_LEADER_EPOCH
    assert fetch(world, topic_id, 0, epoch=-1).error_code == 0
    assert fetch(world, topic_id, 0, version=11).error_code == 0
    assert fetch(world, topic_id, 0, version=10).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_leader_sends_a_consumer_to_the_follower_in_its_rack(world: World) -> None:
    partition, topic_id = replicated(world, leader=1, high_watermark=6)
    world.change(
        m.RegisterBrokerRecord(
            broker_id=2,
            broker_epoch=50,
            end_points=[m.RegisterBrokerRecord_BrokerEndpoint("PLAINTEXT", "127.0.0.1", 9093, 0)],
            rack="there",
            fenced=False,
        )
    )
    assert partition.led is not None
    partition.led.fetched(2, 50, 8, 10, 0.0, start_offset=2)
    row = fetch(world, topic_id, 4, rack="there")
    assert (row.error_code, row.preferred_read_replica, len(row.records), row.high_watermark) == (0, 2, 0, 6)
    for rack, offset in (("here", 4), ("nowhere", 4), ("", 4), ("there", 0)):
        row = fetch(world, topic_id, offset, rack=rack)
        assert (row.error_code, row.preferred_read_replica) == (0, -1)
        assert len(row.records) > 0


def latest(world: World, version: int, timestamp: int = -1) -> Any:
    part = m.ListOffsetsRequest_ListOffsetsPartition(0, EPOCH if version >= 4 else -1, timestamp)
    request = m.ListOffsetsRequest(-1, topics=[m.ListOffsetsRequest_ListOffsetsTopic("t", [part])])
    return world.call(request, version).topics[0].partitions[0]


def test_a_new_leader_does_not_say_where_a_log_ends_before_it_knows_what_is_committed(world: World) -> None:
    """Its predecessor may have told of more than it has heard of itself (KIP-207)."""
    partition, _ = replicated(world, leader=1, high_watermark=6)
    assert latest(world, 9).error_code == Error.OFFSET_NOT_AVAILABLE
    assert latest(world, 4).error_code == Error.LEADER_NOT_AVAILABLE
    assert latest(world, 9, timestamp=-2).offset == 0
    partition.log.advance_high_watermark(10)
    assert (latest(world, 9).error_code, latest(world, 9).offset) == (0, 10)


def test_a_follower_that_is_not_in_sync_gets_no_more_than_the_leaders_rate(tmp_path: Path) -> None:
    world = World(tmp_path, {"leader.replication.throttled.rate": "1000"})
    topic_id = world.create("t", leader_replication_throttled_replicas="0:1")
    partition = world.node.replicas.by_name["t"][0]
    for _ in range(100):
        partition.append(batch(b"x" * 100), NOW)
    partition.lead(Placement(0, (1, 2, 3), (1, 3), 1, leader_epoch=EPOCH, partition_epoch=9), 0.0)

    def sent(replica: int, offset: int) -> int:
        part = m.FetchRequest_FetchPartition(0, EPOCH, offset, -1, 0, 200)
        state, topic = m.FetchRequest_ReplicaState(replica, -1), m.FetchRequest_FetchTopic("t", topic_id, [part])
        request = m.FetchRequest(replica_state=state, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
        row = world.call(request, 17).responses[0].partitions[0]
        assert row.error_code == 0
        return len(row.records)

    size, total = len(batch(b"x" * 100)), 0
    for _ in range(100):
        total += sent(2, total // size)
        world.clock.now_ms += 50
    assert 4000 <= total <= 5000 + size + GRACE_MS, "in five seconds; a small debt holds back nobody"
    while sent(2, total // size):
        total += size
    assert sent(3, 50) >= size, "who is in sync is never held"
