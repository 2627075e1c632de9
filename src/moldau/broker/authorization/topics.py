"""Guards of the APIs on topics and their records: each topic is asked for by itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau.broker.authorization import Call, guard, split
from moldau.broker.operations import NOT_ASKED
from moldau.machines.metadata.acls import (
    ALTER,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from moldau.machines.metadata.topics import METADATA_TOPIC, is_legal
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import TRANSACTIONAL

DENIED = Error.TOPIC_AUTHORIZATION_FAILED
NO_ID = bytes(16)
ATTRIBUTES_AT = 22  # in a batch, the low byte


@guard(0)
def produce(call: Call) -> Any:
    request, denied = call.request, produce_denied
    if is_transactional(request) and not call.may(WRITE, TRANSACTIONAL_ID, request.transactional_id or ""):
        error = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        kept, refused = [], [(topic, error) for topic in request.topic_data]
    else:
        kept, unwritable = split(request.topic_data, lambda topic: call.may_topic(WRITE, topic.name, topic.topic_id))
        refused = [(topic, DENIED) for topic in unwritable]
    if not refused:
        return call.forward()
    request.topic_data = kept

    def add(response: Any) -> Any:
        response.responses = [*response.responses, *(denied(*pair) for pair in refused)]
        return response

    if request.acks == 0:
        outcome = call.forward()
        call.connection.closing = "a produce request with acks=0 was not allowed"
        return outcome
    return call.forward(add)


def is_transactional(request: Any) -> bool:
    """As Kafka has it: what counts is whether a batch is, not whether the request has a transactional id."""
    return any(
        len(part.records) > ATTRIBUTES_AT and part.records[ATTRIBUTES_AT] & TRANSACTIONAL
        for topic in request.topic_data
        for part in topic.partition_data
        if part.records
    )


def produce_denied(topic: Any, error: Error) -> Any:
    rows = [m.ProduceResponse_PartitionProduceResponse(part.index, error, -1) for part in topic.partition_data]
    for row in rows:
        row.error_message = None
    return m.ProduceResponse_TopicProduceResponse(topic.name, topic.topic_id, rows)


@guard(1)
def fetch(call: Call) -> Any:
    """Looks for itself, since a session remembers partitions that the request does not name."""
    return call.forward()


@guard(2)
def list_offsets(call: Call) -> Any:
    def denied(topic: Any) -> Any:
        row = m.ListOffsetsResponse_ListOffsetsPartitionResponse
        rows = [row(part.partition_index, DENIED) for part in topic.partitions]
        return m.ListOffsetsResponse_ListOffsetsTopicResponse(topic.name, rows)

    return call.withhold("topics", "topics", lambda topic: call.may(DESCRIBE, TOPIC, topic.name), denied)


@guard(3)
def metadata(call: Call) -> Any:
    """Of all topics those that may not be described are left out; a topic that was asked for is refused."""
    request = call.request
    hidden: list[Any] = []
    everything = request.topics is None or (call.version == 0 and not request.topics)
    if not everything:
        request.topics, hidden = split(request.topics or (), lambda topic: may_look_up(call, topic))

    def finish(response: Any) -> Any:
        if everything:
            response.topics = [row for row in response.topics if call.may(DESCRIBE, TOPIC, row.name)]
        elif not request.topics:
            response.topics = []  # in version 0 no names ask for all
        response.topics = [*response.topics, *(unlisted(topic) for topic in unique(hidden))]
        reveal_operations(call, response)
        return response

    return call.forward(finish)


def may_look_up(call: Call, topic: Any) -> bool:
    """A topic that the request would create must also be allowed to be created."""
    if not call.may_topic(DESCRIBE, topic.name, topic.topic_id):
        return False
    request, node = call.request, call.node
    creates = request.allow_auto_topic_creation and node.settings["auto.create.topics.enable"]
    if not creates or not topic.name or topic.topic_id != NO_ID or topic.name in node.cluster.topics:
        return True
    return call.may(CREATE) or call.may(CREATE, TOPIC, topic.name)


def unique(topics: list[Any]) -> list[Any]:
    return list({(topic.name, topic.topic_id): topic for topic in topics}.values())


def unlisted(topic: Any) -> Any:
    return m.MetadataResponse_MetadataResponseTopic(DENIED, topic.name, topic.topic_id)


def reveal_operations(call: Call, response: Any) -> None:
    """Authorized operations, where they were asked for, by the client's permissions."""
    if response.cluster_authorized_operations != NOT_ASKED:
        response.cluster_authorized_operations = call.allowed(CLUSTER) if call.may(DESCRIBE) else 0
    for row in response.topics:
        if row.topic_authorized_operations != NOT_ASKED:
            row.topic_authorized_operations = call.allowed(TOPIC, row.name)


@guard(19)
def create_topics(call: Call) -> Any:
    """Of a topic whose settings may not be described none are told."""
    counts = Counter(topic.name for topic in call.request.topics)
    everything = call.may(CREATE)

    def may(topic: Any) -> bool:
        told_otherwise = topic.name == METADATA_TOPIC or counts[topic.name] > 1
        return everything or told_otherwise or call.may(CREATE, TOPIC, topic.name)

    def denied(topic: Any) -> Any:
        return m.CreateTopicsResponse_CreatableTopicResult(
            name=topic.name, error_code=DENIED, error_message=DENIED.message, configs=[]
        )

    kept, refused = split(call.request.topics, may)
    call.request.topics = kept

    def finish(response: Any) -> Any:
        for row in response.topics:
            if row.error_code == Error.NONE and not call.may(DESCRIBE_CONFIGS, TOPIC, row.name):
                row.topic_config_error_code, row.configs = DENIED, []
                row.num_partitions = row.replication_factor = -1
        response.topics = [*response.topics, *map(denied, refused)]
        return response

    return call.forward(finish)


@guard(20)
def delete_topics(call: Call) -> Any:
    """Whether a topic exists is told only to those who may describe it."""
    if call.may(DELETE) or not call.node.settings["delete.topic.enable"]:
        return call.forward()
    request, known = call.request, call.node.cluster.topics
    asked = [(topic.name, topic.topic_id) for topic in request.topics] + [(n, NO_ID) for n in request.topic_names]

    counts = Counter(asked)

    def may(key: tuple[str | None, bytes]) -> bool:
        name, topic_id = key
        if (name is None) == (topic_id == NO_ID) or counts[key] > 1:
            return True  # the handler refuses it
        if name is not None and not call.may(DESCRIBE, TOPIC, name):
            return False
        return (name is not None and name not in known) or call.may_topic(DELETE, name, topic_id)

    def denied(key: tuple[str | None, bytes]) -> Any:
        topic = call.node.cluster.topics_by_id.get(key[1])
        shown = topic.name if topic is not None and call.may(DESCRIBE, TOPIC, topic.name) else key[0]
        return m.DeleteTopicsResponse_DeletableTopicResult(shown, key[1], DENIED, DENIED.message)

    refused = {key for key in asked if not may(key)}
    request.topics = [topic for topic in request.topics if (topic.name, topic.topic_id) not in refused]
    request.topic_names = [name for name in request.topic_names if (name, NO_ID) not in refused]

    def add(response: Any) -> Any:
        response.responses = [*response.responses, *(denied(key) for key in dict.fromkeys(asked) if key in refused)]
        return response

    return call.forward(add if refused else None)


@guard(21)
def delete_records(call: Call) -> Any:
    def denied(topic: Any) -> Any:
        row = m.DeleteRecordsResponse_DeleteRecordsPartitionResult
        rows = [row(part.partition_index, -1, DENIED) for part in topic.partitions]
        return m.DeleteRecordsResponse_DeleteRecordsTopicResult(topic.name, rows)

    return call.withhold("topics", "topics", lambda topic: call.may(DELETE, TOPIC, topic.name), denied)


@guard(23)
def offset_for_leader_epoch(call: Call) -> Any:
    """Replicas act for the cluster, others read about topics."""

    def denied(topic: Any) -> Any:
        row = m.OffsetForLeaderEpochResponse_EpochEndOffset
        rows = [row(error_code=DENIED, partition=part.partition) for part in topic.partitions]
        return m.OffsetForLeaderEpochResponse_OffsetForLeaderTopicResult(topic.topic, rows)

    if call.may(CLUSTER_ACTION):
        return call.forward()
    return call.withhold("topics", "topics", lambda topic: call.may(DESCRIBE, TOPIC, topic.topic), denied)


@guard(37)
def create_partitions(call: Call) -> Any:
    counts = Counter(topic.name for topic in call.request.topics)

    def may(topic: Any) -> bool:
        return counts[topic.name] > 1 or call.may(ALTER, TOPIC, topic.name)

    def denied(topic: Any) -> Any:
        return m.CreatePartitionsResponse_CreatePartitionsTopicResult(topic.name, DENIED, DENIED.message)

    return call.withhold("topics", "results", may, denied)


@guard(60)
def describe_cluster(call: Call) -> Any:
    def finish(response: Any) -> Any:
        if response.cluster_authorized_operations != NOT_ASKED:
            response.cluster_authorized_operations = call.allowed(CLUSTER) if call.may(DESCRIBE) else 0
        return response

    return call.forward(finish)


@guard(61)
def describe_producers(call: Call) -> Any:
    def may(topic: Any) -> bool:
        return not is_legal(topic.name) or call.may(READ, TOPIC, topic.name)

    def denied(topic: Any) -> Any:
        row = m.DescribeProducersResponse_PartitionResponse
        rows = [row(index, DENIED, DENIED.message) for index in topic.partition_indexes]
        return m.DescribeProducersResponse_TopicResponse(topic.name, rows)

    return call.withhold("topics", "topics", may, denied)


@guard(75)
def describe_topic_partitions(call: Call) -> Any:
    """What may not be described does not count towards a page. Of all topics it is left out, else refused."""
    request, cursor = call.request, call.request.cursor
    asked = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)):
        return call.forward()  # the handler refuses it
    first = cursor.topic_name if cursor is not None else ""
    names = sorted(name for name in asked or call.node.cluster.topics if name >= first)
    shown, hidden = split(names, lambda name: call.may(DESCRIBE, TOPIC, name))
    row = m.DescribeTopicPartitionsResponse_DescribeTopicPartitionsResponseTopic
    denied = [row(error_code=DENIED, name=name) for name in hidden if asked]
    if not shown:
        return m.DescribeTopicPartitionsResponse(topics=denied)
    request.topics = [m.DescribeTopicPartitionsRequest_TopicRequest(name) for name in shown]
    if shown[0] != first:
        request.cursor = None

    def finish(response: Any) -> Any:
        for topic in response.topics:
            topic.topic_authorized_operations = call.allowed(TOPIC, topic.name)
        response.topics = [*response.topics, *denied]
        return response

    return call.forward(finish)
