"""The columns of the source: those of Spark's own Kafka source, or typed keys and values in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from moldau.client import Client
from moldau.spark import dead_letters
from moldau.spark.batches import HEADERS, Decoded
from moldau.spark.dead_letters import DeadLetter
from moldau.spark.planning import Range
from moldau.spark.reading import Unreadable
from moldau.spark.typed import Pinned
from moldau.spark.typed_options import DEAD_LETTERS, Typed

RAW = (
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", "UTC")),
    ("timestampType", pa.int32()),
)


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns there are, and what becomes of records that do not fit them."""

    headers: bool
    typed: Typed
    pinned: tuple[Pinned, ...] = ()
    query: str = ""  # what dead letters call it

    def arrow_schema(self) -> pa.Schema:
        own = {one.name: one.arrow_type() for one in self.pinned}
        fields = [(name, own.get(name, type)) for name, type in RAW]
        more = [("headers", HEADERS)] if self.headers else []
        wrong = [(self.typed.corrupt_column, pa.binary())] if self.typed.corrupt_column else []
        return pa.schema([*fields, *more, *wrong])

    def spark_schema(self) -> StructType:
        return from_arrow_schema(self.arrow_schema())

    def batches(self, client: Client, chunks: Iterable[tuple[Range, Decoded]]) -> Iterator[pa.RecordBatch]:
        schema = self.arrow_schema()
        for wanted, chunk in chunks:
            arrays, wrong = self._arrays(chunk, wanted)
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            if wrong:
                self._tell(client, chunk, wanted, wrong)
                if self.typed.mode == "dropmalformed":
                    kept = np.ones(chunk.rows, np.bool_)
                    kept[list(wrong)] = False
                    batch = batch.filter(pa.array(kept))
            yield batch

    def _arrays(self, chunk: Decoded, wanted: Range) -> tuple[list[pa.Array], dict[int, tuple[str, str]]]:
        """The columns, and the rows that are wrong: which part of them, and why."""
        raw = {"key": chunk.keys, "value": chunk.values}
        headers = chunk.headers if self.headers or (self.pinned and chunk.has_headers) else None
        shown, wrong = dict(raw), {}
        for one in self.pinned:
            made = one.convert(raw[one.name], wanted.topic, headers)
            shown[one.name] = made.values
            wrong |= {row: (one.name, why) for row, why in made.errors.items()}
        arrays = [
            shown["key"],
            shown["value"],
            pa.repeat(wanted.topic, chunk.rows),
            pa.array(np.full(chunk.rows, wanted.partition, np.int32)),
            chunk.offsets,
            chunk.timestamps,
            chunk.timestamp_types,
        ]
        if self.headers:
            arrays.append(headers)
        if self.typed.corrupt_column:
            bad = [row for row, (name, _) in wrong.items() if name == "value"]
            arrays.append(_only(raw["value"], bad))
        return arrays, wrong

    def _tell(self, client: Client, chunk: Decoded, wanted: Range, wrong: dict[int, tuple[str, str]]) -> None:
        """Records that are wrong: fail, or send them where they are kept."""
        if self.typed.mode == "failfast":
            row, (name, why) = min(wrong.items())
            raise Unreadable(
                f"The {name} of the record at offset {chunk.offsets[row]} of {wanted.name} does not decode: {why}. "
                f"To go on without such records set mode to dropmalformed or permissive, or {DEAD_LETTERS}."
            )
        if self.typed.dead_letters:
            rows = sorted(wrong)
            letters = [
                DeadLetter(wanted.topic, wanted.partition, record, f"{wrong[row][0].upper()}_CONVERTER", wrong[row][1])
                for row, record in zip(rows, chunk.records(rows), strict=True)
            ]
            dead_letters.send(client, self.typed.dead_letters, letters, self.query, self.typed.context_headers)


def _only(values: pa.Array, rows: list[int]) -> pa.Array:
    """The values of some rows, null elsewhere."""
    kept = np.full(len(values), -1, np.int64)
    kept[rows] = rows
    return values.take(pa.array(kept, mask=kept < 0))
