"""Machines whose disks are full, or fail, in simulated clusters without other faults."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.wire import messages as m
from tests.cluster.simulation.plan import DATA
from tests.cluster.simulation.properties import Broken
from tests.cluster.simulation.world import World

pytestmark = pytest.mark.usefixtures("no_logs")
TOPIC, PARTITIONS = "moved", 100
QUIET_SEED = 3  # of a world whose machines do not fail by themselves
MIXED_SEED = 16  # of one in which some nodes are only brokers


def ask(world: World, through: int, request: Any, version: int) -> Any:
    answers: list[Any] = []
    world.admin.callers[through].call(request, version, answers.append, lambda: answers.append(None), 6000)
    world.run_for(3000)
    return answers[0]


def partitions(world: World) -> list[Any]:
    newest = world.newest_image()
    assert newest is not None
    return list(newest.node.cluster.topics[TOPIC].partitions.values())


def test_moves_to_a_full_disk_harm_nobody_and_end_when_there_is_room() -> None:
    """It cannot keep the metadata either, and tries again; leaders stay where they are until there is room."""
    world = World(QUIET_SEED)
    assert not world.plan.spite
    world.run_for(3000)
    full = next(place for place, host in world.hosts.items() if host.process and not host.process.node.controller)
    old = [place for place in world.hosts if place != full][:2]
    rows = [m.CreateTopicsRequest_CreatableReplicaAssignment(index, old) for index in range(PARTITIONS)]
    made = ask(world, old[0], m.CreateTopicsRequest([m.CreateTopicsRequest_CreatableTopic(TOPIC, -1, -1, rows)]), 7)
    assert made.topics[0].error_code == 0
    host = world.hosts[full]
    host.machine.full = True
    move = m.AlterPartitionReassignmentsRequest_ReassignablePartition
    moves = [move(index, [full, old[0]]) for index in range(PARTITIONS)]
    row = m.AlterPartitionReassignmentsRequest_ReassignableTopic(TOPIC, moves)
    assert ask(world, old[0], m.AlterPartitionReassignmentsRequest(topics=[row]), 0).error_code == 0
    world.run_for(5000)
    assert all(part.leader in old and set(part.isr) == set(old) for part in partitions(world))
    host.is_restarting = True  # nobody starts it again before there is room
    host.kill()
    host.start()
    assert host.process is None and world.counts["ended for want of room"] == 1
    host.machine.full = False
    host.start()
    world.run_for(20_000)
    assert all(sorted(part.isr) == sorted([full, old[0]]) and not part.adding for part in partitions(world))


@pytest.mark.parametrize("kind", ["controller", "broker"])
def test_a_node_that_cannot_write_the_metadata_any_more_ends_at_once(kind: str) -> None:
    """A disk that is full has room later, and the node goes on; one that fails would leave it behind for ever."""
    world = World(MIXED_SEED)
    world.run_for(3000)
    hosts = [host for host in world.hosts.values() if host.process and not host.process.node.controller]
    host = next(host for host in hosts if host.controls == (kind == "controller"))
    host.machine.broken.add(f"{DATA}/__cluster_metadata-0")
    topic = m.CreateTopicsRequest_CreatableTopic(TOPIC, 1, 3)
    other = next(one.place for one in hosts if one is not host)
    with pytest.raises(Broken, match=f"{host} gives up: This {kind} cannot go on"):
        ask(world, other, m.CreateTopicsRequest([topic]), 7)
