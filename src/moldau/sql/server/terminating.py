"""TERMINATE CLUSTER: all queries end, all sources are forgotten, and topics that they wrote may be deleted.

It is a command as any other: whoever starts later, and reads it in its place, begins with nothing after it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from moldau.sql.engine import Engine
from moldau.sql.server.commands import TERMINATE_CLUSTER, Command
from moldau.sql.server.errors import BAD_REQUEST, ServerError

TEXT, TOPICS = "TERMINATE CLUSTER;", "deleteTopicList"
DONE = "Queries terminated, and the server is shutting down."


def patterns_of(body: dict[str, Any]) -> list[str]:
    """Read a request; its list has patterns of topics."""
    patterns = body.get(TOPICS) or []
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        raise ServerError(BAD_REQUEST, f"'{TOPICS}' must be a list of patterns of topics.")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ServerError(BAD_REQUEST, f"Invalid pattern: {pattern}: {error}") from None
    return patterns


def command(patterns: Sequence[str]) -> Command:
    return Command(TERMINATE_CLUSTER, TEXT, {TOPICS: list(patterns)})


def topics_of(engine: Engine, patterns: Sequence[str]) -> list[str]:
    """Return the topics that queries write, or have written, whose names fit one of the patterns."""
    written = {plan.sink.topic for plan in engine.queries.values()}
    written |= {source.topic for source in engine.catalogue.sources.values() if source.by_query}
    return sorted(topic for topic in written if any(re.fullmatch(pattern, topic) for pattern in patterns))
