"""The ends of partitions, wherever they are led: what a coordinator has to know that leads none of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from moldau.broker.outbox import Lost
from moldau.log.lookup import LATEST
from moldau.machines.metadata.cluster import NO_LEADER
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

Name = tuple[str, int]  # topic and index


async def latest_offsets(node: Node, wanted: Iterable[Name]) -> dict[Name, int | Error]:
    """Return up to where readers see each partition; an error for one whose leader does not say it."""
    found: dict[Name, int | Error] = {}
    elsewhere: dict[int, dict[str, list[int]]] = {}
    for topic, index in wanted:
        leader = node.leader_of(topic, index)
        if leader is None or leader == NO_LEADER:
            error = Error.UNKNOWN_TOPIC_OR_PARTITION if leader is None else Error.LEADER_NOT_AVAILABLE
            found[topic, index] = error
        elif leader == node.id:
            found[topic, index] = own_end(node, topic, index)
        else:
            found[topic, index] = Error.LEADER_NOT_AVAILABLE  # until it has answered
            elsewhere.setdefault(leader, {}).setdefault(topic, []).append(index)
    peers = ((node.replication.address_of(leader), topics) for leader, topics in elsewhere.items())
    for answer in [node.call(peer, request(topics)) for peer, topics in peers if peer is not None]:
        response = await answer
        for topic in () if isinstance(response, Lost) else response.topics:
            for part in topic.partitions:
                found[topic.name, part.partition_index] = Error(part.error_code) or part.offset
    return found


def own_end(node: Node, topic: str, index: int) -> int | Error:
    try:
        return node.replicas.leader(topic, index).log.high_watermark
    except Refused as refused:
        return refused.error


def request(topics: dict[str, list[int]]) -> Any:
    row, part = m.ListOffsetsRequest_ListOffsetsTopic, m.ListOffsetsRequest_ListOffsetsPartition
    return m.ListOffsetsRequest(
        replica_id=-1, topics=[row(name, [part(index, -1, LATEST) for index in some]) for name, some in topics.items()]
    )
