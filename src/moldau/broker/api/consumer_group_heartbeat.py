"""ConsumerGroupHeartbeat (key 68), v0-1: members of consumer groups join, go on and leave (KIP-848).

v1 subscriptions by regular expression; the member chooses its id (KIP-1082).
Deviates: a new regular expression is matched at once, so that the first answer already has its topics.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import client_of
from moldau.broker.node import Node
from moldau.machines.consumer.heartbeats import check_request, heartbeat
from moldau.machines.consumer.subscriptions import Visible, anything
from moldau.machines.effects import Promise
from moldau.machines.metadata.acls import DESCRIBE, TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(68, versions=(0, 1))
def consumer_group_heartbeat(
    node: Node, connection: Connection, request: m.ConsumerGroupHeartbeatRequest, version: int
) -> Answer:
    if "consumer" not in node.settings["group.coordinator.rebalance.protocols"]:
        return refused(
            Error.UNSUPPORTED_VERSION, "The consumer protocol is not among group.coordinator.rebalance.protocols."
        )
    try:
        check_request(node.settings.__getitem__, request, version)
        index, machine = node.groups.of(request.group_id)
    except Refused as why:
        return refused(why.error, why.message)
    promise = Promise(lambda error: refused(error, error.message))
    now = node.clock.wall_ms()
    effects = heartbeat(machine, promise, request, client_of(connection), now, visible_to(node, connection))
    return node.groups.ask(index, promise, effects)


def visible_to(node: Node, connection: Connection) -> Visible:
    """Return which topics a regular expression may match: those that the client may describe."""
    return anything if node.authorizer is None else lambda topic: node.may(connection, DESCRIBE, TOPIC, topic)


def refused(error: Error, why: str) -> Any:
    return m.ConsumerGroupHeartbeatResponse(error_code=error, error_message=why)
