# pyright: basic
"""The sink of a conveyor: it unpacks blobs into rows of topics, in one transaction for each task and batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from moldau.spark.sink.writers import StreamSink

from ..blobs import HEADERS, unpacked
from .rows import blobs_of

ROWS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("headers", HEADERS),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)


class PackedSink(StreamSink):
    """The sink of topics, with blobs as rows."""

    def __init__(self, options: Mapping[str, str], schema: Any, overwrite: bool = False) -> None:
        super().__init__(options, from_arrow_schema(ROWS), overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        return super().write(topic_rows(iterator))


def topic_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows in the order in which shards wrote, whatever the order of blobs."""
    found = sorted((blob for batch in batches for blob in blobs_of(batch)), key=lambda blob: blob.origin)
    for blob in found:
        for batch in unpacked(blob.data):
            yield rows_of(blob.topic, batch)


def rows_of(topic: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    key, value, times, headers, partitions = batch.columns
    topics = pa.DictionaryArray.from_arrays(pa.array([0] * batch.num_rows, pa.int32()), [topic]).cast(pa.string())
    stamps = times.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    columns = [key, value, topics, partitions.cast(pa.int32()), headers, stamps]
    return pa.RecordBatch.from_arrays(columns, schema=ROWS)
