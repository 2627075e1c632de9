"""The APIs of the share coordinator (83 to 87), on a node that restarts, and its topic, which is pruned."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest

from moldau.broker.share.state import TOPIC
from moldau.machines.effects import Effects
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.conftest import World

PRUNE_MS = 300_000
Batch = tuple[int, int, int, int]


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    world = make_world(
        share_coordinator_state_topic_num_partitions="1",
        share_coordinator_snapshot_update_records_per_snapshot="2",
    )
    world.create("t", partitions=2)
    return world


def id_of(world: World) -> bytes:
    return world.node.cluster.topics["t"].id


def ask(world: World, verb: str, topic_row: str, *, group: str = "g", version: int | None = None, **fields: Any) -> Any:
    """Ask about partition 0 of the topic, unless another is named; returns its row."""
    name = f"{verb}Request"
    part = getattr(m, f"{name}_PartitionData")(**({"partition": 0} | fields))
    topic = getattr(m, f"{name}_{topic_row}")(id_of(world), [part])
    (result,) = world.call(getattr(m, name)(group, [topic]), version).results
    assert result.topic_id == id_of(world)
    (row,) = result.partitions
    return row


def initialize(world: World, state_epoch: int = 0, start_offset: int = 0, **more: Any) -> Any:
    fields = {"state_epoch": state_epoch, "start_offset": start_offset} | more
    return ask(world, "InitializeShareGroupState", "InitializeStateData", **fields)


def read(world: World, leader_epoch: int = 0, **more: Any) -> Any:
    return ask(world, "ReadShareGroupState", "ReadStateData", leader_epoch=leader_epoch, **more)


def write(world: World, *batches: Batch, start_offset: int = 0, **more: Any) -> Any:
    rows = [m.WriteShareGroupStateRequest_StateBatch(*batch) for batch in batches]
    more = {"state_batches": rows, "start_offset": start_offset} | more
    return ask(world, "WriteShareGroupState", "WriteStateData", **more)


def summary(world: World, leader_epoch: int = 0, **more: Any) -> Any:
    return ask(world, "ReadShareGroupStateSummary", "ReadStateSummaryData", leader_epoch=leader_epoch, **more)


def delete(world: World, **more: Any) -> Any:
    return ask(world, "DeleteShareGroupState", "DeleteStateData", **more)


def batches(row: Any) -> list[Batch]:
    return [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in row.state_batches]


@pytest.mark.parametrize("clean", [True, False])
def test_state_outlives_the_node(world: World, clean: bool) -> None:
    assert initialize(world, 1, 10).error_code == Error.NONE
    for offset in range(10, 16):
        assert write(world, (offset, offset, 2, 1), state_epoch=1, start_offset=10).error_code == Error.NONE
    before = read(world, 3)
    assert (before.state_epoch, before.start_offset, batches(before)) == (1, 10, [(10, 15, 2, 1)])
    world.restart(clean)
    assert read(world, 3) == before
    assert read(world, 2).error_code == Error.FENCED_LEADER_EPOCH


def test_summary_tells_epochs_start_and_count(world: World) -> None:
    unknown = summary(world)
    assert (unknown.error_code, unknown.start_offset, unknown.delivery_complete_count) == (Error.NONE, -1, -1)
    initialize(world, 4, 7)
    read(world, 2)
    write(world, state_epoch=4, leader_epoch=2, start_offset=9, delivery_complete_count=5)
    told = summary(world, -1)
    assert (told.state_epoch, told.leader_epoch, told.start_offset, told.delivery_complete_count) == (4, 2, 9, 5)
    assert summary(world, -1, version=0).start_offset == 9


def test_deleted_state_is_unknown(world: World) -> None:
    initialize(world)
    assert delete(world).error_code == Error.NONE
    assert delete(world).error_code == Error.NONE
    assert read(world).error_code == Error.INVALID_REQUEST
    assert read(world).error_message


def test_errors_are_told_partition_by_partition(world: World) -> None:
    row = m.InitializeShareGroupStateRequest_PartitionData
    topics = [
        m.InitializeShareGroupStateRequest_InitializeStateData(id_of(world), [row(0), row(1), row(2), row(-1)]),
        m.InitializeShareGroupStateRequest_InitializeStateData(b"?" * 16, [row(0)]),
    ]
    results = world.call(m.InitializeShareGroupStateRequest("g", topics)).results
    told = [[(part.partition, part.error_code) for part in topic.partitions] for topic in results]
    nowhere, nonsense = Error.UNKNOWN_TOPIC_OR_PARTITION, Error.INVALID_REQUEST
    assert told == [[(0, 0), (1, 0), (2, nowhere), (-1, nonsense)], [(0, nowhere)]]


@pytest.mark.parametrize("group", ["", "g"])
def test_request_that_says_nothing_gets_no_results(world: World, group: str) -> None:
    empty = m.ReadShareGroupStateRequest_ReadStateData(id_of(world), [])
    full = m.ReadShareGroupStateRequest_ReadStateData(id_of(world), [m.ReadShareGroupStateRequest_PartitionData(0)])
    assert list(world.call(m.ReadShareGroupStateRequest(group, [])).results) == []
    assert list(world.call(m.ReadShareGroupStateRequest(group, [full, empty])).results) == []
    if not group:
        assert list(world.call(m.ReadShareGroupStateRequest(group, [full])).results) == []


def test_share_coordinator_is_found_by_the_share_partition(world: World) -> None:
    key = f"g:{urlsafe_b64encode(id_of(world)).rstrip(b'=').decode()}:0"
    (found,) = world.call(m.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])).coordinators
    assert (found.error_code, found.node_id, found.key) == (Error.NONE, 1, key)


def test_topic_is_made_as_kafka_makes_it(world: World) -> None:
    initialize(world)
    resource = m.DescribeConfigsRequest_DescribeConfigsResource(2, TOPIC, ["cleanup.policy", "retention.ms"])
    (told,) = world.call(m.DescribeConfigsRequest([resource])).results
    assert {row.name: row.value for row in told.configs} == {"cleanup.policy": "delete", "retention.ms": "-1"}


def test_deleted_topic_takes_its_state_along(world: World) -> None:
    initialize(world)
    name = m.DeleteTopicsRequest_DeleteTopicState("t")
    world.call(m.DeleteTopicsRequest([name]))
    (machine,) = world.node.shares.machines.values()
    assert machine.states == {}


def test_head_of_the_topic_is_pruned(world: World) -> None:
    initialize(world)
    for offset in range(10):
        write(world, (offset, offset, 2, 1))
    log = world.node.shares.home(0).log
    assert log.start_offset == 0
    before = read(world)
    world.advance(PRUNE_MS + 1)
    assert log.start_offset > 5
    world.restart()
    assert read(world) == before


def test_share_partition_that_nobody_uses_does_not_hold_up_the_pruning(world: World) -> None:
    initialize(world, partition=1)
    initialize(world)
    for _ in range(3):
        world.advance(PRUNE_MS + 1)
        for offset in range(5):
            write(world, (offset, offset, 2, 1))
    assert world.node.shares.home(0).log.start_offset > 2
    world.restart(clean=False)
    assert read(world, partition=1).error_code == Error.NONE


def test_log_that_begins_within_a_batch_is_counted_from_the_batch_on(world: World) -> None:
    for group in "abc":
        initialize(world, group=group)
    world.node.shares.run(0, Effects(world.node.shares.machine(0).of_deleted_topic(id_of(world))))
    initialize(world)
    log = world.node.shares.home(0).log
    log.delete_records(4)
    world.restart()
    assert world.node.shares.machine(0).next_offset == log.end_offset
    assert world.node.shares.machine(0).needed_from() == 6
