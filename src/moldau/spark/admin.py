"""Topics that a query looks for, or makes."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client import CONTROLLER, Client, ClientError, Error, check
from moldau.client import messages as m

PATIENCE_S = 15.0
REPLICATION = -1  # the broker's default


def partition_counts_of(client: Client) -> dict[str, int]:
    """Of all topics there are."""
    cluster = client.refresh(None, timeout_s=PATIENCE_S)
    return {name: len(topic.partitions) for name, topic in cluster.topics.items()}


def create_topics(
    client: Client, wanted: Mapping[str, tuple[int, Mapping[str, str]]], replication: int = REPLICATION
) -> None:
    """Makes topics: how many partitions each has, and its settings."""
    new = [
        m.CreateTopicsRequest_CreatableTopic(
            topic,
            num_partitions=count,
            replication_factor=replication,
            configs=[m.CreateTopicsRequest_CreatableTopicConfig(name, text) for name, text in settings.items()],
        )
        for topic, (count, settings) in wanted.items()
    ]
    if new:
        check(client.send(m.CreateTopicsRequest(new, timeout_ms=int(PATIENCE_S * 1000)), to=CONTROLLER))


def make_topic(client: Client, topic: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
    """Makes a topic, unless somebody else has done so meanwhile."""
    try:
        create_topics(client, {topic: (partitions, settings or {})})
    except ClientError as error:
        if error.error is not Error.TOPIC_ALREADY_EXISTS:
            raise
