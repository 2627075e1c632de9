"""OffsetDelete (key 47), v0: forget offsets of topics that a group does not read any more (KIP-496).

Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines import offsets
from moldau.machines.effects import Effects, Promise
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(47, versions=(0, 0))
def offset_delete(node: Node, connection: Connection, request: m.OffsetDeleteRequest, version: int) -> Answer:
    def refuse(error: Error) -> object:
        return m.OffsetDeleteResponse(error_code=error)

    rows = []
    slots = []
    for topic in request.topics:
        partitions = [m.OffsetDeleteResponse_OffsetDeleteResponsePartition(p.partition_index) for p in topic.partitions]
        rows.append(m.OffsetDeleteResponse_OffsetDeleteResponseTopic(topic.name, partitions))
        known = node.cluster.topics.get(topic.name)
        for slot in partitions:
            if known is None or slot.partition_index not in known.partitions:
                slot.error_code = Error.UNKNOWN_TOPIC_OR_PARTITION
            else:
                slots.append((topic.name, slot))
    if not request.group_id:
        return refuse(Error.INVALID_GROUP_ID)
    try:
        index, machine = node.groups.of(request.group_id)
        pairs = [(name, slot.partition_index) for name, slot in slots]
        result = offsets.delete(machine, request.group_id, pairs)
    except Refused as refused:
        return refuse(refused.error)
    for (_, slot), error in zip(slots, result.errors, strict=True):
        slot.error_code = error
    promise = Promise(refuse)
    response = m.OffsetDeleteResponse(topics=rows)
    return node.groups.ask(index, promise, Effects(result.changes, [(promise, response)]))
