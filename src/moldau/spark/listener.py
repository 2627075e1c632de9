"""Offsets of consumer groups, committed when a batch is done: the last one of a query too.

The source commits by itself when Spark asks it for the next batch, which may be a minute later, or never. The listener
hears of every batch. Which groups there are stands in the options of the sources, which are in the query's plan.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from moldau.spark.connections import client_for
from moldau.spark.options import OptionError
from moldau.spark.planning import Position
from moldau.spark.progress import GroupProgress
from moldau.spark.source_options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

SOURCE = "moldau"
log = logging.getLogger("moldau.spark")


class GroupListener(StreamingQueryListener):
    """Of one session. What a query is called on is `runId`, which is new at each start."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._sources: dict[str, list[tuple[SourceOptions, GroupProgress]]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        found = [one for one in sources_of(self._spark, str(event.id)) if one.group is not None]
        if found:
            self._sources[str(event.runId)] = [(one, GroupProgress(one.group or "")) for one in found]

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        mine = self._sources.get(str(event.progress.runId), [])
        for source in event.progress.sources if mine else ():
            if not source.endOffset:
                continue
            end = Position.of_json(json.loads(source.endOffset))
            for options, group in mine:
                if reads(options, end):
                    group.reached(client_for(options.client), end.offsets)
                    break

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing was done since the last progress."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._sources.pop(str(event.runId), None)


def sources_of(spark: SparkSession, query_id: str) -> Iterator[SourceOptions]:
    """The options of a query's sources of ours, by its plan."""
    query: Any = spark.streams.get(query_id)
    if query is None:
        return
    leaves = query._jsq.streamingQuery().analyzedPlan().collectLeaves()
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        if leaf.getClass().getSimpleName() == "StreamingRelationV2" and leaf.sourceName() == SOURCE:
            yield from options_of(dict(leaf.extraOptions().asCaseSensitiveMap()))


def options_of(given: Mapping[str, str]) -> Iterator[SourceOptions]:
    try:
        yield SourceOptions.of(given, streaming=True)
    except OptionError as error:  # the source itself fails by it
        log.debug("No progress of a source with wrong options: %s", error)


def reads(options: SourceOptions, end: Position) -> bool:
    """Whether an end of a batch can be that of this source."""
    wanted = options.subscription
    topics = {topic for topic, _ in end.offsets}
    if wanted.pattern is not None:
        return all(wanted.pattern.fullmatch(topic) for topic in topics)
    return topics <= set(wanted.topics or wanted.assigned or ())
