"""Waiting for new records: one fetch that waits at the broker, for all push queries of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from moldau.sql.server.together import Together
from moldau.sql.server.topics import Positions, Topics

Reached: TypeAlias = Mapping[str, Positions]  # how far a query has read its topics
ROUND_S = 0.05  # how long a fetch waits; who comes meanwhile waits for the next one
MOST_QUERIES = 10_000


def news_of(topics: Topics) -> Together[Reached, bool]:
    """Return what tells queries whether there is something new for them: as soon as there is, or that there is not."""
    return Together(_looking(topics), "sql news", MOST_QUERIES)


def _looking(topics: Topics) -> Callable[[Sequence[Reached]], list[bool]]:
    def look(several: Sequence[Reached]) -> list[bool]:
        found = topics.wait(lowest(several), ROUND_S)
        return [not found.isdisjoint(reached) for reached in several]

    return look


def lowest(several: Sequence[Reached]) -> dict[str, Positions]:
    """Return the lowest position of each partition."""
    found: dict[str, Positions] = {}
    for reached in several:
        for topic, parts in reached.items():
            known = found.setdefault(topic, {})
            for partition, offset in parts.items():
                known[partition] = min(offset, known.get(partition, offset))
    return found
