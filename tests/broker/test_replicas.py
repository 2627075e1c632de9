"""The partitions of a node: which folder is whose, and their settings."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.machines.metadata.cluster import BROKER, TOPIC
from moldau.wire import messages as m
from tests.broker.conftest import World


@pytest.mark.parametrize(("is_member", "is_used"), [(False, True), (True, False)])
def test_a_folder_that_has_lost_its_id_is_not_trusted_in_a_cluster(
    make_world: Callable[..., World], is_member: bool, is_used: bool
) -> None:
    """Its topic may have been deleted and made anew while the node was away: then these are not its records."""
    world = make_world()
    world.create("t")
    node, topic = world.node, world.node.cluster.topics["t"]
    (partition,) = node.replicas.by_id.pop(topic.id).values()
    folder = world.path / "t-0"
    (folder / "partition.metadata").write_bytes(b"")
    (home,) = node.replicas.directories
    home.logs.pop(("t", 0)).shut("")
    home.found.add(("t", 0))
    (folder / "mark").touch()
    cast("Any", node).membership = SimpleNamespace() if is_member else None
    opened = node.replicas.open_log(topic, 0, partition.log.config)
    cast("Any", node).membership = None
    assert (folder / "mark").exists() == is_used
    assert opened.topic_id == (None if is_used else topic.id)


def test_settings_of_a_topic_are_made_once_and_again_when_they_change(world: World) -> None:
    world.create("t", 3)
    logs = [partition.log for partition in world.node.replicas.by_name["t"].values()]
    assert len({id(log.config) for log in logs}) == 1
    world.change(m.ConfigRecord(TOPIC, "t", "retention.ms", "77"))
    assert {log.config.retention_ms for log in logs} == {77}
    world.change(m.ConfigRecord(BROKER, "", "log.segment.bytes", "2000000"))
    assert {(log.config.retention_ms, log.config.segment_bytes) for log in logs} == {(77, 2_000_000)}
    assert len({id(log.config) for log in logs}) == 1
