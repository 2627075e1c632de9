"""Values without a schema as Arrow columns: text, bytes, numbers and UUIDs in Kafka's forms, JSON as its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from ..context import Context, SerdeError
from ..primitive import PLAIN
from .batch import Converted, Slices

NUMBERS = {  # big-endian in Kafka
    "short": (pa.int16(), ">i2"),
    "integer": (pa.int32(), ">i4"),
    "long": (pa.int64(), ">i8"),
    "float": (pa.float32(), ">f4"),
    "double": (pa.float64(), ">f8"),
}
HERE = Context("")
pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class PlainColumns:
    format: str

    def type(self, context: Context) -> pa.DataType:
        if self.format in NUMBERS:
            return NUMBERS[self.format][0]
        return pa.binary() if self.format == "bytes" else pa.string()

    def to_arrow(self, values: pa.Array, context: Context, headers: pa.Array | None = None) -> Converted:
        if self.format in NUMBERS:
            return self.numbers(values)
        if self.format == "bytes":
            return Converted(values.cast(pa.binary()))
        if self.format == "string":
            try:
                return Converted(values.cast(pa.string()))
            except pa.ArrowInvalid:
                pass  # one of them is no UTF-8: which?
        return self.one_by_one(values)

    def numbers(self, values: pa.Array) -> Converted:
        type, kind = NUMBERS[self.format]
        slices, width = Slices.of(values), np.dtype(kind).itemsize
        good = slices.present & (slices.ends - slices.starts == width)
        at = np.where(good, slices.starts, 0)[:, None] + np.arange(width)
        memory = slices.data if slices.data.shape[0] >= width else np.zeros(width, np.uint8)
        found = np.ascontiguousarray(memory[at]).view(kind)[:, 0].astype(kind.replace(">", "<"))
        wrong = np.flatnonzero(slices.present & ~good).tolist()
        return Converted(pa.array(found, type, mask=~good), dict.fromkeys(wrong, f"it is not {width} bytes long"))

    def one_by_one(self, values: pa.Array) -> Converted:
        errors: dict[int, str] = {}
        out: list[str | None] = []
        for row, data in enumerate(Slices.of(values).rows()):
            try:
                PLAIN[self.format].from_bytes(data, HERE)
                out.append(None if data is None else data.decode())
            except SerdeError as error:
                errors[row] = str(error)
                out.append(None)
        return Converted(pa.array(out, pa.string()), errors)

    def from_arrow(self, values: pa.Array, context: Context) -> Converted:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        try:
            values = values.cast(self.type(context))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SerdeError(f"a column of {values.type} cannot be written as {self.format}: {error}") from None
        if self.format not in NUMBERS:
            return Converted(values.cast(pa.binary()))
        kind = NUMBERS[self.format][1]
        width = np.dtype(kind).itemsize
        data = values.fill_null(0).to_numpy().astype(kind).tobytes()
        fixed = pa.Array.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(data)]).cast(pa.binary())
        return Converted(pc.if_else(values.is_valid(), fixed, None) if values.null_count else fixed)
