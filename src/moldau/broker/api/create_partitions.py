"""CreatePartitions (key 37), v0-3: more partitions for topics.

Deviates: nothing known.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.metadata import Proposal
from moldau.broker.node import Node
from moldau.machines.metadata.topics import add_partitions
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(37, versions=(0, 3))
async def create_partitions(
    node: Node, connection: Connection, request: m.CreatePartitionsRequest, version: int
) -> Answer:
    counts, proposal = Counter(topic.name for topic in request.topics), node.metadata.propose()
    unique = {topic.name: topic for topic in request.topics}
    rows = [extend(node, proposal, topic, counts[name], request.validate_only) for name, topic in unique.items()]
    return await proposal.answer(m.CreatePartitionsResponse(results=rows), rows)


def extend(node: Node, proposal: Proposal, asked: Any, count: int, validate_only: bool) -> Any:
    try:
        if count > 1:
            raise Refused(Error.INVALID_REQUEST, "The request names this topic more than once.")
        lists = None if asked.assignments is None else [list(row.broker_ids) for row in asked.assignments]
        records = add_partitions(proposal.image, asked.name, asked.count, lists, node.random.randrange(1 << 16))
    except Refused as refused:
        return m.CreatePartitionsResponse_CreatePartitionsTopicResult(asked.name, refused.error, refused.message)
    if not validate_only:
        proposal.add(records)
    return m.CreatePartitionsResponse_CreatePartitionsTopicResult(asked.name)
