"""Guards of the APIs on topics and their records: each topic is asked for by itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau.broker.api import Answer
from moldau.broker.authorization import DENIED, Call, refuse_all, split
from moldau.broker.authorization.whole import guard
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

NO_TOPIC = DENIED[TOPIC]
NO_ID = bytes(16)
IDS_SINCE = 12  # the version of Metadata from which topics may be asked for by id
ATTRIBUTES_AT = 22  # in a batch, the low byte


@guard(0)
def produce(call: Call[m.ProduceRequest]) -> Answer:
    request, asked = call.request, len(call.request.topic_data)
    is_barred = is_transactional(request) and not call.may(WRITE, TRANSACTIONAL_ID, request.transactional_id or "")
    outcome = call.withhold(
        "topic_data",
        "responses",
        lambda topic: not is_barred and call.may_topic(WRITE, topic.name, topic.topic_id),
        DENIED[TRANSACTIONAL_ID if is_barred else TOPIC],
        base_offset=-1,
        error_message=None,
    )
    if request.acks == 0 and len(request.topic_data) < asked:
        call.connection.closing = "a produce request with acks=0 was not allowed"
    return outcome


def is_transactional(request: m.ProduceRequest) -> bool:
    """Tell whether any batch is transactional: as in Kafka, the request's transactional id does not count."""
    return any(
        len(part.records) > ATTRIBUTES_AT and part.records[ATTRIBUTES_AT] & TRANSACTIONAL
        for topic in request.topic_data
        for part in topic.partition_data
        if part.records
    )


@guard(1)
def fetch(call: Call[m.FetchRequest]) -> Answer:
    """Forward: the handler asks itself, since a session remembers partitions that the request does not name."""
    return call.forward()


@guard(2)
def list_offsets(call: Call[m.ListOffsetsRequest]) -> Answer:
    return call.withhold("topics", "topics", lambda topic: call.may(DESCRIBE, TOPIC, topic.name))


@guard(3)
def metadata(call: Call[m.MetadataRequest]) -> Answer:
    """Of all topics those that may not be described are left out; a topic that was asked for is refused."""
    request = call.request
    hidden: list[Any] = []
    everything = request.topics is None or (call.version == 0 and not request.topics)
    if not everything:
        request.topics, hidden = split(request.topics or (), lambda topic: may_look_up(call, topic))

    def finish(response: m.MetadataResponse) -> Any:
        shown = response.topics
        if everything:
            shown = [row for row in shown if call.may(DESCRIBE, TOPIC, row.name or "")]
        elif not request.topics:
            shown = []  # in version 0 no names ask for all
        unique = {(topic.name, topic.topic_id): topic for topic in hidden}.values()
        response.topics = [*shown, *refuse_all(m.MetadataResponse, "topics", unique, NO_TOPIC)]
        for row in response.topics:
            if row.topic_authorized_operations != NOT_ASKED:
                row.topic_authorized_operations = call.allowed(TOPIC, row.name or "")
        return reveal_operations(call, response)

    return call.forward(finish)


def may_look_up(call: Call[m.MetadataRequest], topic: m.MetadataRequest_MetadataRequestTopic) -> bool:
    """Tell whether the client may describe a topic and, if the request would create it, create it."""
    if topic.name is None and call.version < IDS_SINCE:
        return True  # it is refused for that, and a refusal by its name could not be written
    if not call.may_topic(DESCRIBE, topic.name, topic.topic_id):
        return False
    request, node = call.request, call.node
    creates = request.allow_auto_topic_creation and node.settings["auto.create.topics.enable"]
    if not creates or not topic.name or topic.topic_id != NO_ID or topic.name in node.cluster.topics:
        return True
    return call.may(CREATE) or call.may(CREATE, TOPIC, topic.name)


def reveal_operations(call: Call[Any], response: Any) -> Any:
    """Fill in what the client may do with the cluster, where it asked for that."""
    if response.cluster_authorized_operations != NOT_ASKED:
        response.cluster_authorized_operations = call.allowed(CLUSTER) if call.may(DESCRIBE) else 0
    return response


@guard(19)
def create_topics(call: Call[m.CreateTopicsRequest]) -> Answer:
    """Of a topic whose settings may not be described none are told."""
    counts = Counter(topic.name for topic in call.request.topics)
    everything = call.may(CREATE)

    def may(topic: Any) -> bool:
        told_otherwise = topic.name == METADATA_TOPIC or counts[topic.name] > 1
        return everything or told_otherwise or call.may(CREATE, TOPIC, topic.name)

    call.request.topics, refused = split(call.request.topics, may)

    def finish(response: m.CreateTopicsResponse) -> Any:
        for row in response.topics:
            if row.error_code == Error.NONE and not call.may(DESCRIBE_CONFIGS, TOPIC, row.name):
                row.topic_config_error_code, row.configs = NO_TOPIC, []
                row.num_partitions = row.replication_factor = -1
        denied = refuse_all(m.CreateTopicsResponse, "topics", refused, NO_TOPIC, configs=[])
        response.topics = [*response.topics, *denied]
        return response

    return call.forward(finish)


@guard(20)
def delete_topics(call: Call[m.DeleteTopicsRequest]) -> Answer:
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

    def denied(name: str | None, topic_id: bytes) -> Any:
        topic = call.node.cluster.topics_by_id.get(topic_id)
        shown = topic.name if topic is not None and call.may(DESCRIBE, TOPIC, topic.name) else name
        return m.DeleteTopicsResponse_DeletableTopicResult(shown, topic_id, NO_TOPIC, NO_TOPIC.message)

    refused = [key for key in counts if not may(key)]
    request.topics = [topic for topic in request.topics if (topic.name, topic.topic_id) not in refused]
    request.topic_names = [name for name in request.topic_names if (name, NO_ID) not in refused]

    def add(response: m.DeleteTopicsResponse) -> Any:
        response.responses = [*response.responses, *(denied(*key) for key in refused)]
        return response

    return call.forward(add if refused else None)


@guard(21)
def delete_records(call: Call[m.DeleteRecordsRequest]) -> Answer:
    return call.withhold("topics", "topics", lambda topic: call.may(DELETE, TOPIC, topic.name), low_watermark=-1)


@guard(23)
def offset_for_leader_epoch(call: Call[m.OffsetForLeaderEpochRequest]) -> Answer:
    """Replicas act for the cluster, others read about topics."""
    acts = call.may(CLUSTER_ACTION)
    return call.withhold("topics", "topics", lambda topic: acts or call.may(DESCRIBE, TOPIC, topic.topic))


@guard(37)
def create_partitions(call: Call[m.CreatePartitionsRequest]) -> Answer:
    counts = Counter(topic.name for topic in call.request.topics)
    return call.withhold(
        "topics", "results", lambda topic: counts[topic.name] > 1 or call.may(ALTER, TOPIC, topic.name)
    )


@guard(60)
def describe_cluster(call: Call[m.DescribeClusterRequest]) -> Answer:
    return call.forward(lambda response: reveal_operations(call, response))


@guard(61)
def describe_producers(call: Call[m.DescribeProducersRequest]) -> Answer:
    return call.withhold(
        "topics", "topics", lambda topic: not is_legal(topic.name) or call.may(READ, TOPIC, topic.name)
    )


@guard(75)
def describe_topic_partitions(call: Call[m.DescribeTopicPartitionsRequest]) -> Answer:
    """What may not be described does not count towards a page. Of all topics it is left out, otherwise refused."""
    request, cursor = call.request, call.request.cursor
    asked = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)):
        return call.forward()  # the handler refuses it
    first = cursor.topic_name if cursor is not None else ""
    names = sorted(name for name in asked or call.node.cluster.topics if name >= first)
    shown, hidden = split(names, lambda name: call.may(DESCRIBE, TOPIC, name))
    denied = refuse_all(m.DescribeTopicPartitionsResponse, "topics", hidden if asked else (), NO_TOPIC)
    if not shown:
        return m.DescribeTopicPartitionsResponse(topics=denied)
    request.topics = [m.DescribeTopicPartitionsRequest_TopicRequest(name) for name in shown]
    if shown[0] != first:
        request.cursor = None

    def finish(response: m.DescribeTopicPartitionsResponse) -> Any:
        for topic in response.topics:
            topic.topic_authorized_operations = call.allowed(TOPIC, topic.name or "")
        response.topics = [*response.topics, *denied]
        return response

    return call.forward(finish)
