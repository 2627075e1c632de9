"""Consumer groups: members, what they are assigned, and how far they lag behind."""

from __future__ import annotations

import re
from typing import Any

from moldau.admin import groups as admin
from moldau.admin.groups import DescribedGroup, GroupMember, Lag
from moldau.client import ClientError, Error
from moldau.http import Endpoint
from moldau.rest.endpoints import Call
from moldau.rest.errors import not_found

MAX_LAG = ("consumer_id", "instance_id", "client_id", "topic_name", "partition_id")
PROTOCOLS = (admin.CONSUMER, "")  # of groups of consumers, and of those that only commit offsets


def describe(call: Call, name: str, kind: str = "") -> DescribedGroup | None:
    try:
        return admin.described(call.kafka.client, name, kind)
    except ClientError as error:
        if error.error is Error.GROUP_ID_NOT_FOUND:
            return None
        raise


def of_path(call: Call) -> DescribedGroup:
    name = call["consumer_group_id"]
    found = describe(call, name)
    if found is None:
        raise not_found(f"Consumer group {name}")
    if found.protocol not in PROTOCOLS:
        raise ClientError(Error.INVALID_REQUEST, f"GroupId {name} is not a consumer group ({found.protocol}).")
    return found


def groups(call: Call) -> dict[str, Any]:
    listed = [row for row in admin.listed(call.kafka.client) if row.protocol in PROTOCOLS]
    rows = [describe(call, row.id, row.type) for row in listed]
    return call.listing("KafkaConsumerGroupList", [_group(call, row) for row in rows if row])


def group(call: Call) -> dict[str, Any]:
    return _group(call, of_path(call))


def _group(call: Call, row: DescribedGroup) -> dict[str, Any]:
    where = ("consumer-groups", row.id)
    return call.resource(
        "KafkaConsumerGroup",
        where,
        {"consumer_group": row.id},
        consumer_group_id=row.id,
        is_simple=not row.protocol,
        partition_assignor=row.assignor,
        state=re.sub(r"(?<=[a-z])(?=[A-Z])", "_", row.state).upper(),
        type=row.type.upper(),
        is_mixed_consumer_group=False,
        coordinator=call.link("brokers", row.coordinator),
        consumers=call.link(*where, "consumers"),
        lag_summary=call.link(*where, "lag-summary"),
    )


def consumers(call: Call) -> dict[str, Any]:
    found = of_path(call)
    return call.listing("KafkaConsumerList", [_consumer(call, found.id, row) for row in found.members])


def member_of_path(call: Call) -> GroupMember:
    for row in of_path(call).members:
        if row.id == call["consumer_id"]:
            return row
    raise not_found(f"Consumer {call['consumer_id']}")


def consumer(call: Call) -> dict[str, Any]:
    return _consumer(call, call["consumer_group_id"], member_of_path(call))


def _consumer(call: Call, name: str, row: GroupMember) -> dict[str, Any]:
    where = ("consumer-groups", name, "consumers", row.id)
    return call.resource(
        "KafkaConsumer",
        where,
        {"consumer_group": name, "consumer": row.id},
        consumer_group_id=name,
        consumer_id=row.id,
        instance_id=row.instance_id or None,
        client_id=row.client_id,
        assignments=call.link(*where, "assignments"),
    )


def assignments(call: Call) -> dict[str, Any]:
    row = member_of_path(call)
    return call.listing("KafkaConsumerAssignmentList", [_assignment(call, row, *pair) for pair in row.partitions])


def assignment(call: Call) -> dict[str, Any]:
    row, pair = member_of_path(call), (call["topic_name"], call["partition_id"])
    if pair not in row.partitions:
        raise not_found(f"An assignment of partition {pair[1]} of topic {pair[0]}")
    return _assignment(call, row, *pair)


def _assignment(call: Call, row: GroupMember, topic: str, partition: int) -> dict[str, Any]:
    name = call["consumer_group_id"]
    tail = (topic, "partitions", partition)
    return call.resource(
        "KafkaConsumerAssignment",
        ("consumer-groups", name, "consumers", row.id, "assignments", *tail),
        {"consumer_group": name, "consumer": row.id, "assignment": topic, "partition": partition},
        consumer_group_id=name,
        consumer_id=row.id,
        topic_name=topic,
        partition_id=partition,
        partition=call.link("topics", *tail),
        lag=call.link("consumer-groups", name, "lags", *tail),
    )


def find_lags(call: Call) -> list[Lag]:
    """Return the lags at partitions that exist and have a committed offset: offsets outlive their topics."""
    rows = admin.lags(call.kafka.client, of_path(call))
    return [row for row in rows if row.lag is not None]


def lags(call: Call) -> dict[str, Any]:
    return call.listing("KafkaConsumerLagList", [_lag(call, row) for row in find_lags(call)])


def lag(call: Call) -> dict[str, Any]:
    for row in find_lags(call):
        if (row.topic, row.partition) == (call["topic_name"], call["partition_id"]):
            return _lag(call, row)
    raise not_found(f"A lag of partition {call['partition_id']} of topic {call['topic_name']}")


def _lag(call: Call, row: Lag) -> dict[str, Any]:
    name = call["consumer_group_id"]
    return call.resource(
        "KafkaConsumerLag",
        ("consumer-groups", name, "lags", row.topic, "partitions", row.partition),
        {"consumer_group": name, "lag": row.topic, "partition": row.partition},
        consumer_group_id=name,
        topic_name=row.topic,
        partition_id=row.partition,
        current_offset=row.offset,
        log_end_offset=row.end,
        lag=(row.end or 0) - (row.offset or 0),  # negative where the topic was made again
        consumer_id=row.member.id if row.member else "",
        instance_id=(row.member.instance_id or None) if row.member else None,
        client_id=row.member.client_id if row.member else "",
    )


def summary(call: Call) -> dict[str, Any]:
    rows = [_lag(call, row) for row in find_lags(call)]
    if not rows:
        raise not_found("A lag of this group")
    name, most = call["consumer_group_id"], max(rows, key=lambda row: row["lag"])
    return call.resource(
        "KafkaConsumerGroupLagSummary",
        ("consumer-groups", name, "lag-summary"),
        {"consumer_group": name, "lag_summary": None},
        consumer_group_id=name,
        **{f"max_lag_{field}": most[field] for field in MAX_LAG},
        max_lag=most["lag"],
        total_lag=sum(row["lag"] for row in rows),
        max_lag_consumer=call.link("consumer-groups", name, "consumers", most["consumer_id"]),
        max_lag_partition=call.link("topics", most["topic_name"], "partitions", most["partition_id"]),
    )


ALL = "/v3/clusters/{cluster_id}/consumer-groups"
ONE = f"{ALL}/{{consumer_group_id}}"
MEMBER = f"{ONE}/consumers/{{consumer_id}}"
PLACE = "{topic_name}/partitions/{partition_id}"
GROUPS = (
    Endpoint("GET", ALL, groups, "All consumer groups.", "GroupList"),
    Endpoint("GET", ONE, group, "One group.", "Group"),
    Endpoint("GET", f"{ONE}/consumers", consumers, "Members of a group.", "ConsumerList"),
    Endpoint("GET", MEMBER, consumer, "One member.", "Consumer"),
    Endpoint("GET", f"{MEMBER}/assignments", assignments, "What a member is assigned.", "AssignmentList"),
    Endpoint("GET", f"{MEMBER}/assignments/{PLACE}", assignment, "One partition of it.", "Assignment"),
    Endpoint("GET", f"{ONE}/lag-summary", summary, "The largest lag of a group, and the sum.", "LagSummary"),
    Endpoint("GET", f"{ONE}/lags", lags, "Lags of a group.", "LagList"),
    Endpoint("GET", f"{ONE}/lags/{PLACE}", lag, "The lag at one partition.", "Lag"),
)
