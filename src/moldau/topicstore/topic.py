"""The topic of a store: create it, or check that an existing one can serve."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from moldau.admin import configs, topics
from moldau.client import Client, ClientError, Error

from .reader import StoreError

log = logging.getLogger(__name__)
POLICY, COMPACT = "cleanup.policy", "compact"
LOOK_EVERY_S = 1.0
API_TIMEOUT_MS = "5000"  # of a look, after which whoever waits may stop


def prepare(
    client: Client,
    topic: str,
    partitions: int = 1,
    settings: Mapping[str, str] | None = None,
    *,
    replicas: int = topics.DEFAULT,
    advice: str = "",
    validate: bool = True,
) -> None:
    """Create a compacted topic unless it exists. StoreError, with the advice at its end, if an existing one would lose
    records or has several partitions where one is asked for."""
    if not exists(client, topic):
        create(client, topics.NewTopic(topic, partitions, replicas, {POLICY: COMPACT, **(settings or {})}))
    elif validate:
        _validate(client, topic, partitions, advice)


def exists(client: Client, topic: str) -> bool:
    """Ask without creating it: a client that may create topics would create one that is not compacted."""
    try:
        topics.described(client, [topic])
    except ClientError as error:
        if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return False
    return True


def await_topic(settings: Mapping[str, str], topic: str, is_stopped: Callable[[float], bool]) -> bool:
    """Wait until a topic exists; False if `is_stopped`, which waits for so many seconds, returns true before."""
    return await_use(settings, lambda client: exists(client, topic), is_stopped)


def await_use(
    settings: Mapping[str, str], is_used: Callable[[Client], bool], is_stopped: Callable[[float], bool]
) -> bool:
    """Wait until something in the cluster is there; False if `is_stopped` returns true before.

    What cannot be asked for is left to whoever needs it, who will say why.
    """
    with Client({**settings, "default.api.timeout.ms": API_TIMEOUT_MS}) as client:
        while True:
            try:
                if is_used(client):
                    return True
            except ClientError as error:
                if not error.retriable:
                    return True
                log.warning("The cluster is away: %s", error)
            if is_stopped(LOOK_EVERY_S):
                return False


def create(client: Client, new: topics.NewTopic) -> None:
    """Create a topic, unless somebody else was quicker."""
    try:
        topics.create(client, [new])
    except ClientError as error:
        if error.error is not Error.TOPIC_ALREADY_EXISTS:
            raise


def settings_of(client: Client, topic: str, *names: str) -> dict[str, str]:
    """Return settings of a topic, without those that this client may not see."""
    try:
        entries = configs.described(client, configs.Resource(configs.Kind.TOPIC, topic), names)
    except ClientError as error:
        if error.answer is None:
            raise
        entries = []
    return {entry.name: entry.value for entry in entries if entry.value is not None}


def _validate(client: Client, topic: str, partitions: int, advice: str) -> None:
    count = len(client.topic(topic).partitions)
    if partitions == 1 and count != 1:
        raise StoreError(f"Topic {topic} has {count} partitions; it needs a single one{advice}.")
    policy = settings_of(client, topic, POLICY).get(POLICY, COMPACT)
    if policy != COMPACT:
        raise StoreError(f"Topic {topic} has {POLICY}={policy}, so records would be lost; set it to compact{advice}.")
