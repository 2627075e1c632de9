"""Reads batches of partitions without a group; the next fetch runs while one is printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from moldau.admin import TopicPartition
from moldau.client import Batch, Client, ClientError, Error, Fetched, Fetcher, Record
from moldau.client import records as records_of
from moldau.wire.records import quick

PARTITION_BYTES = 4 << 20
WAIT_MS = 500
COMMITTED = "read_committed"


class Wanted(StrEnum):
    """The parts of records that are wanted: fewer are read faster, where possible."""

    VALUES = "values"
    PAIRS = "pairs"
    ROWS = "rows"
    RECORDS = "records"


class Chunk(NamedTuple):
    """Records of a partition, in order; or only their rows or values, if that is enough."""

    topic: str
    partition: int
    records: list[Record]
    append_time: bool = False
    values: list[bytes] | None = None
    bare_rows: list[quick.Row] | None = None
    pairs: quick.Pairs | None = None

    @property
    def rows(self) -> Sequence[quick.Row]:
        """Return the fields of records as tuples."""
        return self.records if self.bare_rows is None else self.bare_rows

    @property
    def size(self) -> int:
        if self.pairs is not None:
            return len(self.pairs[0])
        return len(self.rows) if self.values is None else len(self.values)

    def first(self, most: int) -> Chunk:
        """Return at most so many of the records."""
        if most >= self.size:
            return self
        return self._replace(
            records=self.records[:most],
            values=self.values and self.values[:most],
            bare_rows=self.bare_rows and self.bare_rows[:most],
            pairs=self.pairs and (self.pairs[0][:most], self.pairs[1][:most]),
        )


@dataclass(slots=True)
class Reader:
    """A reader of partitions. Iterating yields lists of chunks, an empty one after a fetch that brought nothing.

    `positions` are the next offsets, `stops` the first ones not to read. With `to_end` reading ends at the end.
    """

    client: Client
    positions: dict[TopicPartition, int]
    stops: Mapping[TopicPartition, int] | None = None
    to_end: bool = False
    isolation: str = "read_uncommitted"
    wanted: Wanted = Wanted.RECORDS

    def __iter__(self) -> Iterator[list[Chunk]]:
        fetcher = Fetcher(self.client, isolation_level=self.isolation)
        self._drop_done({})
        threads = ThreadPoolExecutor(1, "fetch")
        try:
            coming = self._fetch(fetcher, threads)
            while coming is not None:
                found = coming.result()
                before = dict(self.positions)
                for place, fetched in found.items():
                    self._advance(place, fetched)
                self._drop_done(found)
                coming = self._fetch(fetcher, threads)
                yield [chunk for place, fetched in found.items() for chunk in self._chunks(place, fetched, before)]
        finally:  # a fetch that is under way ends when the client is closed
            threads.shutdown(wait=False, cancel_futures=True)

    def _fetch(self, fetcher: Fetcher, threads: ThreadPoolExecutor) -> Future[dict[TopicPartition, Fetched]] | None:
        if not self.positions:
            return None
        most = max(PARTITION_BYTES, self.client.config["max.partition.fetch.bytes"])
        wanted = dict(self.positions)
        return threads.submit(fetcher.fetch, wanted, max_wait_ms=WAIT_MS, max_partition_bytes=most)

    def _advance(self, place: TopicPartition, fetched: Fetched) -> None:
        """Move the position after the last complete batch, and over what was deleted meanwhile."""
        if fetched.error is Error.OFFSET_OUT_OF_RANGE and self.positions[place] < fetched.log_start_offset:
            self.positions[place] = fetched.log_start_offset
            return
        if fetched.error and not fetched.error.retriable:
            raise ClientError(fetched.error, f"{place[0]}-{place[1]}: {fetched.error.message}", retriable=False)
        for batch in fetched.batches():
            self.positions[place] = max(self.positions[place], batch.next_offset)

    def _drop_done(self, found: Mapping[TopicPartition, Fetched]) -> None:
        for place, position in list(self.positions.items()):
            fetched = found.get(place)
            at_end = (
                self.to_end
                and fetched is not None
                and not fetched.error
                and position >= (fetched.last_stable_offset if self.isolation == COMMITTED else fetched.high_watermark)
            )
            if at_end or (self.stops is not None and position >= self.stops[place]):
                del self.positions[place]

    def _chunks(self, place: TopicPartition, fetched: Fetched, before: Mapping[TopicPartition, int]) -> Iterator[Chunk]:
        first, stop = before[place], None if self.stops is None else self.stops[place]
        for batch in self._batches(fetched):
            if batch.next_offset <= first or (stop is not None and batch.base_offset >= stop):
                continue
            cut = batch.base_offset < first or (stop is not None and batch.next_offset > stop)
            if not cut and (chunk := self._quickly(place, batch)) is not None:
                yield chunk
                continue
            found = list(records_of(batch))
            if cut:
                found = [one for one in found if one.offset >= first and (stop is None or one.offset < stop)]
            yield Chunk(*place, found, bool(batch.timestamp_type))

    def _quickly(self, place: TopicPartition, batch: Batch) -> Chunk | None:
        append_time = bool(batch.timestamp_type)
        if self.wanted is Wanted.VALUES and (values := quick.values(batch)) is not None:
            return Chunk(*place, [], append_time, values)
        if self.wanted is Wanted.PAIRS and (pairs := quick.pairs(batch)) is not None:
            return Chunk(*place, [], append_time, pairs=pairs)
        if self.wanted is Wanted.ROWS and (rows := quick.rows(batch)) is not None:
            return Chunk(*place, [], append_time, bare_rows=rows)
        return None

    def _batches(self, fetched: Fetched) -> Iterator[Batch]:
        if self.isolation == COMMITTED:
            return fetched.committed()
        return (batch for batch in fetched.batches() if not batch.is_control)
