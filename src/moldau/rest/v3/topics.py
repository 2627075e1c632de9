"""Topics: list, create, look at, give more partitions, delete."""

from __future__ import annotations

from typing import Any

from moldau.client import CONTROLLER
from moldau.client import messages as m
from moldau.http import Answer, Endpoint, HttpError
from moldau.rest.endpoints import Call

# A bit of `authorized operations` is the number of an operation; what is not told is the smallest number there is.
OPERATIONS = ("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION")
OPERATIONS += ("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS")
NOT_TOLD = -(2**31)


def topics(call: Call) -> dict[str, Any]:
    found = [described(call, topic) for topic in call.kafka.topics(None)]
    return call.listing("KafkaTopicList", found)


def topic(call: Call) -> dict[str, Any]:
    operations = call.query.get("include_authorized_operations") == "true"
    [found] = call.kafka.topics([call["topic_name"]], operations)
    return described(call, found)


def described(call: Call, topic: Any) -> dict[str, Any]:
    first = next((row for row in topic.partitions if row.partition_index == 0), None)
    more = {}
    if topic.topic_authorized_operations != NOT_TOLD:
        bits = topic.topic_authorized_operations
        more["authorized_operations"] = [name for bit, name in enumerate(OPERATIONS) if bits >> bit & 1]
    sizes = (len(first.replica_nodes) if first else 0, len(topic.partitions))
    return shown(call, topic.name, topic.is_internal, *sizes, **more)


def shown(call: Call, name: str, internal: bool, replicas: int, partitions: int, **more: Any) -> dict[str, Any]:
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
    body, only = call.body, call.body.get("validate_only", False)
    request = m.CreateTopicsRequest([_new(body)], timeout_ms=int(call.kafka.timeout_s * 1000), validate_only=only)
    [made] = call.kafka.send(request, CONTROLLER).topics
    found = shown(call, made.name, False, made.replication_factor, made.num_partitions)
    return Answer(200, found) if only else Answer(201, found, {"Location": call.url("topics", made.name)})


def _new(body: dict[str, Any]) -> m.CreateTopicsRequest_CreatableTopic:
    placed = [
        m.CreateTopicsRequest_CreatableReplicaAssignment(_partition(text), ids)
        for text, ids in body.get("replicas_assignments", {}).items()
    ]
    configs = [
        m.CreateTopicsRequest_CreatableTopicConfig(row["name"], row.get("value")) for row in body.get("configs", ())
    ]
    count, factor = (-1, -1) if placed else (body.get("partitions_count", -1), body.get("replication_factor", -1))
    return m.CreateTopicsRequest_CreatableTopic(body["topic_name"], count, factor, placed, configs)


def _partition(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) >= 2**31:
        raise HttpError(400, f"replicas_assignments: {text!r} is not the number of a partition.")
    return int(text)


def grow(call: Call) -> dict[str, Any]:
    row = m.CreatePartitionsRequest_CreatePartitionsTopic(call["topic_name"], call.body["partitions_count"], None)
    call.kafka.send(m.CreatePartitionsRequest([row], timeout_ms=int(call.kafka.timeout_s * 1000)), CONTROLLER)
    return topic(call)


def delete(call: Call) -> None:
    row = m.DeleteTopicsRequest_DeleteTopicState(call["topic_name"])
    names = {"topic_names": [call["topic_name"]]}  # for versions before 6
    call.kafka.send(m.DeleteTopicsRequest([row], **names, timeout_ms=int(call.kafka.timeout_s * 1000)), CONTROLLER)


ALL = "/v3/clusters/{cluster_id}/topics"
ONE = f"{ALL}/{{topic_name}}"
TOPICS = (
    Endpoint("GET", ALL, topics, "All topics.", "TopicList"),
    Endpoint("POST", ALL, create, "Create a topic, or see whether it could be.", "Topic", "NewTopic", 201, (200,)),
    Endpoint("GET", ONE, topic, "One topic.", "Topic", query=("include_authorized_operations",)),
    Endpoint("PATCH", ONE, grow, "Give a topic more partitions.", "Topic", "PartitionsCount"),
    Endpoint("DELETE", ONE, delete, "Delete a topic.", status=204),
)
