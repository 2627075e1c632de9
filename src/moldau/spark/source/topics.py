"""Topics as a cluster tells of them: which partitions a subscription means, and their first, last and timed offsets."""

from __future__ import annotations

import base64
import time
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

from moldau.client import Client, ClientError, Cluster, Error, Leader, Node
from moldau.client import messages as m
from moldau.client.errors import error_of
from moldau.spark.options import OptionError
from moldau.spark.source.options import EARLIEST, LATEST, Bound, Subscription
from moldau.spark.source.planning import Numbers, TopicPartition

FRESH_S = 1.0  # so long is what the cluster told of its topics believed
NO_ID = bytes(16)
NOWHERE = -1


class Topics:
    """The partitions of a subscription, looked up again and again: new ones are found."""

    def __init__(self, client: Client, subscription: Subscription) -> None:
        self.client = client
        self.subscription = subscription
        self._asked_at = float("-inf")
        self._cluster = Cluster()

    def partitions(self, timeout_s: float) -> tuple[list[TopicPartition], dict[str, str]]:
        """All partitions that there are now, and the ids of their topics. Waits so long, or less if the client may."""
        if time.monotonic() - self._asked_at > FRESH_S:
            limit = min(timeout_s, self.client.config.seconds("default.api.timeout.ms"))
            self._cluster = self.client.refresh(self._names(), timeout_s=limit)
            self._asked_at = time.monotonic()
        return chosen(self._cluster, self.subscription)

    def check(self, known: Collection[str] = ()) -> None:
        """OptionError where a topic that is named is not there; `known` ones may be gone."""
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
        """Ask again at the next look."""
        self._asked_at = float("-inf")

    def _names(self) -> tuple[str, ...] | None:
        if self.subscription.pattern is not None:
            return None
        return self.subscription.topics or tuple(self.subscription.assigned or ())


def chosen(cluster: Cluster, subscription: Subscription) -> tuple[list[TopicPartition], dict[str, str]]:
    """The partitions of a cluster that a subscription means, and the ids of their topics. Pure."""
    names: Iterable[str] = subscription.topics or ()
    if subscription.pattern is not None:
        names = (
            topic.name
            for topic in cluster.topics.values()
            if not topic.internal and subscription.pattern.fullmatch(topic.name)
        )
    elif subscription.assigned is not None:
        names = subscription.assigned
    found = [cluster.topics[name] for name in sorted(names) if name in cluster.topics]
    partitions = [
        (topic.name, number)
        for topic in found
        for number in sorted(topic.partitions)
        if subscription.assigned is None or number in subscription.assigned[topic.name]
    ]
    return partitions, {topic.name: text_of(topic.id) for topic in found if topic.id != NO_ID}


def text_of(topic_id: bytes) -> str:
    """An id as Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def id_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def list_offsets(
    client: Client, wanted: Numbers, *, committed: bool, timeout_s: float | None = None
) -> dict[TopicPartition, int]:
    """The offset of a time (ms), or of EARLIEST or LATEST, in each partition; -1 where no record is so young.

    With `committed` the latest offset is that before the first open transaction.
    """
    found: dict[TopicPartition, int] = {}

    def ask(deadline: Any) -> dict[TopicPartition, int]:
        left = {one: at for one, at in wanted.items() if one not in found}
        for node, some in by_leader(client, left, deadline).items():
            request = m.ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=_topics(some))
            answer = client.send(request, to=Node(node), timeout_s=deadline.left, retry=False)
            for topic in answer.topics:
                for row in topic.partitions:
                    place = (topic.name, row.partition_index)
                    if row.error_code:
                        client.forget(Leader(*place))
                        error = error_of(row.error_code)
                        raise ClientError(error, f"Offsets of {topic.name}-{row.partition_index}: {error.message}")
                    found[place] = row.offset
        return found

    return client.until(client.deadline(timeout_s), ask) if wanted else found


def by_leader(client: Client, wanted: Numbers, deadline: Any) -> dict[int, dict[TopicPartition, int]]:
    """What each broker is to be asked, one question a broker."""
    cluster = client.learn((topic for topic, _ in wanted), deadline)
    plan: dict[int, dict[TopicPartition, int]] = {}
    for (name, number), at in wanted.items():
        topic = cluster.topics.get(name)
        row = topic.partitions.get(number) if topic else None
        if row is None or row.leader == NOWHERE:
            client.forget(Leader(name, number))
            known = Error.UNKNOWN_TOPIC_OR_PARTITION if row is None else Error.LEADER_NOT_AVAILABLE
            raise ClientError(known, f"Partition {name}-{number}: {known.message}")
        plan.setdefault(row.leader, {})[name, number] = at
    return plan


def _topics(wanted: Numbers) -> list[Any]:
    rows: dict[str, list[Any]] = {}
    for (topic, partition), at in wanted.items():
        rows.setdefault(topic, []).append(m.ListOffsetsRequest_ListOffsetsPartition(partition, timestamp=at))
    return [m.ListOffsetsRequest_ListOffsetsTopic(topic, some) for topic, some in rows.items()]


def located(
    client: Client,
    bound: Bound,
    partitions: Iterable[TopicPartition],
    *,
    committed: bool,
    without_match: str = "latest",
) -> dict[TopicPartition, int]:
    """The offsets that a bound means. `without_match` says what a time does that is later than all records."""
    partitions = list(partitions)
    times = asked_for(bound, partitions)
    found = {one: number for one, number in times.items() if bound.kind == "offsets" and number >= 0}
    found |= list_offsets(client, {one: at for one, at in times.items() if one not in found}, committed=committed)
    unmatched = [one for one in partitions if found[one] < 0]
    if unmatched and without_match == "error":
        topic, number = unmatched[0]
        raise OptionError(
            f"No record of {topic}-{number} is as young as {times[unmatched[0]]}: set an earlier time, or "
            "startingOffsetsByTimestampStrategy to latest."
        )
    return found | list_offsets(client, dict.fromkeys(unmatched, LATEST), committed=committed)


def asked_for(bound: Bound, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """What to ask of each partition; with numbers, every partition must have one, and no other. Pure."""
    partitions = list(partitions)
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
