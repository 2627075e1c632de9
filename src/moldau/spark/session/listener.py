"""Offsets of consumer groups, committed when a batch is done: the last one of a query too.

The source commits by itself when Spark asks it for the next batch, which may be a minute later, or never. A listener in
Java hears of every batch, and tells of it here, in a thread that waits for nothing else. Without the compiled class
(`classes.py`) there are the commits of the source alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.spark.connections import client_for
from moldau.spark.options import OptionError
from moldau.spark.progress import GroupProgress
from moldau.spark.session.classes import LISTENER
from moldau.spark.session.private import add_query_listener
from moldau.spark.source.options import SourceOptions
from moldau.spark.source.planning import Position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = "moldau"
MOST_RUNS = 1000  # of queries, whose groups are remembered
log = logging.getLogger("moldau.spark")
Groups = list[tuple[SourceOptions, GroupProgress]]


class GroupCommits:
    """Of one session. What a query is called on is `runId`, which is new at each start."""

    def __init__(self) -> None:
        self._groups: dict[str, Groups] = {}

    def accept(self, options: Sequence[Mapping[str, str]], progress: str) -> None:
        """A batch is done; called by Java."""
        found = json.loads(progress)
        mine = self._of(found["runId"], options)
        for source in found["sources"] if mine else ():
            if end := source.get("endOffset"):
                commit(mine, Position.of_json(json.loads(end) if isinstance(end, str) else end))

    def _of(self, run: str, options: Sequence[Mapping[str, str]]) -> Groups:
        if run not in self._groups:
            if len(self._groups) >= MOST_RUNS:
                self._groups.pop(next(iter(self._groups)))
            sources = [one for given in options for one in options_of(dict(given)) if one.group is not None]
            self._groups[run] = [(one, GroupProgress(one.group or "")) for one in sources]
        return self._groups[run]

    class Java:
        """What Py4J wants to know."""

        implements = ("java.util.function.BiConsumer",)


def listen(spark: SparkSession, classes: Path) -> None:
    """Commit offsets of the groups of all queries of a session."""
    add_query_listener(spark, classes, LISTENER, SOURCE, GroupCommits())


def commit(groups: Groups, end: Position) -> None:
    """Write the end of a batch of a source into its group."""
    for options, group in groups:
        if reads(options, end):
            return group.reached(client_for(options.client), end.offsets)
    return None


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
