"""Partitions of a topic, their offsets, replicas and reassignments."""

from __future__ import annotations

from typing import Any

from moldau.client import CONTROLLER
from moldau.client import messages as m
from moldau.http import Endpoint, HttpError
from moldau.rest.endpoints import Call
from moldau.rest.errors import not_found

OFFSET_TYPES = {None: ("earliest", "latest"), "earliest": ("earliest",), "latest": ("latest",)}


def of_topic(call: Call) -> list[Any]:
    [topic] = call.kafka.topics([call["topic_name"]])
    return sorted(topic.partitions, key=lambda row: row.partition_index)


def of_path(call: Call) -> Any:
    for row in of_topic(call):
        if row.partition_index == call["partition_id"]:
            return row
    raise not_found(f"Partition {call['partition_id']} of topic {call['topic_name']}")


def partitions(call: Call) -> dict[str, Any]:
    return call.listing("KafkaPartitionList", [_partition(call, row) for row in of_topic(call)])


def partition(call: Call) -> dict[str, Any]:
    return _partition(call, of_path(call))


def _partition(call: Call, row: Any) -> dict[str, Any]:
    where = ("topics", call["topic_name"], "partitions", row.partition_index)
    known = {"leader": call.link(*where, "replicas", row.leader_id)} if row.leader_id >= 0 else {}
    return call.resource(
        "KafkaPartition",
        where,
        {"topic": call["topic_name"], "partition": row.partition_index},
        topic_name=call["topic_name"],
        partition_id=row.partition_index,
        **known,
        replicas=call.link(*where, "replicas"),
        reassignment=call.link(*where, "reassignment"),
    )


def offsets(call: Call) -> dict[str, Any]:
    name, number = call["topic_name"], of_path(call).partition_index
    wanted = OFFSET_TYPES.get(call.query.get("offset_type"))
    if wanted is None:
        raise HttpError(400, "offset_type is earliest or latest, or both if it is left out.")
    pair = (name, number)
    found = {f"{word}_offset": call.kafka.offsets([pair], latest=word == "latest")[pair] for word in wanted}
    return call.resource(
        "KafkaPartitionWithOffsets",
        ("topics", name, "partitions", number, "offset"),
        {"topic": name, "partition": number, "offset": None},
        topic_name=name,
        partition_id=number,
        **found,
    )


def replicas(call: Call) -> dict[str, Any]:
    row = of_path(call)
    found = [replica(call, call["topic_name"], row, broker) for broker in row.replica_nodes]
    return call.listing("KafkaReplicaList", found)


def one_replica(call: Call) -> dict[str, Any]:
    row = of_path(call)
    if call["broker_id"] not in row.replica_nodes:
        raise not_found(f"Replica {call['broker_id']} of partition {row.partition_index}")
    return replica(call, call["topic_name"], row, call["broker_id"])


def replica(call: Call, topic: str, row: Any, broker: int) -> dict[str, Any]:
    number = row.partition_index
    return call.resource(
        "KafkaReplica",
        ("topics", topic, "partitions", number, "replicas", broker),
        {"topic": topic, "partition": number, "replica": broker},
        topic_name=topic,
        partition_id=number,
        broker_id=broker,
        is_leader=broker == row.leader_id,
        is_in_sync=broker in row.isr_nodes,
        broker=call.link("brokers", broker),
    )


def moves(call: Call, topics: list[Any] | None) -> list[dict[str, Any]]:
    request = m.ListPartitionReassignmentsRequest(int(call.kafka.timeout_s * 1000), topics)
    answer = call.kafka.send(request, CONTROLLER)
    return [_move(call, topic.name, row) for topic in answer.topics for row in topic.partitions]


def all_moves(call: Call) -> dict[str, Any]:
    return call.listing("KafkaReassignmentList", moves(call, None))


def topic_moves(call: Call) -> dict[str, Any]:
    numbers = [row.partition_index for row in of_topic(call)]
    return call.listing("KafkaReassignmentList", moves(call, [_asked(call["topic_name"], numbers)]))


def move(call: Call) -> dict[str, Any]:
    number = of_path(call).partition_index
    for found in moves(call, [_asked(call["topic_name"], [number])]):
        return found
    raise not_found(f"A reassignment of partition {number} of topic {call['topic_name']}")


def _asked(topic: str, numbers: list[int]) -> m.ListPartitionReassignmentsRequest_ListPartitionReassignmentsTopics:
    return m.ListPartitionReassignmentsRequest_ListPartitionReassignmentsTopics(topic, numbers)


def _move(call: Call, topic: str, row: Any) -> dict[str, Any]:
    where = ("topics", topic, "partitions", row.partition_index)
    return call.resource(
        "KafkaReassignment",
        (*where, "reassignment"),
        {"topic": topic, "partition": row.partition_index, "reassignment": None},
        topic_name=topic,
        partition_id=row.partition_index,
        adding_replicas=list(row.adding_replicas),
        removing_replicas=list(row.removing_replicas),
        replicas=call.link(*where, "replicas"),
    )


TOPICS = "/v3/clusters/{cluster_id}/topics"
ALL = f"{TOPICS}/{{topic_name}}/partitions"
ONE = f"{ALL}/{{partition_id}}"
PARTITIONS = (
    Endpoint("GET", ALL, partitions, "Partitions of a topic.", "PartitionList"),
    Endpoint("GET", ONE, partition, "One partition.", "Partition"),
    Endpoint("GET", f"{ONE}/offset", offsets, "Where it begins and ends.", "PartitionOffsets", query=("offset_type",)),
    Endpoint("GET", f"{ONE}/replicas", replicas, "Replicas of a partition.", "ReplicaList"),
    Endpoint("GET", f"{ONE}/replicas/{{broker_id}}", one_replica, "One replica.", "Replica"),
    Endpoint("GET", f"{ONE}/reassignment", move, "Where a partition moves to.", "Reassignment"),
    Endpoint("GET", f"{ALL}/-/reassignment", topic_moves, "Partitions of a topic that move.", "ReassignmentList"),
    Endpoint(
        "GET", f"{TOPICS}/-/partitions/-/reassignment", all_moves, "All partitions that move.", "ReassignmentList"
    ),
)
