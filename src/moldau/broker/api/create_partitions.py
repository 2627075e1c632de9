"""CreatePartitions (key 37), v0-3: more partitions for topics.

Deviates: nothing known.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau.broker.api import api
from moldau.machines.metadata.topics import add_partitions
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(37, versions=(0, 3))
def create_partitions(node, connection, request, version):
    counts = Counter(topic.name for topic in request.topics)
    unique = {topic.name: topic for topic in request.topics}
    rows = [extend(node, topic, counts[name], request.validate_only) for name, topic in unique.items()]
    return m.CreatePartitionsResponse(results=rows)


def extend(node: Any, asked: Any, count: int, validate_only: bool) -> Any:
    try:
        if count > 1:
            raise Refused(Error.INVALID_REQUEST, "The request names this topic more than once.")
        lists = None if asked.assignments is None else [list(row.broker_ids) for row in asked.assignments]
        plan = add_partitions(node.cluster, asked.name, asked.count, lists, node.random.randrange(1 << 16))
        if not validate_only:
            node.commit(plan)
    except Refused as refused:
        return m.CreatePartitionsResponse_CreatePartitionsTopicResult(asked.name, refused.error, refused.message)
    return m.CreatePartitionsResponse_CreatePartitionsTopicResult(asked.name)
