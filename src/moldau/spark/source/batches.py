"""Turns fetched batches into Arrow columns: checked, decompressed, and decoded by compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from moldau.client import Batch, Fetched, Record
from moldau.spark.source.columns import HEADERS
from moldau.wire.compression import decompress
from moldau.wire.errors import WireError
from moldau.wire.kernel import memory
from moldau.wire.records import CODEC_MASK, CONTROL, MAX_DECOMPRESSED
from moldau.wire.records import column_reader as decode

SMALL = 2048  # bytes of a batch; below, a call costs more than a slower checksum
GROUP_BYTES = 32 << 20  # of records that become columns together, unless a single batch is larger
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
        """Return some records as they are; used for the few that are wrong."""
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
        """Return headers as Spark has them: null where a record has none."""
        counts = self.table[decode.HEADERS, : self.rows]
        total = int(counts.sum())
        found = np.empty((4, total), np.int64)
        if (count := decode.find_headers(memory(self.data), memory(self.table), self.rows, memory(found))) != total:
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
        decode.gather(*map(memory, (self.data, starts, sizes, offsets, out)))
        valid = pa.py_buffer(np.packbits(~absent, bitorder="little")) if nulls else None
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(out)]
        return pa.Array.from_buffers(type or pa.binary(), count, buffers, nulls)


def decoded(fetched: Fetched, first: int, last: int) -> Iterator[Decoded]:
    """Yield the committed records with first <= offset < last, in groups; WireError if a batch is damaged."""
    data = frozen(np.frombuffer(fetched.records, np.uint8))
    table = np.empty((decode.count_batches(memory(data), len(data)), decode.BATCH_COLUMNS), np.int64)
    decode.find_batches(memory(data), memory(table))
    rows = wanted(table, fetched, first, last)
    verify(data, table, rows)
    for body, batches in grouped(data, table, rows):
        found = _decode(body, batches, first, last)
        if found.rows:
            yield found


def wanted(table: np.ndarray, fetched: Fetched, first: int, last: int) -> np.ndarray:
    """Return the batches that have records to read: no markers, nothing that was aborted."""
    kept = (table[:, decode.ATTRIBUTES] & CONTROL == 0) & (table[:, decode.COUNT] != 0)
    kept &= (table[:, decode.LAST_OFFSET] >= first) & (table[:, decode.BASE_OFFSET] < last)
    if fetched.aborted:
        good = np.fromiter((batch.base_offset for batch in fetched.committed()), np.int64)
        kept &= np.isin(table[:, decode.BASE_OFFSET], good)
    wrong = kept & ((table[:, decode.COUNT] < 0) | (table[:, decode.COUNT] > MAX_DECOMPRESSED))
    for row in np.flatnonzero(wrong)[:1]:
        raise WireError(f"{named(table, row)} says that it has {table[row, decode.COUNT]} records")
    return np.flatnonzero(kept)


def verify(data: np.ndarray, table: np.ndarray, rows: np.ndarray) -> None:
    """Check CRCs, of small batches by compiled code, of large ones by the processor's own instruction."""
    damaged = decode.first_damaged(*map(memory, (data, table, rows)), SMALL, memory(CRC_TABLE))
    large = rows[table[rows, decode.SIZE] > SMALL]
    for row, at in zip(large.tolist(), table[large, decode.POSITION].tolist(), strict=True):
        if not Batch(data.data, at).is_valid():
            damaged = row
            break
    if damaged >= 0:
        raise WireError(f"{named(table, damaged)} has a wrong CRC")


def grouped(data: np.ndarray, table: np.ndarray, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield groups of batches that become columns together, with the decompressed memory that they are in."""
    if not (table[rows, decode.ATTRIBUTES] & CODEC_MASK).any():
        if len(rows):
            yield data, table[rows]
        return
    bodies: list[Any] = []
    kept: list[int] = []
    size = 0
    for row in rows.tolist():
        body = data.data[table[row, decode.START] : table[row, decode.END]]
        body = decompress(int(table[row, decode.ATTRIBUTES]) & CODEC_MASK, body, MAX_DECOMPRESSED)
        if bodies and size + len(body) > GROUP_BYTES:
            yield joined(bodies, table[kept])
            bodies, kept, size = [], [], 0
        bodies.append(body)
        kept.append(row)
        size += len(body)
    if bodies:
        yield joined(bodies, table[kept])


def joined(bodies: Sequence[bytes], batches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put all bodies into one memory, and set the places of their batches in it."""
    ends = np.cumsum([len(body) for body in bodies])
    batches[:, decode.START], batches[:, decode.END] = [0, *ends[:-1]], ends
    return frozen(np.frombuffer(b"".join(bodies), np.uint8)), batches


def _decode(data: np.ndarray, batches: np.ndarray, first: int, last: int) -> Decoded:
    for row in np.flatnonzero(batches[:, decode.COUNT] > batches[:, decode.END] - batches[:, decode.START])[:1]:
        raise WireError(f"{named(batches, row)} says that it has {batches[row, decode.COUNT]} records")
    table = np.empty((decode.FIELDS, int(batches[:, decode.COUNT].sum())), np.int64)
    rows = decode.find_records(memory(data), memory(batches), first, last, memory(table))
    if rows < 0:
        raise WireError(f"{named(batches, -1 - rows)} is damaged")
    return Decoded(rows, data, table)


def named(table: np.ndarray, row: Any) -> str:
    return f"the record batch at offset {table[row, decode.BASE_OFFSET]}"


def frozen(array: np.ndarray) -> np.ndarray:
    """Make an array read-only: compiled code is made anew for each kind of memory."""
    array.flags.writeable = False
    return array


def crc_table() -> np.ndarray:
    """Compute the table of CRC-32C by byte."""
    sums = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        sums.append(byte)
    return np.array(sums, np.uint32)


CRC_TABLE = crc_table()
