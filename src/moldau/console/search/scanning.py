"""A running search: partitions are read in bulk, decoded by compiled code, and searched by DuckDB.

All of that releases the interpreter's lock, so pages work while it runs in a thread. It can be cancelled between two
chunks of some megabytes, and ends by itself when enough was found.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa

from moldau.admin import offsets
from moldau.client import Client
from moldau.console.browsing import MOST_BYTES, Wanted
from moldau.console.decoding import Decoder
from moldau.console.model.problems import Refused
from moldau.console.model.records import Row
from moldau.console.search.columns import Typed, headers
from moldau.console.search.expression import Condition
from moldau.records import positions
from moldau.serdes.registry import Registry
from moldau.spark.source.batches import Decoded
from moldau.spark.source.planning import Range
from moldau.spark.source.reading import Unreadable, read
from moldau.wire.errors import WireError

PATIENCE_MS = 30_000
SETTINGS = {"threads": 2, "memory_limit": "512MB", "enable_external_access": False, "lock_configuration": True}
MICROS = 1000
Connect = Callable[[], Registry]


@dataclass(slots=True)
class Search:
    """The progress of a search: written by its thread, read by the page."""

    most: int
    total: int = 0
    scanned: int = 0
    rows: list[Row] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def rate(self) -> float:
        """Return records per second."""
        return self.scanned / max(1e-6, (self.ended or time.monotonic()) - self.began)

    @property
    def progress(self) -> float:
        """Return the progress from 0 to 1. Compaction leaves gaps, so a search may end before 1."""
        return 1.0 if self.ended or not self.total else min(1.0, self.scanned / self.total)

    @property
    def has_enough(self) -> bool:
        kept = sum(len(row.key.data) + len(row.value.data) for row in self.rows)
        return len(self.rows) >= self.most or kept > MOST_BYTES


def run(
    search: Search, client: Client, wanted: Wanted, condition: Condition, decoder: Decoder, connect: Connect
) -> None:
    """Search until the end, until enough is found or until it is cancelled."""
    ranges = _ranges(client, wanted)
    search.total = sum(one.size for one in ranges)
    search.began = time.monotonic()
    matcher = Matcher(wanted.topic, condition, connect)
    try:
        chunks = read(client, ranges, isolation="read_committed", fail_on_data_loss=False, patience_ms=PATIENCE_MS)
        for place, chunk in chunks:
            rows = matcher.rows(place.partition, chunk)[: search.most - len(search.rows)]
            search.scanned += chunk.rows
            if rows:
                search.rows += [decoder.row(place.partition, record) for record in chunk.records(rows)]
            if search.cancelled.is_set() or search.has_enough:
                break
    except (WireError, Unreadable) as error:
        raise Refused(f"{wanted.topic} cannot be read further: {error}") from None
    finally:
        search.ended = time.monotonic()
        matcher.close()


def _ranges(client: Client, wanted: Wanted) -> list[Range]:
    places = wanted.places(client)
    starts = positions.starts(client, wanted.span, places)
    ends = offsets.one_time(client, places, offsets.LATEST, committed=True)
    return [Range(*place, starts[place], ends[place]) for place in places if ends[place] > starts[place]]


class Matcher:
    """A condition that is applied to chunks of records."""

    def __init__(self, topic: str, condition: Condition, connect: Connect) -> None:
        self._connection = duckdb.connect(config=SETTINGS)
        self._uses = condition.columns
        self._typed = Typed(topic, connect, self._to_json)
        documents = [
            f"case when json_valid({name}) then {name} end as {name}_json"
            for name in ("key", "value")
            if f"{name}_json" in condition.sql
        ]
        inner = ", ".join(("*", *documents))
        self._sql = f"select row from (select {inner} from chunk) where {condition.sql} order by row"

    def rows(self, partition: int, found: Decoded) -> list[int]:
        """Return the numbers of the records for which it is true."""
        self._connection.register("chunk", self._table(partition, found))
        try:
            return self._connection.execute(self._sql).fetchnumpy()["row"].tolist()
        except duckdb.Error as error:
            raise Refused(f"The condition cannot be evaluated: {str(error).splitlines()[0]}") from None
        finally:
            self._connection.unregister("chunk")

    def _table(self, partition: int, found: Decoded) -> pa.Table:
        makers: dict[str, Callable[[], pa.Array]] = {
            "key": lambda: self._typed.texts(found.keys, "key"),
            "value": lambda: self._typed.texts(found.values, "value"),
            "headers": lambda: headers(found),
            "partition": lambda: pa.array(np.full(found.rows, partition, np.int32)),
            "offset": lambda: found.offsets,
            "timestamp": lambda: pa.array(found.timestamps.cast(pa.int64()).to_numpy() // MICROS),
        }
        used = {name: make() for name, make in makers.items() if name in self._uses}
        return pa.table({"row": pa.array(np.arange(found.rows)), **used})

    def _to_json(self, values: pa.Array) -> pa.Array:
        self._connection.register("decoded", pa.table({"v": values}))
        try:
            found = self._connection.sql("select to_json(v)::varchar as v from decoded").to_arrow_table()
        finally:
            self._connection.unregister("decoded")
        return found.column("v").combine_chunks()

    def close(self) -> None:
        self._connection.close()
