"""Moves of partitions between brokers, and of replicas between directories: listed, begun, called off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.admin import TIMEOUT_MS, TopicPartition, topic_rows
from moldau.client import CONTROLLER, Client, ClientError, Error, Node, check
from moldau.client import messages as m

REFUSED = (Error.UNSUPPORTED_VERSION, Error.CLUSTER_AUTHORIZATION_FAILED)
Replica = tuple[str, int, int]  # topic, partition, broker
Outcome = tuple[Error, str | None]


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A move under way: all replicas of the partition, and which of them come and go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def listed(client: Client) -> dict[TopicPartition, Reassignment]:
    """List all moves under way; ClientError where the caller may not ask."""
    answer = check(client.send(m.ListPartitionReassignmentsRequest(TIMEOUT_MS), CONTROLLER))
    return {
        (topic.name, row.partition_index): Reassignment(
            tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
        )
        for topic in answer.topics
        for row in topic.partitions
    }


def known(client: Client) -> dict[TopicPartition, Reassignment]:
    """List moves as `listed` does; none where the caller may not ask, or the cluster has no such request."""
    try:
        return listed(client)
    except ClientError as error:
        if error.error in REFUSED:
            return {}
        raise


def alter(client: Client, wanted: Mapping[TopicPartition, Sequence[int] | None]) -> dict[TopicPartition, Outcome]:
    """Begin to move partitions to these brokers, where None calls a move off; return the outcome of each."""
    topic = m.AlterPartitionReassignmentsRequest_ReassignableTopic
    row = m.AlterPartitionReassignmentsRequest_ReassignablePartition
    replicas = {place: None if brokers is None else list(brokers) for place, brokers in wanted.items()}
    topics = topic_rows(topic, row, replicas)
    answer = client.send(m.AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics), CONTROLLER)
    if answer.error_code:
        check(answer)
    return {
        (topic.name, row.partition_index): (Error(row.error_code), row.error_message)
        for topic in answer.responses
        for row in topic.partitions
    }


def move_replicas(client: Client, wanted: Mapping[Replica, str]) -> dict[Replica, Error]:
    """Begin to move replicas to these directories of their brokers; return the outcome of each."""
    found: dict[Replica, Error] = {}
    for (topic, partition, broker), path in wanted.items():
        row = m.AlterReplicaLogDirsRequest_AlterReplicaLogDirTopic(topic, [partition])
        request = m.AlterReplicaLogDirsRequest([m.AlterReplicaLogDirsRequest_AlterReplicaLogDir(path, [row])])
        answer = client.send(request, Node(broker))
        found[topic, partition, broker] = Error(answer.results[0].partitions[0].error_code)
    return found
