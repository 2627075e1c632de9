"""FindCoordinator (key 10), v0-6: which broker looks after a group, a transactional id or a share partition.

v1 transactional ids.  v4 many keys at once (KIP-699).  v6 share groups (KIP-932).
Deviates: the internal topic is there when the answer comes; Kafka answers COORDINATOR_NOT_AVAILABLE the first time.
"""

from __future__ import annotations

import re
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.coordinators import Coordinators
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

BATCHED = 4
SHARES_FROM = 6
SHARE = 2
SHARE_KEY = re.compile(r".+:[A-Za-z0-9_-]{22}:[0-9]+", re.DOTALL)  # group, topic id, partition

COORDINATORS = {0: "groups", 1: "transactions", SHARE: "shares"}


@api(10, versions=(0, 6))
async def find_coordinator(
    node: Node, connection: Connection, request: m.FindCoordinatorRequest, version: int
) -> Answer:
    keys = request.coordinator_keys if version >= BATCHED else [request.key]
    rows = [await find(node, connection, key, request.key_type, version) for key in keys]
    if version >= BATCHED:
        return m.FindCoordinatorResponse(coordinators=rows)
    (row,) = rows
    error = Error(row.error_code)
    return m.FindCoordinatorResponse(
        error_code=error,
        error_message=error.message if error else error.name,
        node_id=row.node_id,
        host=row.host,
        port=row.port,
    )


async def find(node: Node, connection: Connection, key: str, key_type: int, version: int) -> Any:
    try:
        check(key, key_type, version)
        coordinators = getattr(node, COORDINATORS[key_type])
        await coordinators.create_topic()
        leader, host, port = locate(node, connection, coordinators, coordinators.partition_for(key))
    except Refused as refused:
        return m.FindCoordinatorResponse_Coordinator(key, -1, "", -1, refused.error, refused.message)
    return m.FindCoordinatorResponse_Coordinator(key, leader, host, port, Error.NONE, "")


def locate(node: Node, connection: Connection, coordinators: Coordinators[Any], index: int) -> tuple[int, str, int]:
    """Return id, host and port of the broker that leads a coordinator's partition; raises Refused."""
    leader = node.leader_of(coordinators.topic, index)
    if leader == node.id:
        coordinators.readable(index)
    for broker, host, port, _ in node.brokers(connection.listener):
        if broker == leader:
            return broker, host, port
    raise Refused(Error.COORDINATOR_NOT_AVAILABLE, f"{coordinators.topic}-{index} has no leader now.")


def check(key: str, key_type: int, version: int) -> None:
    if key_type not in COORDINATORS:
        raise Refused(Error.INVALID_REQUEST, f"There is no key type {key_type}.")
    if key_type == SHARE and (version < SHARES_FROM or not SHARE_KEY.fullmatch(key)):
        raise Refused(Error.INVALID_REQUEST, "The key of a share partition is group:topic id:partition, from v6 on.")
