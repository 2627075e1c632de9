"""Guards of groups and their offsets: groups are asked for by name, and topics in them once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.broker.authorization import DENIED, Call, guard, split
from moldau.broker.authorization.whole import offset_commit_row, refusal
from moldau.broker.operations import NOT_ASKED
from moldau.machines.metadata.acls import (
    CLUSTER,
    CLUSTER_ACTION,
    DELETE,
    DESCRIBE,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
)
from moldau.wire import messages as m
from moldau.wire.errors import Error

NO_GROUP, NO_TOPIC = Error.GROUP_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED
COORDINATED = {0: (DESCRIBE, GROUP), 1: (DESCRIBE, TRANSACTIONAL_ID), 2: (CLUSTER_ACTION, CLUSTER)}  # by key type


@guard(8)
def offset_commit(call: Call) -> Any:
    refused = refusal(call, 8)
    if refused is not None:
        return refused
    return call.withhold(
        "topics",
        "topics",
        lambda topic: call.may_topic(READ, topic.name, topic.topic_id),
        lambda topic: offset_commit_row(topic, NO_TOPIC),
    )


@guard(9)
def offset_fetch(call: Call) -> Any:
    """Many groups since v8, one before. Of all offsets those of topics that may not be described are left out."""
    return offset_fetch_groups(call) if call.version >= 8 else offset_fetch_group(call)


def offset_fetch_groups(call: Call) -> Any:
    request = call.request
    kept, refused = split(request.groups, lambda group: call.may(DESCRIBE, GROUP, group.group_id))
    request.groups = kept
    hidden = {group.group_id: hide_topics(call, group) for group in kept}
    row = m.OffsetFetchResponse_OffsetFetchResponseTopics
    part_row = m.OffsetFetchResponse_OffsetFetchResponsePartitions

    def finish(response: Any) -> Any:
        for group in response.groups:
            if group.error_code == Error.NONE:
                group.topics = [topic for topic in group.topics if may_see(call, topic)]
                for topic in hidden.get(group.group_id, ()):
                    parts = [part_row(index, -1, error_code=NO_TOPIC) for index in topic.partition_indexes]
                    group.topics.append(row(topic.name, topic.topic_id, parts))
        denied = m.OffsetFetchResponse_OffsetFetchResponseGroup
        response.groups = [*response.groups, *(denied(group.group_id, error_code=NO_GROUP) for group in refused)]
        return response

    return call.forward(finish)


def hide_topics(call: Call, asked: Any) -> list[Any]:
    """Take the topics that may not be described out of a request for offsets; null asks for all that there are."""
    if asked.topics is None:
        return []
    asked.topics, hidden = split(asked.topics, lambda topic: may_see(call, topic))
    return hidden


def may_see(call: Call, topic: Any) -> bool:
    """Requests name topics in three ways."""
    if hasattr(topic, "topic_name"):
        return call.may(DESCRIBE, TOPIC, topic.topic_name)
    return call.may_topic(DESCRIBE, topic.name, getattr(topic, "topic_id", b""))


def offset_fetch_group(call: Call) -> Any:
    request = call.request
    row = m.OffsetFetchResponse_OffsetFetchResponseTopic
    part_row = m.OffsetFetchResponse_OffsetFetchResponsePartition

    def denied(topic: Any, error: Error) -> Any:
        return row(topic.name, [part_row(index, -1, error_code=error) for index in topic.partition_indexes])

    if not call.may(DESCRIBE, GROUP, request.group_id):
        if call.version >= 2:
            return m.OffsetFetchResponse(error_code=NO_GROUP)
        return m.OffsetFetchResponse(topics=[denied(topic, NO_GROUP) for topic in request.topics])
    hidden = hide_topics(call, request)

    def finish(response: Any) -> Any:
        if response.error_code == Error.NONE:
            shown = [topic for topic in response.topics if call.may(DESCRIBE, TOPIC, topic.name)]
            response.topics = [*shown, *(denied(topic, NO_TOPIC) for topic in hidden)]
        return response

    return call.forward(finish)


@guard(10)
def find_coordinator(call: Call) -> Any:
    operation, kind = COORDINATED.get(call.request.key_type, (0, 0))
    if not operation:
        return call.forward()  # the handler refuses it
    error = DENIED[kind]

    def may(key: str) -> bool:
        return call.may(operation) if kind == CLUSTER else call.may(operation, kind, key)

    def denied(key: str) -> Any:
        return m.FindCoordinatorResponse_Coordinator(key, -1, "", -1, error, error.message)

    if call.version >= 4:
        return call.withhold("coordinator_keys", "coordinators", may, denied)
    if may(call.request.key):
        return call.forward()
    return m.FindCoordinatorResponse(error_code=error, error_message=error.message, node_id=-1, host="", port=-1)


@guard(15)
def describe_groups(call: Call) -> Any:
    return guard_described(call, "groups", m.DescribeGroupsResponse_DescribedGroup)


@guard(16)
def list_groups(call: Call) -> Any:
    """Who may describe the cluster sees all groups."""

    def finish(response: Any) -> Any:
        response.groups = [row for row in response.groups if call.may(DESCRIBE, GROUP, row.group_id)]
        return response

    return call.forward(None if call.may(DESCRIBE) else finish)


@guard(42)
def delete_groups(call: Call) -> Any:
    row = m.DeleteGroupsResponse_DeletableGroupResult
    return call.withhold(
        "groups_names", "results", lambda name: call.may(DELETE, GROUP, name), lambda name: row(name, NO_GROUP)
    )


@guard(47)
def offset_delete(call: Call) -> Any:
    refused = refusal(call, 47)
    if refused is not None:
        return refused

    def denied(topic: Any) -> Any:
        row = m.OffsetDeleteResponse_OffsetDeleteResponsePartition
        rows = [row(part.partition_index, NO_TOPIC) for part in topic.partitions]
        return m.OffsetDeleteResponse_OffsetDeleteResponseTopic(topic.name, rows)

    return call.withhold("topics", "topics", lambda topic: call.may(READ, TOPIC, topic.name), denied)


@guard(68)
def consumer_group_heartbeat(call: Call) -> Any:
    return guard_subscription(call, call.request.subscribed_topic_names)


@guard(69)
def consumer_group_describe(call: Call) -> Any:
    return guard_described(call, "group_ids", m.ConsumerGroupDescribeResponse_DescribedGroup, assigned_topics)


@guard(88)
def streams_group_heartbeat(call: Call) -> Any:
    return guard_subscription(call, topology_topics(call.request.topology))


@guard(89)
def streams_group_describe(call: Call) -> Any:
    return guard_described(call, "group_ids", m.StreamsGroupDescribeResponse_DescribedGroup, described_topology)


def guard_subscription(call: Call, topics: Any) -> Any:
    """A heartbeat may name topics; all of them must be there to be described."""
    refused = refusal(call, call.request.SCHEMA.key)
    if refused is not None:
        return refused
    if all(call.may(DESCRIBE, TOPIC, name) for name in topics or ()):
        return call.forward()
    return m.response_class(call.request.SCHEMA.key)(error_code=NO_TOPIC, error_message=NO_TOPIC.message)


def guard_described(
    call: Call, names: str, row: Callable[..., Any], topics_of: Callable[[Any], set[str]] | None = None
) -> Any:
    """Groups one by one. The description of one that uses topics which may not be described is refused too."""
    asked = getattr(call.request, names)
    kept, refused = split(asked, lambda name: call.may(DESCRIBE, GROUP, name))
    setattr(call.request, names, kept)

    def finish(response: Any) -> Any:
        groups = [described(group) for group in response.groups]
        response.groups = [*(row(group_id=name, error_code=NO_GROUP) for name in refused), *groups]
        return response

    def described(group: Any) -> Any:
        if group.authorized_operations != NOT_ASKED and group.error_code == Error.NONE:
            group.authorized_operations = call.allowed(GROUP, group.group_id)
        if topics_of and not all(call.may(DESCRIBE, TOPIC, name) for name in topics_of(group)):
            return row(group_id=group.group_id, error_code=NO_TOPIC, error_message=NO_TOPIC.message)
        return group

    return call.forward(finish)


def assigned_topics(group: Any) -> set[str]:
    """Topics that the members of a consumer or share group have, or are to have."""
    assignments = [member.assignment for member in group.members]
    assignments += [member.target_assignment for member in group.members if hasattr(member, "target_assignment")]
    return {part.topic_name for assignment in assignments for part in assignment.topic_partitions}


def topology_topics(topology: Any) -> set[str]:
    """The topics that a Streams application reads and writes."""
    names: set[str] = set()
    for part in topology.subtopologies if topology is not None else ():
        names.update(part.source_topics, part.repartition_sink_topics)
        names.update(topic.name for topic in (*part.repartition_source_topics, *part.state_changelog_topics))
    return names


def described_topology(group: Any) -> set[str]:
    return topology_topics(group.topology)
