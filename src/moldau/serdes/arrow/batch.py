"""A batch of framed values, taken apart without touching them one by one; and what its conversion gives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ..framing import ID, ID_SIZE

NO_ID = -1


@dataclass(slots=True)
class Converted:
    """`values` has a row for each row of the batch: null for null, and null for those in `errors` (row -> why)."""

    values: pa.Array
    errors: dict[int, str] = field(default_factory=dict)

    @property
    def error_rows(self) -> np.ndarray:
        return np.fromiter(sorted(self.errors), np.int64, len(self.errors))

    def batch(self) -> pa.RecordBatch:
        """Return the columns of a batch of records: in rows that are null, all of them are."""
        columns = self.values.flatten() if isinstance(self.values, pa.StructArray) else [self.values]
        names = [f.name for f in self.values.type] if isinstance(self.values, pa.StructArray) else ["value"]
        if not names:
            return pa.RecordBatch.from_struct_array(self.values)
        return pa.RecordBatch.from_arrays(columns, names)


@dataclass(slots=True)
class Slices:
    """The rows of a binary array as positions in one buffer."""

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    present: np.ndarray

    @classmethod
    def of(cls, values: pa.Array) -> Slices:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        wide = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
        if not wide and not pa.types.is_binary(values.type) and not pa.types.is_string(values.type):
            values = values.cast(pa.binary())
        _, offsets, data = values.buffers()
        kind = np.int64 if wide else np.int32
        if not len(values):
            none = np.zeros(0, np.int64)
            return cls(np.zeros(1, np.uint8), none, none, np.zeros(0, np.bool_))
        bounds = np.frombuffer(offsets, kind)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        memory = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        memory.flags.writeable = False  # one kind of memory, or compiled code is made twice
        present = np.ones(len(values), np.bool_) if not values.null_count else values.is_valid().to_numpy(False)
        return cls(memory, bounds[:-1], bounds[1:], present)

    @property
    def size(self) -> int:
        return int((self.ends - self.starts).sum())

    def take(self, rows: np.ndarray) -> Slices:
        return Slices(self.data, self.starts[rows], self.ends[rows], self.present[rows])

    def unframed(self) -> tuple[np.ndarray, Slices]:
        """Return the schema id of each row, or NO_ID, and the payloads behind it."""
        framed = self.present & (self.ends - self.starts >= ID_SIZE)
        at = np.where(framed, self.starts, 0)
        if self.data.shape[0] < ID_SIZE:
            return np.full(len(self.starts), NO_ID, np.int64), self
        ids = np.zeros(len(at), np.int64)
        for place in range(1, ID_SIZE):
            ids = ids << 8 | self.data[at + place]
        framed &= self.data[at] == ID
        starts, ends = np.where(framed, self.starts + ID_SIZE, 0), np.where(framed, self.ends, 0)
        return np.where(framed, ids, NO_ID), Slices(self.data, starts, ends, self.present)

    def rows(self) -> list[bytes | None]:
        whole = self.data.tobytes()
        return [whole[s:e] if there else None for s, e, there in zip(self.starts, self.ends, self.present, strict=True)]
