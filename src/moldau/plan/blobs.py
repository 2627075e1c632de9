# pyright: basic
"""Blobs: records of one topic packed together, so that Spark moves few rows and no single record goes through Java.

A blob is an Arrow stream of columns. Its origin is the number of the shard that made it (OUTSIDE if it was read from a
topic), its sequence number there (or its first offset), and the number of its part. A shuffle delivers blobs in any
order; sorted by origin, they are always processed in the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice, repeat
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from moldau.operators.record import Headers, Produced, Raw, new_tuple

R = TypeVar("R", Raw, Produced)
OUTSIDE = -1
RESTORED = -2  # in place of a shard's number: read from a changelog, to restore the stores of a shard
KEY_DECIDES = -1  # the partition of a blob whose records have partitions of their own, or leave it to their keys
MAX_RECORDS = 30_000
MAX_BYTES = 1 << 20
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TIMES, NUMBER = 2, 4  # the places of columns
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


def raw_records(blob: Blob, first: int | None = None) -> Iterator[Raw]:
    """Yield the records of a blob. With `first`, their offsets are counted from there."""
    counted = None if first is None else count(first)
    for batch in unpacked(blob.data):
        yield from raws(batch, blob.topic, blob.partition, counted)


def raws(batch: pa.RecordBatch, topic: str, partition: int, counted: Iterator[int] | None = None) -> Iterator[Raw]:
    keys, values, timestamps, headers, offsets = lists(batch)
    numbers = offsets if counted is None else islice(counted, len(keys))
    columns = repeat(topic, len(keys)), repeat(partition), numbers, keys, values, timestamps, headers
    return map(as_raw, zip(*columns, strict=False))


as_raw = partial(new_tuple, Raw)


def rows(data: bytes) -> Iterator[tuple[bytes | None, bytes | None, int, Headers, Any]]:
    for batch in unpacked(data):
        yield from zip(*lists(batch), strict=True)


def lists(batch: pa.RecordBatch) -> tuple[list[Any], ...]:
    key, value, timestamp, headers, number = batch.columns
    carried = [()] * len(headers)
    if headers.null_count < len(headers):
        carried = [read_headers(some) for some in headers.to_pylist()]
    return key.to_pylist(), value.to_pylist(), timestamp.to_pylist(), carried, number.to_pylist()


def read_headers(found: list[dict[str, Any]] | None) -> Headers:
    return tuple((one["key"], one["value"]) for one in found or ())


def written_headers(headers: Headers) -> list[dict[str, Any]] | None:
    return [{"key": name, "value": value} for name, value in headers] or None


def of_columns(
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    timestamps: Sequence[int],
    headers: Sequence[Headers],
    numbers: Sequence[int | None],
) -> pa.RecordBatch:
    carried = pa.array(map(written_headers, headers), HEADERS) if any(headers) else pa.nulls(len(keys), HEADERS)
    columns = [pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(timestamps, pa.int64())]
    return pa.RecordBatch.from_arrays([*columns, carried, pa.array(numbers, pa.int64())], schema=SCHEMA)


class Several(NamedTuple):
    """Records for a topic, as one batch."""

    topic: str
    batch: pa.RecordBatch


# Of nulls, since Arrow would import pandas to make an array of a list, which takes a second.
EMPTY = packed(pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in SCHEMA], schema=SCHEMA))


def of_raw(records: Sequence[Raw]) -> Iterator[bytes]:
    for some in cut(records):
        _, _, offsets, keys, values, timestamps, headers = zip(*some, strict=True)
        yield packed(of_columns(keys, values, timestamps, headers, offsets))


def of_produced(records: Sequence[Produced]) -> pa.RecordBatch:
    _, partitions, keys, values, timestamps, headers = zip(*records, strict=True)
    return of_columns(keys, values, timestamps, headers, partitions)


def of_batches(batches: Sequence[pa.RecordBatch]) -> Iterator[bytes]:
    """Join batches, and cut them where there are too many records or bytes."""
    whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    for at in range(0, whole.num_rows, MAX_RECORDS):
        some = whole.slice(at, MAX_RECORDS)
        keys, values = (pc.fill_null(pc.binary_length(column), 0).to_numpy() for column in some.columns[:2])  # pyright: ignore[reportAttributeAccessIssue]
        for first, end in parts((keys + values).tolist()):
            yield packed(some.slice(first, end - first))


def cut(records: Sequence[R]) -> Iterator[Sequence[R]]:
    """Cut records where they are too many or too large."""
    for at in range(0, len(records), MAX_RECORDS):
        some = records[at : at + MAX_RECORDS]
        for first, end in parts([len(one.key or b"") + len(one.value or b"") for one in some]):
            yield some[first:end]


def parts(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the bounds of parts that have at most MAX_BYTES, or one record."""
    first = size = 0
    if sum(sizes) > MAX_BYTES:
        for number, more in enumerate(sizes):
            if size and size + more > MAX_BYTES:
                yield first, number
                first, size = number, 0
            size += more
    yield first, len(sizes)
