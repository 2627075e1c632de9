"""DeleteShareGroupOffsets (key 92), v0: let an empty share group forget topics (KIP-932).

Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.share import groups as share_groups
from moldau.machines.share import offsets as share_offsets
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(92, versions=(0, 0))
async def delete_share_group_offsets(
    node: Node, connection: Connection, request: m.DeleteShareGroupOffsetsRequest, version: int
) -> Answer:
    try:
        share_groups.check_request(node, request.group_id)
        rows = await delete(node, request.group_id, [topic.topic_name for topic in request.topics])
    except Refused as refused:
        return m.DeleteShareGroupOffsetsResponse(error_code=refused.error, error_message=refused.message)
    return m.DeleteShareGroupOffsetsResponse(responses=rows)


async def delete(node: Node, group_id: str, names: list[str]) -> list[Any]:
    """Delete the offsets of topics; returns a row for each. Raises Refused."""
    index, machine = node.groups.of(group_id)
    step, nothing = share_offsets.delete_offsets(machine, group_id, names)
    await share_groups.write(node, index, step.changes)
    row = m.DeleteShareGroupOffsetsResponse_DeleteShareGroupOffsetsResponseTopic
    failures = [row(name, bytes(16), Error.UNKNOWN_TOPIC_OR_PARTITION, why) for name, why in nothing.items()]
    if step.request is None:
        return failures
    errors = share_groups.errors_of(await node.share_state.delete(step.request))
    failed = {topic: error for (topic, _), error in errors.items() if error}
    failures += [row(name_of(node, topic), topic, error, error.message) for topic, error in failed.items()]
    done = [topic for topic in dict.fromkeys(topic for topic, _ in errors) if topic not in failed]
    if done:
        index, machine = node.groups.of(group_id)  # it may have been loaded again meanwhile
        await share_groups.write(node, index, share_offsets.offsets_deleted(machine, group_id, done))
    return [row(name_of(node, topic), topic, Error.NONE, None) for topic in done] + failures


def name_of(node: Node, topic: bytes) -> str:
    return node.cluster.topics_by_id[topic].name
