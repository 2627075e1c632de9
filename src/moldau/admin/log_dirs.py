"""Log directories of brokers: what lies where, and how large."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.admin import TopicPartition
from moldau.client import Client, Error, Node, check
from moldau.client import messages as m


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
    """The directories of brokers, with all replicas in them."""
    found: dict[int, list[LogDir]] = {}
    for broker in brokers:
        answer = client.send(m.DescribeLogDirsRequest(topics=None), Node(broker))
        if answer.error_code:
            check(answer)
        found[broker] = [
            LogDir(
                row.log_dir,
                Error(row.error_code),
                tuple(
                    Replica(
                        (topic.name, part.partition_index), part.partition_size, part.offset_lag, part.is_future_key
                    )
                    for topic in row.topics
                    for part in topic.partitions
                ),
                row.total_bytes,
                row.usable_bytes,
            )
            for row in answer.results
        ]
    return found
