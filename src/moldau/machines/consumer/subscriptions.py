"""The topics that a regular expression stands for, in the subscription of a consumer group.

Expressions are those of RE2 (as in Kafka, whose clients rely on it): they match in linear time, so a client's pattern
cannot hold up the node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moldau.machines.group import refuse
from moldau.machines.metadata.cluster import Cluster
from moldau.wire.errors import Error

PATTERNS_KEPT = 256

Visible = Callable[[str], bool]  # whether the client may know of a topic


def anything(topic: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Resolved:
    """The topics that a regular expression stood for, at a time and at a state of the metadata."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    at_ms: int = 0


@lru_cache(PATTERNS_KEPT)
def compiled(pattern: str) -> Any:
    """Compile an expression; raises Refused. RE2 is loaded with the first one: most brokers never see any."""
    import re2  # pyright: ignore[reportMissingTypeStubs]

    library: Any = re2
    options = library.Options()
    options.log_errors = False
    try:
        return library.compile(pattern, options)
    except library.error as wrong:
        detail = wrong.args[0].decode() if wrong.args and isinstance(wrong.args[0], bytes) else str(wrong)
        refuse(
            Error.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {detail}.",
        )


def resolve(pattern: str, cluster: Cluster, visible: Visible, now_ms: int) -> Resolved:
    """Return the topics whose whole name matches, of those that the client may know of."""
    match = compiled(pattern).fullmatch
    names = frozenset(name for name in cluster.topics if match(name) and visible(name))
    return Resolved(names, cluster.topic_changes, now_ms)
