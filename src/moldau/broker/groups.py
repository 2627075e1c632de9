"""The group coordinators of this node: machines/groups.py on the partitions of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.broker.coordinators import Coordinators
from moldau.machines.groups import Groups

if TYPE_CHECKING:
    from moldau.broker.node import Node

TOPIC = "__consumer_offsets"


def group_coordinators(node: Node) -> Coordinators[Groups]:
    def setting(name: str) -> object:
        return node.settings[name]

    def configs() -> Mapping[str, str]:
        """The codec is the writer's, so that a change of `offsets.topic.compression.codec` holds for what follows."""
        segment = str(node.settings["offsets.topic.segment.bytes"])
        return {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": segment}

    def make(index: int) -> Groups:
        return Groups(setting, node.random, lambda: node.cluster)

    return Coordinators(node, TOPIC, "offsets.topic.num.partitions", "offsets.topic.replication.factor", configs, make)
