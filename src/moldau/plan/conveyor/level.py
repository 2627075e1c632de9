# pyright: basic
"""A level on Spark: all its shards, each with its pages in one state variable; and the pass before the first level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from moldau.plan.page_cache import HotPages
from moldau.plan.shard_state import BOOK
from moldau.plan.stateless_pass import Passing
from moldau.spark.session.worker import collecting_later, settle

from ..fallbacks import FALLBACKS
from ..levels import ShardId
from ..shards import Conveyed, restored_first, run
from .rows import ARROW, Places, blob_of, blobs_of
from .tally import Tally
from .views import global_stores

STATE = "pages"
KEY = StructType().add("store", StringType()).add("page", LongType())  # as text, Java would be asked to read them
VALUE = StructType().add("data", BinaryType())
HOT = HotPages()  # of this process


class StatePages:
    """The pages of one store of the current shard, which is new unless it is `known`."""

    __slots__ = ("_known", "_state", "_store")

    def __init__(self, state: Any, known: bool, store: str) -> None:
        self._state, self._store, self._known = state, store, known

    def get(self, number: int) -> bytes | None:
        key = (self._store, number)
        if self._store == BOOK and not self._known and not self._state.containsKey(key):
            return None  # Spark would warn of a page that does not exist
        found = self._state.getValue(key)
        return None if found is None else bytes(found[0])

    def put(self, number: int, page: bytes) -> None:
        self._state.updateValue((self._store, number), (page,))

    def remove(self, number: int) -> None:
        self._state.removeKey((self._store, number))


class Level(StatefulProcessor):
    """A stateful operator, which Spark calls for every shard with rows. Rows for later levels and the sink pass by."""

    def __init__(self, conveyed: Conveyed, places: Places, level: int, tally: Tally | None) -> None:
        self.conveyed, self.places, self.level, self.tally = conveyed, places, level, tally

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        self.state = handle.getMapState(STATE, KEY, VALUE)
        self.shards = {key: number for number, key in enumerate(self.places.keys)}

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        mine: list[dict[Any, Any]] = []
        for frame in rows:
            records = frame.to_dict("records")
            others = [row for row in records if row["level"] != self.level]
            if others:
                yield pd.DataFrame(others, columns=ARROW.names)
            mine += [row for row in records if row["level"] == self.level]
        now = max((int(row["tick"]) for row in mine if row["blob"] is None), default=0)
        arrived = [blob_of(row) for row in mine if row["blob"] is not None]
        if mine:
            views = mine[0]["views"]
            out = self.run(self.conveyed.schedule.shards[self.shards[key[0]]], arrived, now, views)
            if out:
                yield pd.DataFrame([self.places.row(blob, views) for blob in out], columns=ARROW.names)

    def run(self, shard: ShardId, arrived: list[Any], now: int, views: str | None) -> list[Any]:
        shared = global_stores(self.conveyed, views)
        pages = partial(StatePages, self.state, (self.conveyed.start, shard) in HOT)
        mirrored, fed = restored_first(self.conveyed.schedule, shard, pages, arrived)
        with collecting_later():
            out = [*mirrored, *run(self.conveyed, shard, pages, fed, now, shared, HOT)]
        count(self.conveyed, self.tally)
        return out

    def close(self) -> None:
        """Do nothing: nothing is open."""


def count(conveyed: Conveyed, tally: Tally | None) -> None:
    """Send the fallbacks of this process to the driver; without a tally they are only logged."""
    counts = FALLBACKS.drain(conveyed.start)
    if counts and tally is not None:
        tally.add(counts)


def passing(
    conveyed: Conveyed, places: Places, groups: frozenset[int], tally: Tally | None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that processes the blobs of sub-topologies without state."""

    def through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        passes = None
        reader = conveyed.schedule.reader
        for batch in batches:
            views = batch.column("views")[0].as_py() if batch.num_rows else None
            if passes is None:
                passes = Passing(conveyed, global_stores(conveyed, views))
            found = []
            for blob in blobs_of(batch):
                if blob.data is not None and reader.get(blob.topic) in groups:
                    with collecting_later():
                        found += passes.through(blob)
                    count(conveyed, tally)
                else:
                    found.append(blob)
            ticks = batch.filter(batch.column("blob").is_null())
            kept = [blob for blob in found if blob.data is not None]
            if ticks.num_rows:
                yield ticks
            if kept:
                yield places.batch(kept, views)

    return through
