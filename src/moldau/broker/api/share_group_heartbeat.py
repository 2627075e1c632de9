"""ShareGroupHeartbeat (key 76), v1: members of share groups join, go on and leave (KIP-932).

Deviates: a partition whose set-up was cut short by a crash is set up again with the next heartbeat; Kafka waits for
`group.share.initialize.retry.interval.ms`.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import client_of
from moldau.broker.node import Node
from moldau.broker.share import groups as share_groups
from moldau.machines.effects import Promise
from moldau.machines.share.heartbeats import check_request, heartbeat, refusal
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(76, versions=(1, 1))
async def share_group_heartbeat(
    node: Node, connection: Connection, request: m.ShareGroupHeartbeatRequest, version: int
) -> Answer:
    if not share_groups.enabled(node):
        return refusal(Error.UNSUPPORTED_VERSION, Error.UNSUPPORTED_VERSION.message).response
    try:
        check_request(request)
        index, machine = node.groups.of(request.group_id)
    except Refused as why:
        return refusal(why.error, why.message).response
    promise = Promise(lambda error: refusal(error, error.message))
    effects = heartbeat(machine, promise, request, client_of(connection), node.clock.wall_ms())
    heard = await node.groups.start(index, promise, effects)
    if heard.set_up:
        await share_groups.initialize(node, index, request.group_id, heard.set_up)
    return heard.response
