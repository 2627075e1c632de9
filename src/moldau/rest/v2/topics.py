"""Topics, partitions, offsets and brokers, as version 2 shows them."""

from __future__ import annotations

from typing import Any

from moldau.admin import configs
from moldau.admin import offsets as admin
from moldau.client import ClientError, Error
from moldau.http import Endpoint
from moldau.rest import media
from moldau.rest.endpoints import Call
from moldau.rest.errors import PARTITION_NOT_FOUND, TOPIC_NOT_FOUND, refusal


def nothing(call: Call) -> dict[str, Any]:
    return {}


def brokers(call: Call) -> dict[str, Any]:
    return {"brokers": sorted(call.kafka.client.refresh().brokers)}


def topics(call: Call) -> list[str]:
    return [topic.name for topic in call.kafka.topics(None)]


def _partitions(call: Call) -> list[Any]:
    try:
        [topic] = call.kafka.topics([call["topic_name"]])
    except ClientError as error:
        if error.error in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.INVALID_TOPIC_EXCEPTION):
            raise refusal(TOPIC_NOT_FOUND) from None
        raise
    return sorted(topic.partitions, key=lambda row: row.partition_index)


def _partition(call: Call) -> Any:
    for row in _partitions(call):
        if row.partition_index == call["partition_id"]:
            return row
    raise refusal(PARTITION_NOT_FOUND)


def _as_json(row: Any) -> dict[str, Any]:
    replicas = [
        {"broker": broker, "leader": broker == row.leader_id, "in_sync": broker in row.isr_nodes}
        for broker in row.replica_nodes
    ]
    return {"partition": row.partition_index, "leader": row.leader_id, "replicas": replicas}


def topic(call: Call) -> dict[str, Any]:
    rows = _partitions(call)
    entries = configs.described(call.kafka.client, configs.Resource(configs.Kind.TOPIC, call["topic_name"]))
    settings = {entry.name: entry.value for entry in entries}
    return {"name": call["topic_name"], "configs": settings, "partitions": [_as_json(row) for row in rows]}


def partitions(call: Call) -> list[dict[str, Any]]:
    return [_as_json(row) for row in _partitions(call)]


def partition(call: Call) -> dict[str, Any]:
    return _as_json(_partition(call))


def offsets(call: Call) -> dict[str, Any]:
    pair = (call["topic_name"], _partition(call).partition_index)
    first, end = admin.ends(call.kafka.client, [pair])[pair]
    return {"beginning_offset": first, "end_offset": end}


def _get(path: str, run: Any, doc: str, gives: str) -> Endpoint:
    return Endpoint("GET", path, run, doc, gives, produces=media.V2)


ONE = "/topics/{topic_name}"
TOPICS = (
    _get("/", nothing, "An empty document: the proxy is there.", "Nothing"),
    Endpoint("POST", "/", nothing, "The same.", "Nothing", produces=media.V2),
    _get("/brokers", brokers, "The numbers of all brokers.", "V2Brokers"),
    _get("/topics", topics, "The names of all topics.", "Names"),
    _get(ONE, topic, "A topic with its settings and partitions.", "V2Topic"),
    _get(f"{ONE}/partitions", partitions, "Partitions of a topic.", "V2PartitionStates"),
    _get(f"{ONE}/partitions/{{partition_id}}", partition, "One partition.", "V2PartitionState"),
    _get(f"{ONE}/partitions/{{partition_id}}/offsets", offsets, "Where it begins and ends.", "V2OffsetRange"),
)
