"""Log directories of brokers: what lies where, and how large."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.admin import TopicPartition
from moldau.client import Client, ClientError, Error, Node, check
from moldau.client import messages as m

Sizes = Mapping[TopicPartition, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica in a directory; `future` is one that is moved there."""

    place: TopicPartition
    size: int
    offset_lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A directory. Sizes are -1 where a broker does not tell."""

    path: str
    error: Error
    replicas: tuple[Replica, ...]
    total_bytes: int = -1
    usable_bytes: int = -1


def described(client: Client, brokers: Iterable[int]) -> dict[int, list[LogDir]]:
    """Return the directories of brokers, with all replicas in them."""
    return {broker: of_broker(client, broker) for broker in brokers}


def answered(client: Client, brokers: Iterable[int], timeout_s: float) -> dict[int, list[LogDir]]:
    """Return the directories of those brokers that answer in time."""
    found: dict[int, list[LogDir]] = {}
    for broker in brokers:
        try:
            found[broker] = of_broker(client, broker, timeout_s)
        except ClientError as error:
            if not error.retriable:
                raise
    return found


def sizes(folders: Mapping[int, list[LogDir]]) -> Sizes:
    """Return the bytes of each replica, by partition and broker."""
    found: dict[TopicPartition, dict[int, int]] = {}
    for broker, of_broker in folders.items():
        for replica in (one for folder in of_broker for one in folder.replicas if not one.future):
            found.setdefault(replica.place, {})[broker] = max(0, replica.size)
    return found


def of_broker(client: Client, broker: int, timeout_s: float | None = None) -> list[LogDir]:
    """Return the directories of one broker."""
    answer = client.send(m.DescribeLogDirsRequest(topics=None), Node(broker), timeout_s=timeout_s)
    if answer.error_code:
        check(answer)
    return [_directory(row) for row in answer.results]


def _directory(row: Any) -> LogDir:
    replicas = tuple(
        Replica((topic.name, part.partition_index), part.partition_size, part.offset_lag, part.is_future_key)
        for topic in row.topics
        for part in topic.partitions
    )
    return LogDir(row.log_dir, Error(row.error_code), replicas, row.total_bytes, row.usable_bytes)
