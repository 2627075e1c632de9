"""Fills columns with decoded records, and handles those that do not decode as the user wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from moldau.client import Client
from moldau.spark.source import dead_letters
from moldau.spark.source.batches import Decoded
from moldau.spark.source.columns import Columns
from moldau.spark.source.dead_letters import DeadLetter
from moldau.spark.source.planning import Range
from moldau.spark.source.reading import Unreadable
from moldau.spark.source.typed_options import DEAD_LETTERS

Wrong = dict[int, tuple[str, str]]  # row -> which part of it, and why


@dataclass(frozen=True, slots=True)
class Filling:
    """The conversion of decoded records into Arrow batches."""

    columns: Columns
    client: Client

    def batches(self, chunks: Iterable[tuple[Range, Decoded]]) -> Iterator[pa.RecordBatch]:
        columns, schema = self.columns, self.columns.arrow_schema()
        for wanted, chunk in chunks:
            arrays, wrong = self._arrays(chunk, wanted)
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            if wrong:
                self._report(chunk, wanted, wrong)
                if columns.typed.mode == "dropmalformed":
                    kept = np.ones(chunk.rows, np.bool_)
                    kept[list(wrong)] = False
                    batch = batch.filter(pa.array(kept))
            yield batch

    def _arrays(self, chunk: Decoded, wanted: Range) -> tuple[list[pa.Array], Wrong]:
        """Return the columns, and for each wrong row which part is wrong and why."""
        columns = self.columns
        raw = {"key": chunk.keys, "value": chunk.values}
        headers = chunk.headers if columns.headers or (columns.pinned and chunk.has_headers) else None
        shown, wrong = dict(raw), {}
        for one in columns.pinned:
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
        if columns.headers:
            arrays.append(headers)
        if columns.typed.corrupt_column:
            bad = [row for row, (name, _) in wrong.items() if name == "value"]
            arrays.append(_only(raw["value"], bad))
        return arrays, wrong

    def _report(self, chunk: Decoded, wanted: Range, wrong: Wrong) -> None:
        """Fail because of wrong records, or send them to the topic of dead letters."""
        columns, typed = self.columns, self.columns.typed
        if typed.mode == "failfast":
            row, (name, why) = min(wrong.items())
            raise Unreadable(
                f"The {name} of the record at offset {chunk.offsets[row]} of {wanted.name} does not decode: {why}. "
                f"To go on without such records set mode to dropmalformed or permissive, or {DEAD_LETTERS}."
            )
        if typed.dead_letters:
            rows = sorted(wrong)
            letters = [
                DeadLetter(wanted.topic, wanted.partition, record, f"{wrong[row][0].upper()}_CONVERTER", wrong[row][1])
                for row, record in zip(rows, chunk.records(rows), strict=True)
            ]
            dead_letters.send(self.client, typed.dead_letters, letters, columns.query, typed.context_headers)


def _only(values: pa.Array, rows: list[int]) -> pa.Array:
    """Return the values of some rows, and null for the others."""
    kept = np.full(len(values), -1, np.int64)
    kept[rows] = rows
    return values.take(pa.array(kept, mask=kept < 0))
