"""CreateTopics (key 19), v2-7: new topics, by counts or by a manual assignment.

v5 tells the resulting settings (KIP-525).  v7 topic ids.
Deviates: nothing known.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau import settings as table
from moldau.broker.api import Answer, Connection, api
from moldau.broker.metadata import Proposal
from moldau.broker.node import Node
from moldau.broker.topics import plan_topic
from moldau.machines.metadata.topics import METADATA_TOPIC, NewTopic
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(19, versions=(2, 7))
async def create_topics(node: Node, connection: Connection, request: m.CreateTopicsRequest, version: int) -> Answer:
    counts, proposal = Counter(topic.name for topic in request.topics), node.metadata.propose()
    asked = [topic for topic in request.topics if counts[topic.name] == 1]
    rows = [create(node, proposal, topic, request.validate_only) for topic in asked]
    rows += [
        refusal(name, Refused(Error.INVALID_REQUEST, f"The request names topic '{name}' {count} times."))
        for name, count in counts.items()
        if count > 1
    ]
    return await proposal.answer(m.CreateTopicsResponse(topics=rows), rows)


def create(node: Node, proposal: Proposal, asked: Any, validate_only: bool) -> Any:
    try:
        new = new_topic(asked)
        records = plan_topic(node, proposal.image, new)
    except Refused as refused:
        return refusal(asked.name, refused)
    if not validate_only:
        proposal.add(records)
    partitions = [record for record in records if record.SCHEMA.name == "PartitionRecord"]
    return m.CreateTopicsResponse_CreatableTopicResult(
        name=new.name,
        topic_id=records[0].topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=[
            m.CreateTopicsResponse_CreatableTopicConfigs(row.name, row.value, row.read_only, row.source, row.sensitive)
            for row in table.describe(table.TOPIC, node.settings, new.configs)
        ],
    )


def new_topic(asked: Any) -> NewTopic:
    """Turn the request's row into a command; raises Refused where it contradicts itself."""
    if asked.name == METADATA_TOPIC:
        raise Refused(Error.INVALID_REQUEST, "The topic of the cluster's metadata is not created by clients.")
    assignment = {row.partition_index: list(row.broker_ids) for row in asked.assignments}
    if len(assignment) != len(asked.assignments):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, "The assignment names a partition twice.")
    configs = {row.name: row.value for row in asked.configs}
    missing = [name for name, value in configs.items() if value is None]
    if missing:
        raise Refused(Error.INVALID_CONFIG, f"The setting {missing[0]} has no value.")
    return NewTopic(asked.name, asked.num_partitions, asked.replication_factor, assignment, configs)


def refusal(name: str, refused: Refused) -> Any:
    return m.CreateTopicsResponse_CreatableTopicResult(
        name=name, error_code=refused.error, error_message=refused.message, configs=[]
    )
