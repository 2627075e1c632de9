"""Consumer groups: members, what they are assigned, and how far they lag behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions

from moldau.http import Endpoint
from moldau.rest.endpoints import Call
from moldau.rest.errors import not_found
from moldau.rest.kafka import Kafka


@dataclass(frozen=True, slots=True)
class Lag:
    """A partition that a group has committed to, and who has it now."""

    topic: str
    partition: int
    committed: int
    end: int
    member: Any

    @property
    def behind(self) -> int:
        return self.end - self.committed


def describe(kafka: Kafka, names: list[str]) -> list[Any]:
    return (
        kafka.wait(kafka.admin.describe_consumer_groups(names, request_timeout=kafka.timeout_s).values())
        if names
        else []
    )


def group_types(kafka: Kafka) -> dict[str, str]:
    """The names of all consumer groups, and of which kind each is."""
    [found] = kafka.wait([kafka.admin.list_consumer_groups(request_timeout=kafka.timeout_s)])
    for error in found.errors:
        raise error
    return {row.group_id: row.type.name if row.type else "UNKNOWN" for row in found.valid}


def of_path(call: Call) -> Any:
    name = call["consumer_group_id"]
    [found] = describe(call.kafka, [name])
    if found.state.name == "DEAD":
        raise not_found(f"Consumer group {name}")
    return found


def groups(call: Call) -> dict[str, Any]:
    kinds = group_types(call.kafka)
    rows = sorted(describe(call.kafka, list(kinds)), key=lambda row: row.group_id)
    return call.listing("KafkaConsumerGroupList", [_group(call, row, kinds) for row in rows])


def group(call: Call) -> dict[str, Any]:
    return _group(call, of_path(call), group_types(call.kafka))


def _group(call: Call, row: Any, kinds: dict[str, str]) -> dict[str, Any]:
    where = ("consumer-groups", row.group_id)
    kind = kinds.get(row.group_id, "UNKNOWN")
    return call.resource(
        "KafkaConsumerGroup",
        where,
        {"consumer_group": row.group_id},
        consumer_group_id=row.group_id,
        is_simple=row.is_simple_consumer_group,
        partition_assignor=row.partition_assignor or "",
        state=row.state.name,
        type=kind,
        is_mixed_consumer_group=False,
        coordinator=call.link("brokers", row.coordinator.id if row.coordinator else -1),
        consumers=call.link(*where, "consumers"),
        lag_summary=call.link(*where, "lag-summary"),
    )


def consumers(call: Call) -> dict[str, Any]:
    found = of_path(call)
    return call.listing("KafkaConsumerList", [_consumer(call, found.group_id, row) for row in found.members])


def member_of_path(call: Call) -> Any:
    for row in of_path(call).members:
        if row.member_id == call["consumer_id"]:
            return row
    raise not_found(f"Consumer {call['consumer_id']}")


def consumer(call: Call) -> dict[str, Any]:
    return _consumer(call, call["consumer_group_id"], member_of_path(call))


def _consumer(call: Call, name: str, row: Any) -> dict[str, Any]:
    where = ("consumer-groups", name, "consumers", row.member_id)
    return call.resource(
        "KafkaConsumer",
        where,
        {"consumer_group": name, "consumer": row.member_id},
        consumer_group_id=name,
        consumer_id=row.member_id,
        instance_id=row.group_instance_id or None,
        client_id=row.client_id or "",
        assignments=call.link(*where, "assignments"),
    )


def assigned(row: Any) -> list[tuple[str, int]]:
    partitions = row.assignment.topic_partitions if row.assignment else ()
    return sorted((one.topic, one.partition) for one in partitions)


def assignments(call: Call) -> dict[str, Any]:
    row = member_of_path(call)
    return call.listing("KafkaConsumerAssignmentList", [_assignment(call, row, *pair) for pair in assigned(row)])


def assignment(call: Call) -> dict[str, Any]:
    row, pair = member_of_path(call), (call["topic_name"], call["partition_id"])
    if pair not in assigned(row):
        raise not_found(f"An assignment of partition {pair[1]} of topic {pair[0]}")
    return _assignment(call, row, *pair)


def _assignment(call: Call, row: Any, topic: str, partition: int) -> dict[str, Any]:
    name = call["consumer_group_id"]
    tail = (topic, "partitions", partition)
    return call.resource(
        "KafkaConsumerAssignment",
        ("consumer-groups", name, "consumers", row.member_id, "assignments", *tail),
        {"consumer_group": name, "consumer": row.member_id, "assignment": topic, "partition": partition},
        consumer_group_id=name,
        consumer_id=row.member_id,
        topic_name=topic,
        partition_id=partition,
        partition=call.link("topics", *tail),
        lag=call.link("consumer-groups", name, "lags", *tail),
    )


def found_lags(call: Call) -> list[Lag]:
    """Of each partition with a committed offset that is still there."""
    described = of_path(call)
    asked = [ConsumerGroupTopicPartitions(described.group_id)]
    kafka = call.kafka
    [answer] = kafka.wait(kafka.admin.list_consumer_group_offsets(asked, request_timeout=kafka.timeout_s).values())
    committed = {(row.topic, row.partition): row.offset for row in answer.topic_partitions if row.offset >= 0}
    ends = kafka.offsets(_existing(kafka, committed), latest=True)
    holders = {pair: row for row in described.members for pair in assigned(row)}
    return [Lag(*pair, committed[pair], ends[pair], holders.get(pair)) for pair in sorted(ends)]


def _existing(kafka: Kafka, partitions: Any) -> list[tuple[str, int]]:
    """Offsets outlive their topics; those that are gone cannot lag."""
    names = {topic for topic, _ in partitions}
    known = {
        (topic.name, row.partition_index)
        for topic in (kafka.topics(None) if names else ())
        if topic.name in names
        for row in topic.partitions
    }
    return [pair for pair in partitions if pair in known]


def lags(call: Call) -> dict[str, Any]:
    return call.listing("KafkaConsumerLagList", [_lag(call, row) for row in found_lags(call)])


def lag(call: Call) -> dict[str, Any]:
    for row in found_lags(call):
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
        current_offset=row.committed,
        log_end_offset=row.end,
        lag=row.behind,
        consumer_id=row.member.member_id if row.member else "",
        instance_id=(row.member.group_instance_id or None) if row.member else None,
        client_id=(row.member.client_id or "") if row.member else "",
    )


def summary(call: Call) -> dict[str, Any]:
    rows = found_lags(call)
    if not rows:
        raise not_found("A lag of this group")
    name, most = call["consumer_group_id"], max(rows, key=lambda row: row.behind)
    shown = _lag(call, most)
    return call.resource(
        "KafkaConsumerGroupLagSummary",
        ("consumer-groups", name, "lag-summary"),
        {"consumer_group": name, "lag_summary": None},
        consumer_group_id=name,
        max_lag_consumer_id=shown["consumer_id"],
        max_lag_instance_id=shown["instance_id"],
        max_lag_client_id=shown["client_id"],
        max_lag_topic_name=most.topic,
        max_lag_partition_id=most.partition,
        max_lag=most.behind,
        total_lag=sum(row.behind for row in rows),
        max_lag_consumer=call.link("consumer-groups", name, "consumers", shown["consumer_id"]),
        max_lag_partition=call.link("topics", most.topic, "partitions", most.partition),
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
