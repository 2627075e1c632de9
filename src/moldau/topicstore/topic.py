"""The topic of a store: create it, or check that an existing one can serve."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client import CONTROLLER, Client, ClientError, Error, check
from moldau.client import messages as m

from .reader import StoreError

POLICY, COMPACT = "cleanup.policy", "compact"
TOPIC = 2  # a kind of resource
REPLICATION = -1  # the broker's default


def prepare(
    client: Client,
    topic: str,
    partitions: int = 1,
    settings: Mapping[str, str] | None = None,
    *,
    replicas: int = REPLICATION,
    advice: str = "",
    validate: bool = True,
) -> None:
    """Create a compacted topic unless it exists. StoreError, with the advice at its end, if an existing one would lose
    records or has several partitions where one is asked for."""
    if not exists(client, topic):
        create(client, topic, partitions, {POLICY: COMPACT, **(settings or {})}, replicas)
    elif validate:
        _validate(client, topic, partitions, advice)


def exists(client: Client, topic: str) -> bool:
    """Ask without creating it: a client that may create topics would create one that is not compacted."""
    asked = [m.MetadataRequest_MetadataRequestTopic(name=topic)]
    answer = client.send(m.MetadataRequest(asked, allow_auto_topic_creation=False))
    return not answer.topics[0].error_code


def create(client: Client, topic: str, partitions: int, settings: Mapping[str, str], replicas: int) -> None:
    """Create a topic, unless somebody else was quicker."""
    rows = [m.CreateTopicsRequest_CreatableTopicConfig(*pair) for pair in settings.items()]
    new = m.CreateTopicsRequest_CreatableTopic(topic, partitions, replicas, configs=rows)
    try:
        check(client.send(m.CreateTopicsRequest([new], client.config["request.timeout.ms"]), CONTROLLER))
    except ClientError as error:
        if error.error is not Error.TOPIC_ALREADY_EXISTS:
            raise


def settings_of(client: Client, topic: str, *names: str) -> dict[str, str]:
    """Return settings of a topic, without those that this client may not see."""
    resource = m.DescribeConfigsRequest_DescribeConfigsResource(TOPIC, topic, list(names))
    answer = client.send(m.DescribeConfigsRequest([resource]))
    return {row.name: row.value for result in answer.results for row in result.configs if row.value is not None}


def _validate(client: Client, topic: str, partitions: int, advice: str) -> None:
    count = len(client.topic(topic).partitions)
    if partitions == 1 and count != 1:
        raise StoreError(f"Topic {topic} has {count} partitions; it needs a single one{advice}.")
    policy = settings_of(client, topic, POLICY).get(POLICY, COMPACT)
    if policy != COMPACT:
        raise StoreError(f"Topic {topic} has {POLICY}={policy}, so records would be lost; set it to compact{advice}.")
