"""Topics that are read once, from their start to where they end now."""

from __future__ import annotations

from collections.abc import Callable

from moldau.client import Client, Record
from moldau.topicstore import Reader, exists, prepare
from moldau.topicstore.store import NONSENSE, Replayed

REPLICAS = 3


def make(client: Client, topic: str) -> None:
    """Create a compacted topic, unless it is there."""
    prepare(client, topic, replicas=min(REPLICAS, len(client.refresh().brokers)))


def replay(client: Client, topic: str, apply: Callable[[Record], None]) -> None:
    """Hand over all records; none if there is no such topic. What makes no sense, of a later release, is left out."""
    if not exists(client, topic):
        return

    def understood(record: Record) -> None:
        try:
            apply(record)
        except NONSENSE:
            return

    Reader(client, topic, lambda _, start: Replayed(start, understood), partitions=lambda: (0,)).read_to_end()
