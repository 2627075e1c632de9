# pyright: basic
"""The steps of a lane: the pass and the levels of a conveyor, for many flows.

What a flow's own code raises stops this flow alone. Rows of one key are of one flow, so a level meets one at a time;
the pass meets them in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from moldau.operators.record import Produced
from moldau.spark.session.worker import collecting_later, settle

from ..blobs import KEY_DECIDES, RESTORED, Blob, of_produced, packed
from ..conveyor.level import HOT, KEY, STATE, VALUE, StatePages
from ..conveyor.rows import blob_of, blobs_of
from ..conveyor.views import global_stores
from ..fallbacks import FALLBACKS
from ..holding import hold
from ..levels import ShardId
from ..shards import HasFailed, restored_first, run
from ..stateless_pass import Passing
from .cargo import Cargo, Settings, cargo_of
from .crumbs import crumb
from .failures import TOPIC, Failure, failure_of, key_of
from .rows import CLEAR, LANE_ARROW, WAKE, Whose, tagged, whose

ANY = 0  # as source of a blob: it is the same to the sink from which shard a failure comes


def passing(client: Settings, folder: str, family: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that processes the blobs of sub-topologies without state."""

    def through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        passes: dict[Whose, Pass] = {}
        for whole in batches:
            for mine, batch in by_flow(whole):
                if mine not in passes:
                    passes[mine] = Pass(mine, cargo_of(client, mine.parcel), folder, family)
                for part in passes[mine].through(batch):
                    yield tagged(part, mine)

    return through


def by_flow(batch: pa.RecordBatch) -> Iterator[tuple[Whose, pa.RecordBatch]]:
    """Yield the rows of each flow, without the columns that say whose they are."""
    own = batch.schema.names[: len(batch.schema.names) - len(Whose._fields)]
    columns = [batch.column(name).to_pylist() for name in Whose._fields]
    found, flows = dict.fromkeys(zip(*columns, strict=True)), columns[0]
    for mine in found:
        yield Whose(*mine), chosen(batch, [flow == mine[0] for flow in flows]).select(own)


def chosen(batch: pa.RecordBatch, which: list[bool]) -> pa.RecordBatch:
    return batch if all(which) else batch.filter(pa.array(which, pa.bool_()))


class Pass:
    """The pass of one flow in one task. After a failure nothing of the same partition is processed any more."""

    def __init__(self, mine: Whose, cargo: Cargo, folder: str, family: str) -> None:
        self.mine, self.cargo, self.folder, self.family = mine, cargo, folder, family
        self.failed: set[tuple[str, int]] = set()
        self._passing: Passing | None = None

    def through(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        cargo = self.cargo
        reader, places = cargo.conveyed.schedule.reader, cargo.places
        views = batch.column("views")[0].as_py() if batch.num_rows else None
        found: list[Blob] = []
        for blob in blobs_of(batch):
            if blob.data is None:
                continue
            if reader.get(blob.topic) in cargo.passed and blob.source != RESTORED:
                found += self._through(blob, views)
            else:
                found.append(blob)
        kinds = zip(batch.column("level").to_pylist(), batch.column("blob"), strict=True)
        ticks = chosen(batch, [level in cargo.keyed and not blob.is_valid for level, blob in kinds])
        if ticks.num_rows:
            yield ticks
        if found:
            yield places.batch(found, views)

    def _through(self, blob: Blob, views: str | None) -> list[Blob]:
        place = blob.topic, blob.partition
        if place in self.failed:
            return []
        try:
            with crumb(self.folder, self.mine.flow, self.mine.attempt), collecting_later():
                if self._passing is None:
                    self._passing = Passing(self.cargo.conveyed, global_stores(self.cargo.conveyed, views))
                out = list(self._passing.through(blob))
        except Exception as error:  # of the flow's own code
            self.failed.add(place)
            self._passing = None
            where = f"{blob.topic}-{blob.partition}"
            at = {"topic": blob.topic, "partition": blob.partition, "offset": blob.sequence}
            return [told(self.family, failure_of(error, self.mine.flow, self.mine.attempt, where, **at))]
        FALLBACKS.drain(self.cargo.conveyed.start)
        return out


def told(family: str, failure: Failure) -> Blob:
    """Return a failure as a blob for the sink."""
    record = Produced(TOPIC, 0, key_of(family, failure), failure.to_bytes(), 0)
    return Blob(TOPIC, KEY_DECIDES, ANY, 0, packed(of_produced([record])))


class LaneLevel(StatefulProcessor):
    """A step with state: the same keyed level of all flows. Rows for later steps and the sink pass by."""

    def __init__(self, client: Settings, step: int, folder: str, family: str) -> None:
        self.client, self.step, self.folder, self.family = client, step, folder, family

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        self.state = handle.getMapState(STATE, KEY, VALUE)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        mine: list[dict[Any, Any]] = []
        cargo, level = None, -1
        for frame in rows:
            records = frame.to_dict("records")
            if cargo is None:
                cargo = cargo_of(self.client, records[0]["parcel"])
                level = cargo.keyed[self.step]
            others = [row for row in records if row["level"] != level]
            if others:
                yield pd.DataFrame(others, columns=LANE_ARROW.names)
            mine += [row for row in records if row["level"] == level]
        if cargo is None or not mine:
            return
        owner, views = whose(mine[0]), mine[0]["views"]
        tick = [int(row["tick"]) for row in mine if row["blob"] is None]
        if CLEAR in tick:
            self.state.clear()
            return
        arrived = [blob_of(row) for row in mine if row["blob"] is not None]
        shard = cargo.conveyed.schedule.shards[cargo.shards[int(key[1])]]
        out = self.run(cargo, shard, owner, arrived, max(tick, default=WAKE), views)
        if out:
            places, tags = cargo.places, owner._asdict()
            yield pd.DataFrame([{**places.row(blob, views), **tags} for blob in out], columns=LANE_ARROW.names)

    def run(
        self, cargo: Cargo, shard: ShardId, owner: Whose, arrived: list[Blob], now: int, views: str | None
    ) -> list[Blob]:
        conveyed = cargo.conveyed
        pages = partial(StatePages, self.state, (conveyed.start, shard) in HOT)
        mirrored, fed = restored_first(conveyed.schedule, shard, pages, arrived)
        try:
            with crumb(self.folder, owner.flow, owner.attempt), collecting_later():
                shared = global_stores(conveyed, views)
                out = run(conveyed, shard, pages, fed, now, shared, HOT, number=owner.attempt)
        except Exception as error:  # of the flow's own code, or of its batch before, if nobody could be told yet
            held = hold(conveyed, shard, partial(StatePages, self.state, False), fed, owner.attempt)
            if isinstance(error, HasFailed):
                return [*mirrored, *held]
            return [*mirrored, *held, told(self.family, failure_of(error, owner.flow, owner.attempt, str(shard)))]
        FALLBACKS.drain(conveyed.start)
        return [*mirrored, *out]

    def close(self) -> None:
        """Do nothing: nothing is open."""
