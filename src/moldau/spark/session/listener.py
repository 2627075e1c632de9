"""Commits the offsets of consumer groups as soon as a batch is done.

The source itself commits when Spark asks it for the next batch, which may be a minute later, or never. A listener in
Java reports every batch to `GroupCommits`. Without its compiled class (`classes.py`) only the source commits.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.spark.connections import client_for
from moldau.spark.options import OptionError
from moldau.spark.progress import GroupProgress, position
from moldau.spark.session.classes import LISTENER
from moldau.spark.session.private import add_query_listener
from moldau.spark.source.options import SourceOptions
from moldau.spark.source.planning import Position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = "moldau"
MOST_RUNS = 1000  # runs of queries whose groups are remembered
log = logging.getLogger("moldau.spark")
Groups = list[tuple[SourceOptions, GroupProgress]]


class GroupCommits:
    """The groups of a session's queries, by their `runId`, which is new at each start."""

    def __init__(self) -> None:
        self._groups: dict[str, Groups] = {}

    def accept(self, options: Sequence[Mapping[str, str]], progress: str) -> None:
        """Commit the end of a batch; Java calls this."""
        report = json.loads(progress)
        groups = self._groups_of(report["runId"], options)
        for source in report["sources"] if groups else ():
            if (end := position(source, "endOffset")) is not None:
                commit(groups, end)

    def _groups_of(self, run: str, options: Sequence[Mapping[str, str]]) -> Groups:
        if run not in self._groups:
            if len(self._groups) >= MOST_RUNS:
                self._groups.pop(next(iter(self._groups)))
            sources = [one for given in options for one in options_of(dict(given)) if one.group is not None]
            self._groups[run] = [(one, GroupProgress(one.group or "")) for one in sources]
        return self._groups[run]

    class Java:
        """The interface that Py4J looks for."""

        implements = ("java.util.function.BiConsumer",)


def listen(spark: SparkSession, classes: Path) -> None:
    """Commit offsets for the groups of all queries in a session."""
    add_query_listener(spark, classes, LISTENER, SOURCE, GroupCommits())


def commit(groups: Groups, end: Position) -> None:
    """Commit the end of a batch for the group of its source."""
    for options, group in groups:
        if reads(options, end):
            return group.commit(client_for(options.client), end.offsets)
    return None


def options_of(given: Mapping[str, str]) -> Iterator[SourceOptions]:
    try:
        yield SourceOptions.of(given, streaming=True)
    except OptionError as error:  # the source itself fails because of it
        log.debug("A source has wrong options: %s", error)


def reads(options: SourceOptions, end: Position) -> bool:
    """Tell whether the end of a batch can belong to this source."""
    wanted = options.subscription
    topics = {topic for topic, _ in end.offsets}
    if wanted.pattern is not None:
        return all(wanted.pattern.fullmatch(topic) for topic in topics)
    return topics <= set(wanted.topics or wanted.assigned or ())
