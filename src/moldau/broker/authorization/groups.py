"""Guards of groups and their offsets: groups are asked for by name, and topics in them once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.broker.api import Answer
from moldau.broker.authorization import DENIED, Call, refuse, refuse_all, row_class, split
from moldau.broker.authorization.whole import guard
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

SHARES_FROM = 6  # the version of FindCoordinator that finds coordinators of shares
NO_GROUP, NO_TOPIC = DENIED[GROUP], DENIED[TOPIC]
COORDINATED = {0: (DESCRIBE, GROUP), 1: (DESCRIBE, TRANSACTIONAL_ID), 2: (CLUSTER_ACTION, CLUSTER)}  # by key type


@guard(8)
def offset_commit(call: Call[m.OffsetCommitRequest]) -> Answer:
    return call.withhold("topics", "topics", lambda topic: call.may_topic(READ, topic.name, topic.topic_id))


@guard(9)
def offset_fetch(call: Call[m.OffsetFetchRequest]) -> Answer:
    """Many groups since v8, one before. Of all offsets those of topics that may not be described are left out."""
    request, response = call.request, m.OffsetFetchResponse
    if call.version >= 8:
        return guard_offsets(call, committed_offset=-1)
    if not call.may(DESCRIBE, GROUP, request.group_id):
        if call.version >= 2:
            return response(error_code=NO_GROUP)
        return response(topics=refuse_all(response, "topics", request.topics or (), NO_GROUP, committed_offset=-1))
    hidden = hide_topics(call, request)

    def finish(response: m.OffsetFetchResponse) -> Any:
        if response.error_code == Error.NONE:
            reveal_topics(call, response, hidden, committed_offset=-1)
        return response

    return call.forward(finish)


@guard(90)
def describe_share_group_offsets(call: Call[m.DescribeShareGroupOffsetsRequest]) -> Answer:
    """Of all offsets those of topics that may not be described are left out."""
    return guard_offsets(call, start_offset=-1)


def guard_offsets(call: Call[Any], **values: int) -> Answer:
    """Ask for groups one by one, and for the topics of each. `values` stand in the rows of refused partitions."""
    call.request.groups, refused = split(call.request.groups, lambda group: call.may(DESCRIBE, GROUP, group.group_id))
    hidden = {group.group_id: hide_topics(call, group) for group in call.request.groups}

    def finish(response: Any) -> Any:
        for group in response.groups:
            if group.error_code == Error.NONE:
                reveal_topics(call, group, hidden.get(group.group_id, ()), **values)
        denied = refuse_all(type(response), "groups", refused, NO_GROUP, topics=())
        response.groups = [*response.groups, *denied]
        return response

    return call.forward(finish)


def hide_topics(call: Call[Any], asked: Any) -> list[Any]:
    """Take the topics that may not be described out of a request for offsets; null asks for all that there are."""
    if asked.topics is None:
        return []
    asked.topics, hidden = split(asked.topics, lambda topic: may_see(call, topic))
    return hidden


def reveal_topics(call: Call[Any], owner: Any, hidden: Iterable[Any], **values: int) -> None:
    """Leave only topics that may be described in an answer, and refuse those that were taken out of the request."""
    shown = [topic for topic in owner.topics if may_see(call, topic)]
    owner.topics = [*shown, *refuse_all(type(owner), "topics", hidden, NO_TOPIC, **values)]


def may_see(call: Call[Any], topic: Any) -> bool:
    """Tell whether a topic may be described; requests name topics in three ways."""
    if hasattr(topic, "topic_name"):
        return call.may(DESCRIBE, TOPIC, topic.topic_name)
    return call.may_topic(DESCRIBE, topic.name, getattr(topic, "topic_id", b""))


@guard(10)
def find_coordinator(call: Call[m.FindCoordinatorRequest]) -> Answer:
    operation, kind = COORDINATED.get(call.request.key_type, (0, 0))
    if not operation or (kind == CLUSTER and call.version < SHARES_FROM):
        return call.forward()  # the handler refuses it
    error = DENIED[kind]

    def may(key: str) -> bool:
        return call.may(operation) if kind == CLUSTER else call.may(operation, kind, key)

    if call.version >= 4:
        return call.withhold("coordinator_keys", "coordinators", may, error, node_id=-1, port=-1)
    if may(call.request.key):
        return call.forward()
    return m.FindCoordinatorResponse(error_code=error, error_message=error.message, node_id=-1, host="", port=-1)


@guard(15)
def describe_groups(call: Call[m.DescribeGroupsRequest]) -> Answer:
    return guard_described(call, "groups")


@guard(16)
def list_groups(call: Call[m.ListGroupsRequest]) -> Answer:
    """Who may describe the cluster sees all groups."""

    def finish(response: m.ListGroupsResponse) -> Any:
        response.groups = [row for row in response.groups if call.may(DESCRIBE, GROUP, row.group_id)]
        return response

    return call.forward(None if call.may(DESCRIBE) else finish)


@guard(42)
def delete_groups(call: Call[m.DeleteGroupsRequest]) -> Answer:
    return call.withhold("groups_names", "results", lambda name: call.may(DELETE, GROUP, name), NO_GROUP)


@guard(47)
def offset_delete(call: Call[m.OffsetDeleteRequest]) -> Answer:
    return call.withhold("topics", "topics", lambda topic: call.may(READ, TOPIC, topic.name))


@guard(68)
def consumer_group_heartbeat(call: Call[m.ConsumerGroupHeartbeatRequest]) -> Answer:
    return guard_subscription(call, call.request.subscribed_topic_names)


@guard(69)
def consumer_group_describe(call: Call[m.ConsumerGroupDescribeRequest]) -> Answer:
    return guard_described(call, "group_ids", assigned_topics)


@guard(76)
def share_group_heartbeat(call: Call[m.ShareGroupHeartbeatRequest]) -> Answer:
    return guard_subscription(call, call.request.subscribed_topic_names)


@guard(77)
def share_group_describe(call: Call[m.ShareGroupDescribeRequest]) -> Answer:
    return guard_described(call, "group_ids", assigned_topics)


@guard(88)
def streams_group_heartbeat(call: Call[m.StreamsGroupHeartbeatRequest]) -> Answer:
    return guard_subscription(call, topology_topics(call.request.topology))


@guard(89)
def streams_group_describe(call: Call[m.StreamsGroupDescribeRequest]) -> Answer:
    return guard_described(call, "group_ids", lambda group: topology_topics(group.topology))


def guard_subscription(call: Call[Any], topics: Iterable[str] | None) -> Answer:
    """Forward a heartbeat if the client may describe all topics that it names."""
    if all(call.may(DESCRIBE, TOPIC, name) for name in topics or ()):
        return call.forward()
    return m.response_class(call.request.SCHEMA.key)(error_code=NO_TOPIC, error_message=NO_TOPIC.message)


def guard_described(call: Call[Any], names: str, topics_of: Callable[[Any], set[str]] | None = None) -> Answer:
    """Ask for groups one by one. A group that uses topics which may not be described is refused too."""
    kept, refused = split(getattr(call.request, names), lambda name: call.may(DESCRIBE, GROUP, name))
    setattr(call.request, names, kept)

    def finish(response: Any) -> Any:
        row, groups = row_class(type(response), "groups"), response.groups
        for group in groups:
            if group.authorized_operations != NOT_ASKED and group.error_code == Error.NONE:
                group.authorized_operations = call.allowed(GROUP, group.group_id)
        response.groups = [
            *(row(group_id=name, error_code=NO_GROUP) for name in refused),
            *(group if may_see_all(group) else refuse(row, group.group_id, NO_TOPIC) for group in groups),
        ]
        return response

    def may_see_all(group: Any) -> bool:
        return topics_of is None or all(call.may(DESCRIBE, TOPIC, name) for name in topics_of(group))

    return call.forward(finish)


def assigned_topics(group: Any) -> set[str]:
    """Return the topics that the members of a consumer or share group have, or are to have."""
    assignments = [member.assignment for member in group.members]
    assignments += [member.target_assignment for member in group.members if hasattr(member, "target_assignment")]
    return {part.topic_name for assignment in assignments for part in assignment.topic_partitions}


def topology_topics(topology: Any) -> set[str]:
    """Return the topics that a Streams application reads and writes."""
    names: set[str] = set()
    for part in topology.subtopologies if topology is not None else ():
        names.update(part.source_topics, part.repartition_sink_topics)
        names.update(topic.name for topic in (*part.repartition_source_topics, *part.state_changelog_topics))
    return names


@guard(78)
def share_fetch(call: Call[m.ShareFetchRequest]) -> Answer:
    """A session may still have partitions that the client may no longer read: their records do not leave."""
    call.request.topics, hidden = split(call.request.topics, lambda topic: may_read(call, topic))

    def finish(response: m.ShareFetchResponse) -> Any:
        response.responses = [
            *(topic if may_read(call, topic) else unreadable(topic) for topic in response.responses),
            *map(unreadable, hidden),
        ]
        return response

    return call.forward(finish)


def unreadable(topic: Any) -> Any:
    return refuse(
        m.ShareFetchResponse_ShareFetchableTopicResponse, topic, NO_TOPIC, error_message=None, acquired_records=()
    )


def may_read(call: Call[Any], topic: Any) -> bool:
    return call.may_topic(READ, None, topic.topic_id)


@guard(79)
def share_acknowledge(call: Call[m.ShareAcknowledgeRequest]) -> Answer:
    return call.withhold("topics", "responses", lambda topic: may_read(call, topic), error_message=None)


def guard_shared_topics(call: Call[Any]) -> Answer:
    return call.withhold("topics", "responses", lambda topic: call.may(READ, TOPIC, topic.topic_name))


guard(91)(guard_shared_topics)
guard(92)(guard_shared_topics)
