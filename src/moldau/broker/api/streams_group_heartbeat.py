"""StreamsGroupHeartbeat (key 88), v0: members of streams groups join, go on and leave (KIP-1071).

Internal topics that the topology lacks are created, and the answer says that they were missing.
Deviates: a member that sends everything is told its tasks, because its last answer may be lost: in Kafka it waits until
it is taken out. A member that joins again is not refused because the group is full. A topology that makes no sense is
refused as such and not as an unknown error, and the partitions of an endpoint are only those that exist.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import client_of
from moldau.broker.node import Node
from moldau.broker.streams_groups import create_missing, is_enabled
from moldau.machines.effects import Promise
from moldau.machines.metadata.topics import INTERNAL_TOPICS, is_legal
from moldau.machines.streams.heartbeats import Heard, check_request, heartbeat, refusal
from moldau.machines.streams.topology import all_topics
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(88, versions=(0, 0))
async def streams_group_heartbeat(
    node: Node, connection: Connection, request: m.StreamsGroupHeartbeatRequest, version: int
) -> Answer:
    if not is_enabled(node):
        return refusal(Error.UNSUPPORTED_VERSION, Error.UNSUPPORTED_VERSION.message).response
    if (problem := wrong_names(request.topology)) is not None:
        return refusal(Error.STREAMS_INVALID_TOPOLOGY, problem).response
    try:
        check_request(request)
        index, machine = node.groups.of(request.group_id)
    except Refused as why:
        return refusal(why.error, why.message).response
    promise = Promise(refused)
    effects = heartbeat(machine, promise, request, client_of(connection), version, node.clock.wall_ms())
    heard = await node.groups.start(index, promise, effects)
    await create_missing(node, connection, heard.missing, heard.response)
    return heard.response


def wrong_names(topology: Any) -> str | None:
    """Return what is wrong with the names of topics: internal to Kafka, or not legal."""
    names = all_topics(topology) if topology is not None else []
    if internal := [name for name in names if name in INTERNAL_TOPICS]:
        return f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
    if invalid := [name for name in names if not is_legal(name)]:
        return f"Topic names {','.join(invalid)} are not valid topic names."
    return None


def refused(error: Error) -> Heard:
    return refusal(error, error.message)
