"""ListOffsets of a leader that was elected a moment ago."""

from __future__ import annotations

from collections.abc import Callable

from moldau.cluster.leading import Leading
from moldau.wire import messages as m
from moldau.wire.errors import Error

from ..conftest import World

LATEST, EARLIEST = -1, -2


def look_up(world: World, timestamp: int, version: int) -> tuple[int, int]:
    part = m.ListOffsetsRequest_ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = m.ListOffsetsRequest(-1, 0, [m.ListOffsetsRequest_ListOffsetsTopic("t", [part])])
    row = world.call(request, version).topics[0].partitions[0]
    return row.error_code, row.offset


def test_a_new_leader_does_not_tell_an_end_before_it_knows_it(make_world: Callable[..., World]) -> None:
    """Clients of the last leader may have been told more than this one knows to be committed (KIP-207)."""
    world = make_world()
    world.create("t")
    partition = world.node.replicas.by_name["t"][0]
    assert look_up(world, LATEST, 8) == (Error.NONE, 0)
    partition.led = Leading(1, 1, epoch_start=7)
    assert look_up(world, LATEST, 5) == (Error.OFFSET_NOT_AVAILABLE, -1)
    assert look_up(world, LATEST, 4) == (Error.LEADER_NOT_AVAILABLE, -1)
    assert look_up(world, 1000, 8) == (Error.OFFSET_NOT_AVAILABLE, -1)
    assert look_up(world, EARLIEST, 8) == (Error.NONE, 0)
