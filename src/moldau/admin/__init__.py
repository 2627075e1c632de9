"""What can be asked of a cluster and done to it, as functions over `moldau.client.Client`: typed results, no printing.

`moldau topic`, `kafka-topics` and the console share these, and so with the other nouns. What a broker refuses is a
ClientError with a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable

TopicPartition = tuple[str, int]
TIMEOUT_MS = 30_000  # that a broker may take to carry out a change


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers under their topics, in the order given."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
