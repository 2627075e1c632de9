"""Offsets of partitions by time, with one request to each leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.admin import TopicPartition
from moldau.client import Client, ClientError, Error, Leader
from moldau.client import messages as m
from moldau.client.deadline import Deadline
from moldau.client.errors import error_of

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
TRIES = 5
# The first version of ListOffsets that knows a sign; older ones would take it for a time.
FIRST_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
PASSING = {Error.NOT_LEADER_OR_FOLLOWER, Error.LEADER_NOT_AVAILABLE, Error.FENCED_LEADER_EPOCH}
PASSING |= {Error.UNKNOWN_LEADER_EPOCH, Error.OFFSET_NOT_AVAILABLE, Error.KAFKA_STORAGE_ERROR}


@dataclass(frozen=True, slots=True)
class Offset:
    """The offset of a partition at a time, -1 if no record is that late. `error` says why there is none."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = -1
    error: Error = Error.NONE


def at(client: Client, times: Mapping[TopicPartition, int], *, committed: bool = False) -> dict[TopicPartition, Offset]:
    """Return the first offsets at or after times in ms, or at LATEST, EARLIEST and the like.

    With `committed` LATEST is the last stable offset.
    """
    found: dict[TopicPartition, Offset] = {}

    def attempt(deadline: Deadline) -> None:
        for _ in range(TRIES):
            left = {place: time for place, time in times.items() if place not in found or found[place].error in PASSING}
            if not left:
                return
            rows, lost = _ask(client, left, committed, deadline)
            found.update(rows)
            if lost is not None:
                raise lost
            if any(row.error in PASSING for row in rows.values()):
                client.refresh({topic for topic, _ in left}, timeout_s=deadline.left)

    try:
        client.until(client.deadline(), attempt)
    except ClientError as error:
        if not error.retriable or len(found) < len(times):
            raise
    return found


def one_time(
    client: Client, partitions: Iterable[TopicPartition], time: int, *, committed: bool = False
) -> dict[TopicPartition, int]:
    """Return the offsets of one time for all partitions; ClientError if one cannot tell."""
    found = at(client, dict.fromkeys(partitions, time), committed=committed)
    for (topic, partition), offset in found.items():
        if offset.error:
            words = f"{topic}-{partition}: {offset.error.message}"
            raise ClientError(offset.error, words, retriable=False)
    return {place: offset.offset for place, offset in found.items()}


def ends(client: Client, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
    """Return the first and the next offset of partitions."""
    wanted = list(partitions)
    first, last = one_time(client, wanted, EARLIEST), one_time(client, wanted, LATEST)
    return {place: (first[place], last[place]) for place in wanted}


def list_offsets(
    client: Client, times: Mapping[TopicPartition, int], *, committed: bool, timeout_s: float | None = None
) -> dict[TopicPartition, int]:
    """Look up offsets as `at` does, until all partitions have answered; ClientError when the time is up."""
    known: dict[TopicPartition, int] = {}

    def attempt(deadline: Deadline) -> dict[TopicPartition, int]:
        left = {place: time for place, time in times.items() if place not in known}
        answers, lost = _ask(client, left, committed, deadline)
        known.update((place, row.offset) for place, row in answers.items() if not row.error)
        if lost is not None:
            raise lost
        for (topic, partition), row in answers.items():
            if row.error:
                client.forget(Leader(topic, partition))
                raise ClientError(row.error, f"Offsets of {topic}-{partition}: {row.error.message}")
        return known

    return client.until(client.deadline(timeout_s), attempt) if times else known


def _ask(
    client: Client, times: Mapping[TopicPartition, int], committed: bool, deadline: Deadline
) -> tuple[dict[TopicPartition, Offset], ClientError | None]:
    """Ask the leader of each partition, one request a leader and once; also return why one did not answer."""
    names = {topic for topic, _ in times}
    cluster = client.learn(names, deadline)
    grown = {topic for topic, part in times if (known := cluster.topics.get(topic)) and part not in known.partitions}
    if grown:  # since it was last asked for
        cluster = client.refresh(grown, timeout_s=deadline.left)
    found: dict[TopicPartition, Offset] = {}
    plan: dict[int, dict[str, list[Any]]] = {}
    for (topic, partition), time in times.items():
        known = cluster.topics.get(topic)
        row = known.partitions.get(partition) if known else None
        if row is None:
            found[topic, partition] = Offset(-1, error=Error.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        found[topic, partition] = Offset(-1, error=Error.LEADER_NOT_AVAILABLE)
        if row.leader in cluster.brokers:  # otherwise there is none, or it has gone
            asked = m.ListOffsetsRequest_ListOffsetsPartition(partition, row.leader_epoch, time)
            plan.setdefault(row.leader, {}).setdefault(topic, []).append(asked)
    wait_ms = client.config["socket.timeout.ms"]
    requests = {
        leader: m.ListOffsetsRequest(
            -1,
            int(committed),
            [m.ListOffsetsRequest_ListOffsetsTopic(name, parts) for name, parts in topics.items()],
            wait_ms,
        )
        for leader, topics in plan.items()
    }
    answers, lost = client.ask_each(requests, deadline)
    for answer in answers.values():
        for topic in answer.topics:
            for row in topic.partitions:
                error = error_of(row.error_code)
                found[topic.name, row.partition_index] = Offset(row.offset, row.timestamp, row.leader_epoch, error)
    return found, lost
