"""OffsetFetch (key 9), v1-10: committed offsets of groups.

v2 null asks for all.  v5 leader epochs.  v7 requireStable (KIP-447).  v8 many groups (KIP-709).
v9 member epochs (KIP-848).  v10 topic ids.
Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines import offsets
from moldau.machines.offsets import NO_OFFSET, NO_TOPIC_ID
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

BATCHED = 8
GROUP_ERRORS = 2  # from this version on there is room for an error of the group
BY_ID = 10


@api(9, versions=(1, 10), reads="groups")
def offset_fetch(node: Node, connection: Connection, request: m.OffsetFetchRequest, version: int) -> Answer:
    if version >= BATCHED:
        groups = [fetch_group(node, group, request.require_stable, version) for group in request.groups]
        return m.OffsetFetchResponse(groups=groups)
    topics: Any = request.topics  # in these versions, by name
    single = m.OffsetFetchRequest_OffsetFetchRequestGroup(request.group_id, topics=topics)
    return as_single(fetch_group(node, single, request.require_stable, version), request, version)


def as_single(group: Any, request: m.OffsetFetchRequest, version: int) -> Any:
    """Return the answer of one group in the older shape; version 1 says a group's error for each partition."""
    error = group.error_code
    topics = group.topics
    if error and version < GROUP_ERRORS:
        topics = [all_of(topic.name, NO_TOPIC_ID, topic.partition_indexes, error) for topic in request.topics or ()]
    rows = [
        m.OffsetFetchResponse_OffsetFetchResponseTopic(
            topic.name,
            [
                m.OffsetFetchResponse_OffsetFetchResponsePartition(
                    part.partition_index,
                    part.committed_offset,
                    part.committed_leader_epoch,
                    part.metadata,
                    part.error_code,
                )
                for part in topic.partitions
            ],
        )
        for topic in topics
    ]
    return m.OffsetFetchResponse(topics=rows, error_code=error if version >= GROUP_ERRORS else Error.NONE)


def fetch_group(node: Node, asked: Any, require_stable: bool, version: int) -> Any:
    """Return all offsets of a group, or those that were asked for."""
    answer = m.OffsetFetchResponse_OffsetFetchResponseGroup(asked.group_id)
    try:
        _, machine = node.groups.of(asked.group_id)
        group = machine.groups.get(asked.group_id)
        if group is not None:
            group.check_fetch(asked.member_id, asked.member_epoch)
        find = all_offsets if asked.topics is None else asked_offsets
        answer.topics = list(find(node, machine.offsets, asked, require_stable, version))
    except Refused as refused:
        answer.error_code = refused.error
    return answer


def asked_offsets(node: Node, known: offsets.Offsets, asked: Any, stable: bool, version: int) -> Iterator[Any]:
    for topic in asked.topics:
        if version >= BY_ID:
            found = node.cluster.topics_by_id.get(topic.topic_id)
            if found is None:
                yield all_of("", topic.topic_id, topic.partition_indexes, Error.UNKNOWN_TOPIC_ID)
                continue
            name, topic_id = found.name, found.id
        else:
            name, topic_id = topic.name, NO_TOPIC_ID
        parts = [partition(known, asked.group_id, name, topic_id, index, stable) for index in topic.partition_indexes]
        yield m.OffsetFetchResponse_OffsetFetchResponseTopics(name, topic_id, parts)


def all_offsets(node: Node, known: offsets.Offsets, asked: Any, stable: bool, version: int) -> Iterator[Any]:
    for name, parts in known.committed.get(asked.group_id, {}).items():
        topic = node.cluster.topics.get(name)
        topic_id = topic.id if topic else NO_TOPIC_ID
        if version >= BY_ID and topic is None:
            continue  # it has no id by which it could be told
        rows = [partition(known, asked.group_id, name, NO_TOPIC_ID, index, stable) for index in parts]
        yield m.OffsetFetchResponse_OffsetFetchResponseTopics(name, topic_id, rows)


def partition(known: offsets.Offsets, group: str, topic: str, topic_id: bytes, index: int, stable: bool) -> Any:
    if stable and known.is_pending(group, topic, index):
        return nothing(index, Error.UNSTABLE_OFFSET_COMMIT)
    found = known.get(group, topic, index)
    if found is None or offsets.of_namesake(found, topic_id):
        return nothing(index, Error.NONE)
    return m.OffsetFetchResponse_OffsetFetchResponsePartitions(
        index, found.offset, found.leader_epoch, found.metadata, Error.NONE
    )


def nothing(index: int, error: Error) -> Any:
    return m.OffsetFetchResponse_OffsetFetchResponsePartitions(index, NO_OFFSET, -1, "", error)


def all_of(name: str, topic_id: bytes, indexes: Iterable[int], error: Error) -> Any:
    return m.OffsetFetchResponse_OffsetFetchResponseTopics(name, topic_id, [nothing(index, error) for index in indexes])
