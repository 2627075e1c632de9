"""What was fetched as Arrow columns: batches checked and decompressed, their records decoded by compiled code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from moldau.client import Batch, Fetched, Record
from moldau.spark import decode
from moldau.spark.columns import HEADERS
from moldau.wire.compression import decompress
from moldau.wire.errors import WireError
from moldau.wire.records import HEADER_SIZE, MAX_DECOMPRESSED

BATCH_COLUMNS = 7
GROUP_BYTES = 32 << 20  # records that become columns at once are no larger, unless a single batch is
MAX_BYTES = (1 << 31) - 1  # of a column: its offsets are 32 bits wide


@dataclass(slots=True)
class Decoded:
    """Records of one partition as columns. Times are in microseconds."""

    rows: int
    data: np.ndarray
    table: np.ndarray

    @property
    def offsets(self) -> pa.Array:
        return self._numbers(decode.OFFSET, pa.int64())

    @property
    def timestamps(self) -> pa.Array:
        return self._numbers(decode.TIME, pa.timestamp("us", "UTC"))

    @property
    def timestamp_types(self) -> pa.Array:
        return pa.array(self.table[decode.TYPE, : self.rows].astype(np.int32))

    @property
    def keys(self) -> pa.Array:
        return self._bytes(self.table, decode.KEY_AT, self.rows)

    @property
    def values(self) -> pa.Array:
        return self._bytes(self.table, decode.VALUE_AT, self.rows)

    @property
    def has_headers(self) -> bool:
        return bool(self.table[decode.HEADERS, : self.rows].any())

    def records(self, rows: Sequence[int]) -> list[Record]:
        """Some of them as they are, for those few that something is wrong with."""
        some = pa.array(rows, pa.int64())
        keys, values = (one.take(some).to_pylist() for one in (self.keys, self.values))
        headers = self.headers.take(some)
        out = []
        for number, row in enumerate(rows):
            own = headers.slice(number, 1).flatten()
            names = [one.decode(errors="surrogateescape") for one in own.field("key").cast(pa.binary()).to_pylist()]
            pairs = tuple(zip(names, own.field("value").to_pylist(), strict=True))
            offset, time_us = (int(self.table[one, row]) for one in (decode.OFFSET, decode.TIME))
            out.append(Record(offset, time_us // decode.MICROS, keys[number], values[number], pairs))
        return out

    @property
    def headers(self) -> pa.Array:
        """As Spark has them: null where a record has none."""
        counts = self.table[decode.HEADERS, : self.rows]
        total = int(counts.sum())
        found = np.empty((4, total), np.int64)
        if (count := decode.find_headers(self.data, self.table, self.rows, found)) != total:
            raise WireError(f"the record at offset {self.table[decode.OFFSET, -1 - count]} has damaged headers")
        names = self._bytes(found, decode.NAME_AT, total, pa.string())
        contents = self._bytes(found, decode.CONTENT_AT, total)
        items = pa.StructArray.from_arrays([names, contents], fields=list(HEADERS.value_type))
        offsets = np.zeros(self.rows + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        valid = pa.py_buffer(np.packbits(counts > 0, bitorder="little"))
        return pa.Array.from_buffers(HEADERS, self.rows, [valid, pa.py_buffer(offsets)], children=[items])

    def _numbers(self, row: int, type: pa.DataType) -> pa.Array:
        return pa.Array.from_buffers(type, self.rows, [None, pa.py_buffer(self.table[row, : self.rows])])

    def _bytes(self, table: np.ndarray, row: int, count: int, type: pa.DataType | None = None) -> pa.Array:
        starts, sizes = table[row, :count], table[row + 1, :count]
        absent = sizes < 0
        nulls = int(np.count_nonzero(absent))
        total = int(sizes.sum()) + nulls
        if total > MAX_BYTES:
            raise WireError(f"records of {total} bytes in one batch; {MAX_BYTES} can be read")
        offsets, out = np.empty(count + 1, np.int32), np.empty(total, np.uint8)
        decode.gather(self.data, starts, sizes, offsets, out)
        valid = pa.py_buffer(np.packbits(~absent, bitorder="little")) if nulls else None
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(out)]
        return pa.Array.from_buffers(type or pa.binary(), count, buffers, nulls)


def decoded(fetched: Fetched, first: int, last: int) -> Iterator[Decoded]:
    """The committed records with first <= offset < last, group by group. WireError where a batch is damaged."""
    wanted = (one for one in fetched.committed() if one.last_offset >= first and one.base_offset < last and one.count)
    for group in grouped(checked(wanted)):
        found = _decoded(group, first, last)
        if found.rows:
            yield found


def checked(batches: Iterable[Batch]) -> Iterator[Batch]:
    for batch in batches:
        batch.verify()
        yield batch


def grouped(batches: Iterable[Batch]) -> Iterator[list[tuple[Batch, Any]]]:
    """Batches with their records decompressed, as many as become columns at once."""
    group: list[tuple[Batch, Any]] = []
    size = 0
    for batch in batches:
        body = batch.view[HEADER_SIZE:]
        if batch.compression:
            body = decompress(batch.compression, body, MAX_DECOMPRESSED)
        if group and size + len(body) > GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append((batch, body))
        size += len(body)
    if group:
        yield group


def _decoded(group: Sequence[tuple[Batch, Any]], first: int, last: int) -> Decoded:
    data, starts = joined([body for _, body in group])
    batches = np.empty((len(group), BATCH_COLUMNS), np.int64)
    for number, (batch, body) in enumerate(group):
        if not 0 <= batch.count <= len(body):
            raise WireError(f"the record batch at offset {batch.base_offset} says that it has {batch.count} records")
        start, kind = starts[number], batch.timestamp_type
        times = (batch.base_timestamp, batch.max_timestamp, kind)
        batches[number] = (start, start + len(body), batch.count, batch.base_offset, *times)
    table = np.empty((decode.FIELDS, int(batches[:, decode.COUNT].sum())), np.int64)
    rows = decode.find_records(data, batches, first, last, table)
    if rows < 0:
        raise WireError(f"the record batch at offset {group[-1 - rows][0].base_offset} is damaged")
    return Decoded(rows, data, table)


def joined(bodies: Sequence[Any]) -> tuple[np.ndarray, list[int]]:
    """All bodies in one array, and where each begins."""
    whole = bodies[0] if len(bodies) == 1 else b"".join(bodies)
    starts, at = [], 0
    for body in bodies:
        starts.append(at)
        at += len(body)
    data = np.frombuffer(whole, np.uint8) if at else np.zeros(1, np.uint8)
    data.flags.writeable = False  # one kind of memory, or compiled code is made twice
    return data, starts
