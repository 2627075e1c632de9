"""The active controller, in a simulated cluster without faults."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from moldau.broker.quorum import Quorum
from tests.cluster.simulation.process import Process
from tests.cluster.simulation.world import World


@pytest.fixture(autouse=True)
def no_logs() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def active(world: World) -> Process:
    """Let a cluster start, and return the process of its active controller."""
    world.run_for(2500)
    return next(host.process for host in world.hosts.values() if host.process and host.process.node.controller)


def test_a_controller_that_is_replaced_forgets_what_it_planned() -> None:
    """It would decide on an image without all that other controllers have done, when it is active again."""
    process = active(World(1))
    node, quorum = process.node, process.node.quorum
    assert isinstance(quorum, Quorum)
    planned = node.metadata.planned

    def replace() -> None:
        quorum.raft.meet(quorum.epoch + 1, -1, None, node.clock.monotonic_ms())
        quorum.settle()

    process.run(replace)
    assert node.controller is None
    assert node.metadata.planned is not planned
