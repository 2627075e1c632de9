"""The partitions of a subscription, and their offsets: first, last, or by time."""

from __future__ import annotations

import base64
import time
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from moldau.admin.offsets import list_offsets
from moldau.client import Client, ClientError, Cluster, Error
from moldau.spark.options import OptionError
from moldau.spark.source.options import EARLIEST, LATEST, Bound, Subscription
from moldau.spark.source.planning import TopicPartition

FRESH_S = 1.0  # how long cached topic metadata is trusted
PAUSE_S = 0.05  # between two looks for the end of transactions
NO_ID = bytes(16)


class Topics:
    """The partitions of a subscription, looked up repeatedly, so that new ones are found."""

    def __init__(self, client: Client, subscription: Subscription) -> None:
        self.client = client
        self.subscription = subscription
        self._asked_at = float("-inf")
        self._cluster = Cluster()

    def partitions(self, timeout_s: float) -> tuple[list[TopicPartition], dict[str, str]]:
        """Return all current partitions and the ids of their topics; wait so long, or less if the client says so."""
        if time.monotonic() - self._asked_at > FRESH_S:
            limit = min(timeout_s, self.client.config.seconds("default.api.timeout.ms"))
            self._cluster = self.client.refresh(self._names(), timeout_s=limit)
            self._asked_at = time.monotonic()
        return choose(self._cluster, self.subscription)

    def check(self, known: Collection[str] = ()) -> None:
        """Raise OptionError if a named topic does not exist; `known` ones may be gone."""
        missing = [name for name in self._names() or () if name not in self._cluster.topics and name not in known]
        if not missing:
            return
        name = missing[0]
        error = self._cluster.unknown.get(name, Error.UNKNOWN_TOPIC_OR_PARTITION)
        if error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise OptionError(f"The topic {name} cannot be read: {error.message}")
        near = get_close_matches(name, self.client.refresh(None).topics, n=1)
        where = self.client.config["bootstrap.servers"]
        raise OptionError(
            f"There is no topic {name} at {where}: create it first." + (f" Did you mean {near[0]}?" if near else "")
        )

    def forget(self) -> None:
        """Drop the cached metadata."""
        self._asked_at = float("-inf")

    def _names(self) -> tuple[str, ...] | None:
        if self.subscription.pattern is not None:
            return None
        return self.subscription.topics or tuple(self.subscription.assigned or ())


def choose(cluster: Cluster, subscription: Subscription) -> tuple[list[TopicPartition], dict[str, str]]:
    """Return the partitions of a cluster that a subscription means, and the ids of their topics. Pure."""
    names: Iterable[str] = subscription.topics or ()
    if subscription.pattern is not None:
        known = (topic.name for topic in cluster.topics.values() if not topic.internal)
        names = filter(subscription.pattern.fullmatch, known)
    elif subscription.assigned is not None:
        names = subscription.assigned
    topics = [cluster.topics[name] for name in sorted(names) if name in cluster.topics]
    partitions = [
        (topic.name, number)
        for topic in topics
        for number in sorted(topic.partitions)
        if subscription.assigned is None or number in subscription.assigned[topic.name]
    ]
    return partitions, {topic.name: text_of(topic.id) for topic in topics if topic.id != NO_ID}


def text_of(topic_id: bytes) -> str:
    """Return an id as Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def id_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def locate(
    client: Client,
    bound: Bound,
    partitions: Iterable[TopicPartition],
    *,
    committed: bool,
    without_match: str = "latest",
) -> dict[TopicPartition, int]:
    """Return the offsets that a bound means. `without_match` is what to do if a time is later than all records."""
    partitions = list(partitions)
    times = times_of(bound, partitions)
    offsets = {one: number for one, number in times.items() if bound.kind == "offsets" and number >= 0}
    offsets |= list_offsets(client, {one: at for one, at in times.items() if one not in offsets}, committed=committed)
    unmatched = [one for one in partitions if offsets[one] < 0]
    if unmatched and without_match == "error":
        topic, number = unmatched[0]
        raise OptionError(
            f"No record of {topic}-{number} is as young as {times[unmatched[0]]}: set an earlier time, or "
            "startingOffsetsByTimestampStrategy to latest."
        )
    return offsets | list_offsets(client, dict.fromkeys(unmatched, LATEST), committed=committed)


def times_of(bound: Bound, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return what to ask of each partition. If a bound has numbers, they must be for exactly these partitions. Pure."""
    if bound.kind == "timestamp":
        return dict.fromkeys(partitions, bound.at)
    if bound.numbers is None:
        return dict.fromkeys(partitions, EARLIEST if bound.kind == "earliest" else LATEST)
    missing = [one for one in partitions if one not in bound.numbers]
    if missing:
        topic, number = missing[0]
        raise OptionError(f"Offsets or times are given, but none for {topic}-{number}: give one for every partition.")
    foreign = sorted(set(bound.numbers) - set(partitions))
    if foreign:
        topic, number = foreign[0]
        raise OptionError(f"An offset or time is given for {topic}-{number}, which is not among what is read.")
    return {one: bound.numbers[one] for one in partitions}


def settled_ends(client: Client, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the ends of partitions to which nobody writes, when no transaction is open in them any more: a transaction
    is over before all its partitions have their markers.
    """
    wanted, deadline = dict.fromkeys(places, LATEST), client.deadline()
    while (found := list_offsets(client, wanted, committed=True)) != list_offsets(client, wanted, committed=False):
        if deadline.passed:
            raise ClientError(Error.CONCURRENT_TRANSACTIONS, f"A transaction in {sorted(places)[0][0]} does not end.")
        time.sleep(PAUSE_S)
    return found
