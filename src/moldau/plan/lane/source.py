# pyright: basic
"""The source of a lane: the sources of its flows, asked together."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from moldau.spark import parcels
from moldau.spark.connections import ClientError, client_for
from moldau.spark.options import OptionError
from moldau.spark.session.worker import settle
from moldau.spark.source.loss import DataLoss
from moldau.spark.source.options import LATEST, SourceOptions
from moldau.spark.source.planning import FEW, MORE, Position, dealt
from moldau.spark.source.readers import FIRST_CONTACT_S, end_without_a_word
from moldau.spark.source.topics import list_offsets

from ..conveyor.datasource import source_of
from ..conveyor.source import LONGEST_WATCH_S, REST_S, PackedSource, Packing, awaited
from .cargo import Cargo, Settings, cargo_of
from .failures import TOPIC, FailureFiles, blaming, failure_of, key_of, leave
from .position import At, LanePosition, following
from .rows import CLEAR, WAKE, Whose, tagged
from .sink import FOLDER
from .wanted import Want, Wants

CLIENT, FAMILY, BUDGET, TASKS = "lane.client", "lane.family", "lane.records", "lane.tasks"
LEAST = 1000  # records of a flow in a batch, however many others have more
log = logging.getLogger("moldau.spark")


class FlowSource(PackedSource):
    """The source of one flow. What others have asked for already is not asked again."""

    def __init__(self, options: SourceOptions, columns: Any, given: Mapping[str, str]) -> None:
        super().__init__(options, columns, given)
        self.ends: dict[tuple[str, int], int] | None = None
        self.share = options.max_offsets or sys.maxsize

    def _now(self, timeout_s: float = FIRST_CONTACT_S, known: Any = ()) -> Position:
        partitions, ids = self._look(timeout_s, known)
        if self.ends is None or any(one not in self.ends for one in partitions):
            return super()._now(timeout_s, known)
        self._latest = Position({one: self.ends[one] for one in partitions}, ids, self.options.cut)
        return self._latest

    def _admit(self, begin: Position, latest: Position, limit: ReadLimit) -> Position | None:
        return self.shared_out(begin, latest, min(self.share, self.options.max_offsets or self.share))


class Load(InputPartition):
    """The input of one task: what it reads for which flow. A packing that is a number is a tick for all shards."""

    def __init__(self, parts: list[tuple[Whose, Packing | int]]) -> None:
        super().__init__(None)
        self.parts = parts


class LaneSource(DataSourceStreamReader):
    """All flows of a lane."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = dict(given)
        self.client: Settings = tuple(sorted(json.loads(given[CLIENT]).items()))
        self._folder, self._family = Path(given[FOLDER]), given[FAMILY]
        self._budget, self._tasks = int(given[BUDGET]), int(given[TASKS])
        self._wants, self._failures = Wants(self._folder), FailureFiles(self._folder)
        self._sources: dict[str, FlowSource] = {}
        self._last_batch_at = time.monotonic()

    def __getstate__(self) -> dict[str, str]:
        return self.given

    def __setstate__(self, state: dict[str, str]) -> None:
        self.__init__(state)

    def source(self, parcel: str) -> FlowSource:
        if parcel not in self._sources:
            self._sources[parcel] = source_of(cargo_of(self.client, parcel).options, FlowSource)
        return self._sources[parcel]

    def initialOffset(self) -> dict[str, Any]:
        return LanePosition().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._budget)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch; as in a conveyor, look again until shortly before the next trigger."""
        position = LanePosition.of_json(start)
        end = awaited(lambda: self._end(position), LONGEST_WATCH_S - REST_S, self._last_batch_at)
        if end is None:
            return start
        self._last_batch_at = time.monotonic()
        return replace(end, tasks=self._tasks).to_json()

    def _end(self, start: LanePosition) -> LanePosition | None:
        self._failures.look()
        wants = self._wants.now()
        for serial, one in start.flows.items():
            if serial in wants and wants[serial].name != one.name:
                self._failures.forget(serial)  # of what had this number before
        running = {serial: want for serial, want in wants.items() if want.is_running}
        active = [serial for serial, want in running.items() if not self._failures.has(serial, want.attempt)]
        self._ask_together([running[serial].parcel for serial in active])
        busy = sum(1 for serial in active if serial in start.flows and start.flows[serial].at.get(MORE))
        share = max(LEAST, self._budget // max(1, busy))

        def end(serial: int, want: Want, at: At) -> At:
            source = self.source(want.parcel)
            source.share = share
            try:
                return source._end(at, ReadMaxRows(share))
            except (ClientError, OptionError, DataLoss) as error:
                if isinstance(error, ClientError) and error.retriable:
                    log.warning("%s waits: %s", want.name, error)
                else:  # of this flow alone
                    leave(self._folder, [failure_of(error, serial, want.attempt, "planning")])
                return at

        found = following(start, wants, self._failures, end)
        self._forget({*(want.parcel for want in wants.values()), *(one.parcel for one in start.flows.values())})
        return found

    def _ask_together(self, wanted: list[str]) -> None:
        """Ask once for the ends of all partitions that any flow reads. Where that fails, each flow asks for itself."""
        sources = []
        for parcel in wanted:
            source = self.source(parcel)
            source.ends = None
            sources.append(source)
        groups: dict[Any, list[FlowSource]] = {}
        for source in sources:
            if source._topics is not None:
                groups.setdefault((id(source.reading.client), source.reading.committed), []).append(source)
        for (_, committed), some in groups.items():
            if len(some) < 2:
                continue
            try:
                places = {one for source in some for one in source._look()[0]}
                client = some[0].reading.client
                ends = list_offsets(client, dict.fromkeys(sorted(places), LATEST), committed=committed)
            except ClientError:
                continue
            for source in some:
                source.ends = ends

    def _forget(self, needed: set[str]) -> None:
        for parcel in self._sources.keys() - needed:
            del self._sources[parcel]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = LanePosition.of_json(start), LanePosition.of_json(end)
        self._failures.look()
        parts: list[tuple[Whose, Packing | int]] = []
        for serial, one in after.flows.items():
            known = before.flows.get(serial)
            begin = after.began[serial] if known is None else after.began.get(serial, known.at)
            whose = Whose(serial, one.parcel, one.attempt)
            if serial in after.wake:
                parts.append((whose, WAKE))
            if begin != one.at and not self._is_left_out(serial, one.attempt, begin):
                found = self.source(one.parcel).partitions(begin, one.at)
                parts += [(whose, packing) for packing in found if isinstance(packing, Packing)]
        for serial, one in before.flows.items():
            if serial not in after.flows:
                parts.append((Whose(serial, one.parcel, one.attempt), CLEAR))
        return [Load(some) for some in shared_out(parts, after.tasks)] or [Load([])]

    def _is_left_out(self, serial: int, attempt: int, begin: At) -> bool:
        """Whether a batch is done again without a flow, which then goes on where the batch began.

        That is written before the batch is done: whoever has the lane next, on any machine, must not take the end of
        this batch for how far the flow has come.
        """
        failure = self._failures.of_a_batch(serial, attempt)
        if failure is not None and failure.at is None:
            known = replace(failure, at=begin)
            parcels.write(client_for(dict(self.client)), TOPIC, key_of(self._family, known), known.to_bytes())
            leave(self._folder, [known])
            self._failures.add(known)
        return failure is not None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        settle()
        for whose, packing in partition.parts if isinstance(partition, Load) else ():
            with blaming(whose.flow, whose.attempt):
                cargo = cargo_of(self.client, whose.parcel)
                found = ticks(cargo, packing) if isinstance(packing, int) else self.source(whose.parcel).read(packing)
                for batch in found:
                    yield tagged(batch, whose)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the driver commits the offsets of each flow's group."""

    def stop(self) -> None:
        end_without_a_word()


def ticks(cargo: Cargo, tick: int) -> Iterator[pa.RecordBatch]:
    batch = cargo.places.ticks(tick, levels=cargo.keyed)
    if batch.num_rows:
        yield batch


def shared_out(
    parts: list[tuple[Whose, Packing | int]], most: int | None = None
) -> list[list[tuple[Whose, Packing | int]]]:
    """Divide what there is to read among at most so many tasks: a task costs more than its records do, and in a lane
    without state each is a transaction. It depends on nothing else, so a replay has the same tasks.
    """
    sizes = [size_of(packing) for _, packing in parts]
    tasks = min(len(parts), -(-sum(sizes) // FEW) or 1, most or len(parts))
    return [[parts[number] for number in load] for load in dealt(sizes, tasks) if load]


def size_of(packing: Packing | int) -> int:
    return 0 if isinstance(packing, int) else sum(one.size for one in packing.ranges)
