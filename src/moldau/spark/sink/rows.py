"""Turns rows of a data frame into columns of records; the names and types are in `columns.py`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from moldau.serdes.arrow.batch import Slices
from moldau.spark.sink.columns import RESERVED
from moldau.spark.sink.options import SinkOptions

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Rows:
    """Records of one topic, column by column. `partitions` is -1 where the row does not name one."""

    keys: Slices
    values: Slices
    times: np.ndarray
    partitions: np.ndarray
    header_bounds: np.ndarray
    header_keys: Slices
    header_values: Slices

    def __len__(self) -> int:
        return len(self.times)

    @property
    def sizes(self) -> np.ndarray:
        """Return the bytes of key, value and headers of each row."""
        names = self.header_keys.ends - self.header_keys.starts
        words = self.header_values.ends - self.header_values.starts
        total = np.concatenate(([0], np.cumsum(names + words)))
        headers = total[self.header_bounds[1:]] - total[self.header_bounds[:-1]]
        return _lengths(self.keys) + _lengths(self.values) + headers


def _lengths(column: Slices) -> np.ndarray:
    return np.where(column.present, column.ends - column.starts, 0)


def by_topic(batch: pa.RecordBatch, options: SinkOptions) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each topic, in their order; the option overrides the column."""
    if options.topic is not None:
        yield options.topic, batch
        return
    topics = batch.column("topic")
    if topics.null_count:
        raise ValueError("There is a row whose topic is null: fill the column, or set the option topic.")
    distinct = pc.unique(topics)
    for topic in distinct:
        yield topic.as_py(), batch if len(distinct) == 1 else batch.filter(pc.equal(topics, topic))


def value_array(batch: pa.RecordBatch) -> pa.Array:
    """The column value, or a struct of all columns that are not something else of a record."""
    if "value" in batch.schema.names:
        return batch.column("value")
    fields = [field for field in batch.schema if field.name not in RESERVED]
    return pa.StructArray.from_arrays([batch.column(field.name) for field in fields], fields=fields)


def rows_of(batch: pa.RecordBatch, keys: pa.Array, values: pa.Array, with_headers: bool) -> Rows:
    """`keys` and `values` are bytes already."""
    names, count = batch.schema.names, batch.num_rows
    headers = batch.column("headers") if "headers" in names and with_headers else None
    partitions = batch.column("partition") if "partition" in names else None
    return Rows(
        Slices.of(keys),
        Slices.of(values),
        _times(batch.column("timestamp") if "timestamp" in names else None, count),
        np.full(count, -1, np.int32) if partitions is None else _partitions(partitions),
        *_headers(headers, count),
    )


def _times(column: pa.Array | None, count: int) -> np.ndarray:
    """Return times in ms; a row without one gets the current time, as with producers."""
    now = int(time.time() * 1000)
    if column is None:
        return np.full(count, now, np.int64)
    found = pc.fill_null(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()), now * 1000)
    return found.to_numpy(zero_copy_only=False) // 1000


def _partitions(column: pa.Array) -> np.ndarray:
    found = pc.fill_null(column, -1).to_numpy(zero_copy_only=False)
    given = column.is_valid().to_numpy(zero_copy_only=False)
    wrong = given & (found < 0)
    if wrong.any():
        raise ValueError(f"There is a row for partition {found[wrong][0]}: partitions are counted from 0.")
    return found.astype(np.int32)


def _headers(column: pa.Array | None, count: int) -> tuple[np.ndarray, Slices, Slices]:
    if column is None:
        none = Slices.of(pa.array([], pa.binary()))
        return np.zeros(count + 1, np.int64), none, none
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    items = column.flatten()  # without what lies behind nulls
    if items.null_count:
        raise ValueError("There is a row with a header that is null.")
    keys, values = (items.field(name) for name in ("key", "value"))
    if keys.null_count:
        raise ValueError("There is a row with a header whose key is null.")
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), Slices.of(keys), Slices.of(values)
