"""The source as Spark drives it, without Spark: offsets go through JSON and tasks through pickle, as on their way."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

from moldau.spark.source.options import SourceOptions
from moldau.spark.source.readers import BatchSource, StreamSource, columns_of


def passed(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


class Query:
    """A query with a checkpoint: `at` outlives its sources."""

    def __init__(self, servers: str, topic: str | None = None, **options: Any) -> None:
        named = {"subscribe": topic} if topic else {}
        self.given = {"kafka.bootstrap.servers": servers, **named, "startingOffsets": "earliest", **options}
        self.at: Any = None
        self.tasks: list[int] = []  # of each batch
        self.source = self.fresh()

    def fresh(self, **changed: str) -> StreamSource:
        """A source of the same query after a restart, perhaps with other options."""
        self.given |= changed
        options = SourceOptions.of(self.given, streaming=True)
        self.source = passed(StreamSource(options, columns_of(options)))
        return self.source

    def batch(self, limit: Any = None) -> list[dict[str, Any]] | None:
        """The rows of the next batch; None where there is none."""
        if self.at is None:
            self.at = json.loads(json.dumps(self.source.initialOffset()))
        end = self.source.latestOffset(self.at, limit or self.source.getDefaultReadLimit())
        if json.dumps(end) == json.dumps(self.at):
            return None
        start, self.at = self.at, json.loads(json.dumps(end))
        return self.rows(start, self.at)

    def rows(self, start: Any, end: Any) -> list[dict[str, Any]]:
        """What is between two offsets, as also a replayed batch reads it."""
        tasks = self.source.partitions(start, end)
        self.tasks.append(len(tasks))
        worker = passed(self.source)
        return [row for task in tasks for batch in worker.read(passed(task)) for row in batch.to_pylist()]

    def now(self) -> list[dict[str, Any]]:
        """All that there is, as with availableNow."""
        self.fresh().prepareForTriggerAvailableNow()
        return [row for batch in self._until_end() for row in batch]

    def _until_end(self) -> Iterator[list[dict[str, Any]]]:
        while (rows := self.batch()) is not None:
            yield rows


def read(servers: str, topic: str, **options: Any) -> list[dict[str, Any]]:
    """A batch job."""
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, **options}
    chosen = SourceOptions.of(given, streaming=False)
    source = BatchSource(chosen, columns_of(chosen))
    tasks, worker = source.partitions(), passed(source)
    return [row for task in tasks for batch in worker.read(passed(task)) for row in batch.to_pylist()]


def values(rows: list[dict[str, Any]] | None) -> list[str]:
    return sorted(row["value"].decode() for row in rows or ())
