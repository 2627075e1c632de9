"""Topics: list, create, look at, give more partitions, delete."""

from __future__ import annotations

from typing import Any

from moldau.admin import topics as admin
from moldau.admin.acls import OPERATIONS
from moldau.http import Answer, Endpoint, HttpError
from moldau.rest.endpoints import Call

NOT_TOLD = -(2**31)  # in place of authorized operations that the broker was not asked for


def topics(call: Call) -> dict[str, Any]:
    found = [_describe(call, topic) for topic in call.kafka.topics(None)]
    return call.listing("KafkaTopicList", found)


def topic(call: Call) -> dict[str, Any]:
    operations = call.query.get("include_authorized_operations") == "true"
    [found] = call.kafka.topics([call["topic_name"]], operations)
    return _describe(call, found)


def _describe(call: Call, topic: Any) -> dict[str, Any]:
    first = next((row for row in topic.partitions if row.partition_index == 0), None)
    more = {}
    if topic.topic_authorized_operations != NOT_TOLD:
        bits = topic.topic_authorized_operations
        more["authorized_operations"] = [name for name, bit in OPERATIONS.items() if bits >> bit & 1]
    sizes = (len(first.replica_nodes) if first else 0, len(topic.partitions))
    return _resource(call, topic.name, topic.is_internal, *sizes, **more)


def _resource(call: Call, name: str, internal: bool, replicas: int, partitions: int, **more: Any) -> dict[str, Any]:
    where = ("topics", name)
    return call.resource(
        "KafkaTopic",
        where,
        {"topic": name},
        topic_name=name,
        is_internal=internal,
        replication_factor=replicas,
        partitions_count=partitions,
        partitions=call.link(*where, "partitions"),
        configs=call.link(*where, "configs"),
        partition_reassignments=call.link(*where, "partitions", "-", "reassignment"),
        **more,
    )


def create(call: Call) -> Answer:
    only = call.body.get("validate_only", False)
    [made] = admin.create(call.kafka.client, [_new(call.body)], validate_only=only)
    found = _resource(call, made.name, False, made.replication_factor, made.partitions)
    return Answer(200, found) if only else Answer(201, found, {"Location": call.url("topics", made.name)})


def _new(body: dict[str, Any]) -> admin.NewTopic:
    return admin.NewTopic(
        body["topic_name"],
        body.get("partitions_count", admin.DEFAULT),
        body.get("replication_factor", admin.DEFAULT),
        {row["name"]: row.get("value") for row in body.get("configs", ())},
        {_partition(text): ids for text, ids in body.get("replicas_assignments", {}).items()},
    )


def _partition(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) >= 2**31:
        raise HttpError(400, f"replicas_assignments: {text!r} is not the number of a partition.")
    return int(text)


def grow(call: Call) -> dict[str, Any]:
    admin.add_partitions(call.kafka.client, {call["topic_name"]: call.body["partitions_count"]})
    return topic(call)


def delete(call: Call) -> None:
    admin.delete(call.kafka.client, [call["topic_name"]])


ALL = "/v3/clusters/{cluster_id}/topics"
ONE = f"{ALL}/{{topic_name}}"
TOPICS = (
    Endpoint("GET", ALL, topics, "All topics.", "TopicList"),
    Endpoint("POST", ALL, create, "Create a topic, or see whether it could be.", "Topic", "NewTopic", 201, (200,)),
    Endpoint("GET", ONE, topic, "One topic.", "Topic", query=("include_authorized_operations",)),
    Endpoint("PATCH", ONE, grow, "Give a topic more partitions.", "Topic", "PartitionsCount"),
    Endpoint("DELETE", ONE, delete, "Delete a topic.", status=204),
)
