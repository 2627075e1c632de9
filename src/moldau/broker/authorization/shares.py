"""Guards of share groups (KIP-932)."""

from __future__ import annotations

from typing import Any

from moldau.broker.authorization import Call, guard, split
from moldau.broker.authorization.groups import assigned_topics, guard_described, guard_subscription, hide_topics
from moldau.broker.authorization.whole import refusal
from moldau.machines.metadata.acls import DESCRIBE, GROUP, READ, TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error

NO_GROUP, NO_TOPIC = Error.GROUP_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED


@guard(76)
def share_group_heartbeat(call: Call) -> Any:
    return guard_subscription(call, call.request.subscribed_topic_names)


@guard(77)
def share_group_describe(call: Call) -> Any:
    return guard_described(call, "group_ids", m.ShareGroupDescribeResponse_DescribedGroup, assigned_topics)


@guard(78)
def share_fetch(call: Call) -> Any:
    """A session may still have partitions that the client may no longer read: their records do not leave."""
    refused = refusal(call, 78)
    if refused is not None:
        return refused
    call.request.topics, hidden = split(call.request.topics, lambda topic: may_read(call, topic))

    def finish(response: Any) -> Any:
        rows = [topic if may_read(call, topic) else unreadable(topic) for topic in response.responses]
        response.responses = [*rows, *map(unreadable, hidden)]
        return response

    return call.forward(finish)


def may_read(call: Call, topic: Any) -> bool:
    return call.may_topic(READ, None, topic.topic_id)


def unreadable(topic: Any) -> Any:
    row = m.ShareFetchResponse_PartitionData
    rows = [row(partition_index=part.partition_index, error_code=NO_TOPIC) for part in topic.partitions]
    return m.ShareFetchResponse_ShareFetchableTopicResponse(topic.topic_id, rows)


@guard(79)
def share_acknowledge(call: Call) -> Any:
    refused = refusal(call, 79)
    if refused is not None:
        return refused

    def denied(topic: Any) -> Any:
        row = m.ShareAcknowledgeResponse_PartitionData
        rows = [row(partition_index=part.partition_index, error_code=NO_TOPIC) for part in topic.partitions]
        return m.ShareAcknowledgeResponse_ShareAcknowledgeTopicResponse(topic.topic_id, rows)

    return call.withhold("topics", "responses", lambda topic: may_read(call, topic), denied)


@guard(90)
def describe_share_group_offsets(call: Call) -> Any:
    """Of all offsets those of topics that may not be described are left out."""
    kept, refused = split(call.request.groups, lambda group: call.may(DESCRIBE, GROUP, group.group_id))
    call.request.groups = kept
    hidden = {group.group_id: hide_topics(call, group) for group in kept}

    def denied(topic: Any) -> Any:
        row = m.DescribeShareGroupOffsetsResponse_DescribeShareGroupOffsetsResponsePartition
        rows = [row(index, -1, error_code=NO_TOPIC, error_message=NO_TOPIC.message) for index in topic.partitions]
        topic_row = m.DescribeShareGroupOffsetsResponse_DescribeShareGroupOffsetsResponseTopic
        return topic_row(topic.topic_name, partitions=rows)

    def finish(response: Any) -> Any:
        for group in response.groups:
            if group.error_code == Error.NONE:
                shown = [topic for topic in group.topics if call.may(DESCRIBE, TOPIC, topic.topic_name)]
                group.topics = [*shown, *map(denied, hidden.get(group.group_id, ()))]
        row = m.DescribeShareGroupOffsetsResponse_DescribeShareGroupOffsetsResponseGroup
        rows = [row(group.group_id, error_code=NO_GROUP, error_message=NO_GROUP.message) for group in refused]
        response.groups = [*response.groups, *rows]
        return response

    return call.forward(finish)


@guard(91)
def alter_share_group_offsets(call: Call) -> Any:
    refused = refusal(call, 91)
    if refused is not None:
        return refused

    def denied(topic: Any) -> Any:
        row = m.AlterShareGroupOffsetsResponse_AlterShareGroupOffsetsResponsePartition
        rows = [row(part.partition_index, NO_TOPIC, NO_TOPIC.message) for part in topic.partitions]
        topic_row = m.AlterShareGroupOffsetsResponse_AlterShareGroupOffsetsResponseTopic
        return topic_row(topic.topic_name, partitions=rows)

    return call.withhold("topics", "responses", lambda topic: call.may(READ, TOPIC, topic.topic_name), denied)


@guard(92)
def delete_share_group_offsets(call: Call) -> Any:
    refused = refusal(call, 92)
    if refused is not None:
        return refused

    def denied(topic: Any) -> Any:
        row = m.DeleteShareGroupOffsetsResponse_DeleteShareGroupOffsetsResponseTopic
        return row(topic.topic_name, error_code=NO_TOPIC, error_message=NO_TOPIC.message)

    return call.withhold("topics", "responses", lambda topic: call.may(READ, TOPIC, topic.topic_name), denied)
