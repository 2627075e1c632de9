# pyright: basic
"""The sink of a lane: that of a conveyor, which also tells the driver's machine of flows that have failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, DataSourceStreamWriter, WriterCommitMessage

from moldau.spark.sink.place import Outcome
from moldau.spark.sink.writers import Written

from ..blobs import rows
from ..conveyor.sink import PackedSink
from .failures import TOPIC, Failure, blaming, leave
from .rows import LANE_COLUMNS

FORMAT = "moldau-lane"
OWN = "lane."
FOLDER = "lane.folder"  # on the driver's machine


@dataclass(frozen=True, slots=True)
class Told(Written):
    """What a task of a lane tells the driver."""

    outcome: Outcome
    failures: tuple[Failure, ...] = ()


class LaneSink(PackedSink):
    def __init__(self, options: Mapping[str, str], schema: Any, overwrite: bool = False) -> None:
        super().__init__({n: text for n, text in options.items() if not n.startswith(OWN)}, schema, overwrite)
        self.folder = options[FOLDER]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Told:
        found: list[Failure] = []
        writers: dict[str, tuple[int, int]] = {}
        try:
            written = super().write(noticed(iterator, found, writers))
        except Exception as error:
            topic = next((topic for topic in sorted(writers, key=len, reverse=True) if topic in str(error)), None)
            if topic is None:
                raise
            with blaming(*writers[topic]):
                raise
        return Told(written.outcome, tuple(found))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        super().commit(messages, batchId)
        leave(Path(self.folder), [one for told in messages if isinstance(told, Told) for one in told.failures])


def noticed(
    batches: Iterable[pa.RecordBatch], found: list[Failure], writers: dict[str, tuple[int, int]]
) -> Iterator[pa.RecordBatch]:
    """Hand rows on, and note failures among them, and who writes to which topic."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("topic", "flow", "attempt")]
        for topic, flow, attempt, blob in zip(*columns, batch.column("blob"), strict=True):
            if topic == TOPIC:
                found += [Failure.of_bytes(value) for _, value, *_ in rows(blob.as_py()) if value is not None]
            else:
                writers[topic] = flow, attempt
        yield batch


class LaneDataSource(DataSource):
    """Both ends of a lane. It is not for users: its rows are blobs."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return LANE_COLUMNS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        from .source import LaneSource

        return LaneSource(dict(self.options.items()))

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        return LaneSink(self.options, schema, overwrite)
