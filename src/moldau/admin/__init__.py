"""Functions over `moldau.client.Client` that ask a cluster or change it, one noun a module; they print nothing.

Commands, console, REST and Spark share them. What a broker refuses is a ClientError with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

TopicPartition = tuple[str, int]
TIMEOUT_MS = 30_000  # that a broker may take to carry out a change


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Sort partition numbers under their topics, in the order given."""
    numbers: dict[str, list[int]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, []).append(partition)
    return numbers


def topic_rows(topic: Callable[..., Any], row: Callable[..., Any], values: Mapping[TopicPartition, Any]) -> list[Any]:
    """Build what requests have of topics: `topic(name, [row(partition, value), ...])`."""
    return [
        topic(name, [row(number, values[name, number]) for number in numbers])
        for name, numbers in by_topic(values).items()
    ]
