"""Partitions of a topic, their offsets, replicas and reassignments."""

from __future__ import annotations

from typing import Any

from moldau.admin import TopicPartition, reassignments
from moldau.admin import offsets as admin
from moldau.http import Endpoint, HttpError
from moldau.rest.endpoints import Call
from moldau.rest.errors import not_found

OFFSET_TYPES = {"earliest": admin.EARLIEST, "latest": admin.LATEST}


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
    wanted = call.query.get("offset_type")
    if wanted not in (None, *OFFSET_TYPES):
        raise HttpError(400, "offset_type is earliest or latest, or both if it is left out.")
    pair = (name, number)
    found = {
        f"{word}_offset": admin.one_time(call.kafka.client, [pair], time)[pair]
        for word, time in OFFSET_TYPES.items()
        if wanted in (None, word)
    }
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


def all_moves(call: Call) -> dict[str, Any]:
    rows = reassignments.listed(call.kafka.client).items()
    return call.listing("KafkaReassignmentList", [_move(call, *row) for row in rows])


def topic_moves(call: Call) -> dict[str, Any]:
    of_topic(call)
    rows = reassignments.listed(call.kafka.client).items()
    found = [_move(call, *row) for row in rows if row[0][0] == call["topic_name"]]
    return call.listing("KafkaReassignmentList", found)


def move(call: Call) -> dict[str, Any]:
    place = (call["topic_name"], of_path(call).partition_index)
    row = reassignments.listed(call.kafka.client).get(place)
    if row is None:
        raise not_found(f"A reassignment of partition {place[1]} of topic {place[0]}")
    return _move(call, place, row)


def _move(call: Call, place: TopicPartition, row: reassignments.Reassignment) -> dict[str, Any]:
    topic, number = place
    where = ("topics", topic, "partitions", number)
    return call.resource(
        "KafkaReassignment",
        (*where, "reassignment"),
        {"topic": topic, "partition": number, "reassignment": None},
        topic_name=topic,
        partition_id=number,
        adding_replicas=list(row.adding),
        removing_replicas=list(row.removing),
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
