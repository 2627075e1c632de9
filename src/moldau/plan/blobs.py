# pyright: basic
"""Blobs: records of one topic packed together, so that Spark moves few rows and no record crosses Java by itself.

A blob is an Arrow stream of columns. It knows where it comes from: the number of the shard that made it (or OUTSIDE,
for what was read from a topic), its place there (or its first offset), and which part of that it is. Shuffles deliver
in any order; sorted by that, blobs are always fed in the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from moldau.operators.record import Headers, Produced, Raw

OUTSIDE = -1
RESTORED = -2  # in place of a shard's number: from a changelog, to be put back into the stores of the shard
KEY_DECIDES = -1  # the partition of a blob whose records say themselves where they go, or leave it to their keys
MAX_RECORDS = 10_000
MAX_BYTES = 1 << 20
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", HEADERS),
        ("number", pa.int64()),  # of what was read: the offset; of what is to be written: the partition or null
    ]
)


@dataclass(slots=True)
class Blob:
    topic: str
    partition: int
    source: int
    sequence: int
    data: bytes
    more: bool = False  # whether there is more of this partition that was not read yet
    part: int = 0

    @property
    def origin(self) -> tuple[str, int, int, int, int]:
        return self.topic, self.partition, self.source, self.sequence, self.part


def packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def unpacked(data: bytes) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        yield from reader


def raw_records(blob: Blob) -> Iterator[Raw]:
    """The records of a blob that was read from a topic."""
    topic, partition = blob.topic, blob.partition
    for key, value, timestamp, headers, offset in rows(blob.data):
        yield Raw(topic, partition, offset, key, value, timestamp, headers)


def rows(data: bytes) -> Iterator[tuple[bytes | None, bytes | None, int, Headers, Any]]:
    for batch in unpacked(data):
        key, value, timestamp, headers, number = batch.columns
        carried = map(read_headers, headers.to_pylist()) if headers.null_count < len(headers) else [()] * len(headers)
        yield from zip(
            key.to_pylist(), value.to_pylist(), timestamp.to_pylist(), carried, number.to_pylist(), strict=True
        )


def read_headers(found: list[dict[str, Any]] | None) -> Headers:
    return tuple((one["key"], one["value"]) for one in found or ())


def written_headers(headers: Headers) -> list[dict[str, Any]] | None:
    return [{"key": name, "value": value} for name, value in headers] or None


def columns(records: Iterable[tuple[bytes | None, bytes | None, int, Headers, int | None]]) -> Iterator[pa.RecordBatch]:
    """Records as columns, cut where they become too many or too large."""
    group: list[tuple[bytes | None, bytes | None, int, Headers, int | None]] = []
    size = 0
    for record in records:
        group.append(record)
        size += len(record[0] or b"") + len(record[1] or b"")
        if len(group) >= MAX_RECORDS or size >= MAX_BYTES:
            yield batch_of(group)
            group, size = [], 0
    if group:
        yield batch_of(group)


def batch_of(records: list[tuple[bytes | None, bytes | None, int, Headers, int | None]]) -> pa.RecordBatch:
    keys, values, timestamps, headers, numbers = zip(*records, strict=True)
    carried = [written_headers(some) for some in headers] if any(headers) else [None] * len(records)
    arrays = [keys, values, timestamps, carried, numbers]
    return pa.record_batch(
        [pa.array(array, field.type) for array, field in zip(arrays, SCHEMA, strict=True)], schema=SCHEMA
    )


EMPTY = packed(pa.RecordBatch.from_pylist([], schema=SCHEMA))


def of_raw(records: Iterable[Raw]) -> Iterator[bytes]:
    return map(packed, columns((raw.key, raw.value, raw.timestamp, raw.headers, raw.offset) for raw in records))


def of_produced(records: Iterable[Produced]) -> Iterator[bytes]:
    return map(packed, columns((out.key, out.value, out.timestamp, out.headers, out.partition) for out in records))
