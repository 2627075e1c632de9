"""Topics that a query looks up or creates."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.admin.topics import NewTopic, create
from moldau.client import Client, ClientError, Error

PATIENCE_S = 15.0
REPLICATION = -1  # the broker's default


def partition_counts_of(client: Client) -> dict[str, int]:
    """Return the number of partitions of every topic."""
    cluster = client.refresh(None, timeout_s=PATIENCE_S)
    return {name: len(topic.partitions) for name, topic in cluster.topics.items()}


def create_topics(
    client: Client, wanted: Mapping[str, tuple[int, Mapping[str, str]]], replication: int = REPLICATION
) -> None:
    """Create topics, given the number of partitions and the settings of each."""
    if wanted:
        create(client, [NewTopic(topic, count, replication, settings) for topic, (count, settings) in wanted.items()])


def make_topic(client: Client, topic: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
    """Create a topic unless it exists."""
    try:
        create_topics(client, {topic: (partitions, settings or {})})
    except ClientError as error:
        if error.error is not Error.TOPIC_ALREADY_EXISTS:
            raise
