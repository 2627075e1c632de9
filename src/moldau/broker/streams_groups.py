"""Streams groups on this node: whether they are on, and the internal topics of their applications (KIP-1071).

The machine (machines/streams/heartbeats.py) says which topics are missing; they are created here, with the right of the
member that has asked. Its next heartbeat finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.connection import Connection
from moldau.broker.topics import create_all
from moldau.machines.metadata.acls import CREATE, TOPIC
from moldau.machines.metadata.topics import NewTopic
from moldau.machines.streams.configuring import NAMED_TOPICS, InternalTopic, Status

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

FEATURE = "streams.version"


def is_enabled(node: Node) -> bool:
    protocols = node.settings["group.coordinator.rebalance.protocols"]
    return "streams" in protocols and node.cluster.features.get(FEATURE, 0) > 0


async def create_missing(node: Node, connection: Connection, topics: Sequence[InternalTopic], answer: Any) -> None:
    """Create the topics, and add to the status that tells of them what stands in the way."""
    if not topics:
        return
    names = [topic.name for topic in topics]
    if not node.may(connection, CREATE) and not all(node.may(connection, CREATE, TOPIC, name) for name in names):
        tell(answer, f"Unauthorized to CREATE on topics {', '.join(names)}.")
        return
    new = [NewTopic(one.name, one.partitions, one.replication or -1, configs=dict(one.configs)) for one in topics]
    refused = await create_all(node, new)
    for name, (_, why) in refused.items():
        log.warning("an internal topic cannot be created", topic=name, reason=why)
    failures = [f"{name} ({why})" for name, (_, why) in refused.items()]
    if failures:
        more = len(failures) - NAMED_TOPICS
        named = ", ".join(failures[:NAMED_TOPICS]) + (f" and {more} more" if more > 0 else "")
        tell(answer, f"Creation failed: {named}.")


def tell(answer: Any, what: str) -> None:
    for status in answer.status:
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail = f"{status.status_detail}; {what}"
