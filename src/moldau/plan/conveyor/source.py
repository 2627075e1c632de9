# pyright: basic
"""The source of a conveyor: topics as blobs, each for the shard that reads its partition.

Besides the offsets, the position that Spark keeps has the partitions that had more to read when the batch was planned,
because shards wait for them; the wall-clock time, if an operator needs it; and the ends of the topics of global tables.
So a replay sees the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from moldau.operators.record import Raw
from moldau.spark.session.worker import settle
from moldau.spark.source.columns import Columns
from moldau.spark.source.options import LATEST, SourceOptions, Subscription
from moldau.spark.source.planning import (
    MORE,
    NOW,
    OF_CONVEYORS,
    RESTORE,
    VIEWS,
    Numbers,
    Position,
    Range,
    evenly,
    ranges,
)
from moldau.spark.source.readers import FIRST_CONTACT_S, StreamSource, Task
from moldau.spark.source.topics import Topics, list_offsets

from ..blobs import EMPTY, MAX_RECORDS, OUTSIDE, RESTORED, SCHEMA, Blob, of_raw, packed, raw_records
from ..restoring import LOG, shard_named
from .rows import Places

if TYPE_CHECKING:
    from moldau.spark.source.batches import Decoded

PLACES, TICK, GLOBALS, BEGIN = "conveyor.places", "conveyor.tick.ms", "conveyor.globals", "conveyor.begin"
WATCH = "conveyor.watch.ms"  # the interval of triggers
COMMITS = "conveyor.commits"  # false: offsets of the group are committed by the driver (`spark/runner/reporter.py`)
MICROS = 1000
R = TypeVar("R")
LONGEST_WATCH_S = 0.1  # Spark can stop a query no sooner
REST_S = 0.01  # between the end of a watch and the next trigger
SOON_S, SELDOM_S = 0.005, 0.05  # between two checks


class Packing(InputPartition):
    """The input of one task. `more` are the partitions that have more, `awaited` those that had more before it, `views`
    the ends of global topics. A time without ranges is the tick for all shards. `restores`: the ranges are those of
    changelogs.
    """

    def __init__(
        self,
        ranges: tuple[Range, ...],
        more: frozenset[tuple[str, int]],
        views: str | None,
        now: int | None = None,
        restores: bool = False,
        awaited: frozenset[tuple[str, int]] = frozenset(),
    ) -> None:
        super().__init__(ranges)
        self.ranges, self.more, self.views, self.now, self.restores = ranges, more, views, now, restores
        self.awaited = awaited


class PackedSource(StreamSource):
    """The source of topics, with blobs as rows."""

    shared_out = staticmethod(evenly)

    def __init__(self, options: SourceOptions, columns: Columns, given: Mapping[str, str]) -> None:
        super().__init__(options, columns)
        self.given = dict(given)
        if given.get(COMMITS) == "false":
            self._group = None
        self.places = Places.of_json(json.loads(given[PLACES]))
        self.tick_ms = int(given[TICK]) if given.get(TICK) else None
        names = tuple(given[GLOBALS].split(",")) if given.get(GLOBALS) else ()
        self._globals = Topics(self.reading.client, Subscription(topics=names)) if names else None
        self._watch_s = min(int(given.get(WATCH, 0)) / 1000, LONGEST_WATCH_S) - REST_S

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "given": self.given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["options"], state["reading"].columns, state["given"])

    def initialOffset(self) -> dict[str, Any]:
        """Return what was decided at the first start: Spark asks again when it replays the first batch."""
        if BEGIN in self.given:
            return json.loads(self.given[BEGIN])
        now = {} if self.tick_ms is None else {NOW: milliseconds()}
        return {**super().initialOffset(), **now}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch. If there is nothing new, look again until shortly before the next trigger,
        so that a record does not wait for it.
        """

        def look() -> dict[str, Any] | None:
            end = self._end(start, limit)
            return None if end is start else end

        end = awaited(look, 0 if self._target is not None else self._watch_s, self._last_batch_at)
        return start if end is None else end

    def _end(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin = offsets_alone(start)
        end = super().latestOffset(begin, limit)
        now = milliseconds()
        passes = self.tick_ms is not None and self._target is None  # to read what there is takes no time
        due = passes and now >= start.get(NOW, 0) + self.tick_ms
        if end is begin and not due and RESTORE not in start:
            return start
        clock = {} if self.tick_ms is None else {NOW: now}
        views = {} if self._globals is None else {VIEWS: self._ends(self._globals)}
        more = start.get(MORE, []) if end is begin else self._more(Position.of_json(end).offsets)
        return {**end, MORE: more, **clock, **views}

    def _ends(self, topics: Topics) -> dict[str, Any]:
        partitions, ids = topics.partitions(FIRST_CONTACT_S)
        ends = list_offsets(topics.client, dict.fromkeys(partitions, LATEST), committed=self.reading.committed)
        return Position(ends, ids).to_json()

    def _more(self, reached: Numbers) -> list[list[Any]]:
        """Return the partitions that have more than a batch reads, as far as is known now."""
        latest = {} if self._latest is None else self._latest.offsets
        return [list(one) for one, offset in sorted(latest.items()) if offset > reached.get(one, 0)]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        tasks = super().partitions(offsets_alone(start), offsets_alone(end))
        awaited, more = (frozenset((topic, number) for topic, number in at.get(MORE, ())) for at in (start, end))
        views = json.dumps(end[VIEWS]) if VIEWS in end else None
        packing: list[InputPartition] = [
            Packing(task.ranges, more, views, awaited=awaited) for task in tasks if isinstance(task, Task)
        ]
        if NOW in end and end.get(NOW) != start.get(NOW):
            packing.append(Packing((), more, views, end[NOW]))
        restored = ranges(Position({}), Position.of_json(start.get(RESTORE, {})))
        packing += [Packing((one,), more, views, restores=True) for one in restored]
        return packing

    def commit(self, end: dict[str, Any]) -> None:
        super().commit(offsets_alone(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from moldau.spark.source.reading import read  # compiled code, which planning does without

        settle()
        if not isinstance(partition, Packing):
            return
        if partition.now is not None:
            yield self.places.ticks(partition.now, partition.views)
            return
        seen: set[tuple[str, int]] = set()
        options = self.options
        for wanted, chunk in read(
            self.reading.client,
            partition.ranges,
            isolation=self.reading.isolation,
            fail_on_data_loss=options.fail_on_data_loss and not partition.restores,  # what is old goes from changelogs
            patience_ms=options.patience_ms,
        ):
            if partition.restores:
                yield self.places.batch(self._restored(wanted, chunk), partition.views)
                continue
            place = (wanted.topic, wanted.partition)
            seen.add(place)
            yield self.places.batch(blobs_of_chunk(wanted, chunk, place in partition.more), partition.views)
        if partition.restores:
            return
        silent = (partition.more | partition.awaited) - seen  # only markers: shards that wait for them must know
        empty = [
            Blob(one.topic, one.partition, OUTSIDE, one.start, EMPTY, place in partition.more)
            for one in partition.ranges
            if (place := (one.topic, one.partition)) in silent
        ]
        if empty:
            yield self.places.batch(empty, partition.views)

    def _restored(self, wanted: Range, chunk: Decoded) -> Iterator[Blob]:
        """Yield records of a changelog for the shard of its partition, those of the log of shards by their names."""
        for blob in blobs_of_chunk(wanted, chunk, more=False):
            blob.source = RESTORED
            if not wanted.topic.endswith(LOG):
                yield blob
                continue
            shards: dict[str, list[Raw]] = {}
            for raw in raw_records(blob):
                shards.setdefault(shard_named(raw.key), []).append(raw)
            for name, some in shards.items():
                if name in self.places.names:
                    number = self.places.names.index(name)
                    for part, data in enumerate(of_raw(some)):
                        yield Blob(wanted.topic, number, RESTORED, blob.sequence, data, part=part)


def awaited(look: Callable[[], R | None], longest_s: float, last_at: float) -> R | None:
    """Look for something again and again, at most so long; the longer nothing came, the less often."""
    began = time.monotonic()
    while (found := look()) is None:
        now = time.monotonic()
        pause = min(max((now - last_at) / 20, SOON_S), SELDOM_S)
        if now + pause > began + longest_s:
            return None
        time.sleep(pause)
    return found


def offsets_alone(position: Mapping[str, Any]) -> dict[str, Any]:
    """Return a position as the source of topics has it."""
    return {name: value for name, value in position.items() if name not in OF_CONVEYORS}


def blobs_of_chunk(wanted: Range, chunk: Decoded, more: bool) -> Iterator[Blob]:
    """Yield a chunk as blobs. Columns stay columns: no record becomes an object here."""
    offsets = chunk.offsets
    times = pa.array(offsets_of(chunk.timestamps) // MICROS)
    headers = chunk.headers if chunk.has_headers else pa.nulls(chunk.rows, SCHEMA.field("headers").type)
    batch = pa.RecordBatch.from_arrays([chunk.keys, chunk.values, times, headers, offsets], schema=SCHEMA)
    for at in range(0, chunk.rows, MAX_RECORDS):
        part = batch.slice(at, MAX_RECORDS)
        yield Blob(wanted.topic, wanted.partition, OUTSIDE, part.column(4)[0].as_py(), packed(part), more)


def offsets_of(times: pa.Array) -> np.ndarray:
    return times.cast(pa.int64()).to_numpy()


def milliseconds() -> int:
    return time.time_ns() // 1_000_000
