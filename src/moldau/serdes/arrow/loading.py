"""Arrow arrays into an arena: the way back of `Arena.array`. Slices, casts and absent columns are settled here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from ..context import SerdeError
from .columns import Arena, Column, Layout

ABSENT = -1
pc: Any = pyarrow.compute


@dataclass(slots=True)
class Loader:
    """Collects the memory of each buffer; one that no array fills stays absent."""

    layout: Layout
    parts: dict[int, np.ndarray] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)  # columns that have no array, by id

    def load(self, column: Column, array: pa.Array, where: str) -> None:
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if column.kind == "null":
            return
        if column.kind == "struct":
            self.struct(column, array, where)
            return
        array = self.fitting(column, array, where)
        self.nulls(column, array)
        match column.kind:
            case "bool":
                self.parts[column.values] = pc.fill_null(array, False).cast(pa.uint8()).to_numpy()
            case "fixed":
                start = array.offset * column.width
                self.parts[column.values] = octets(array.buffers()[1])[start : start + len(array) * column.width]
            case "enum":
                codes = pc.index_in(array, pa.array(column.symbols, pa.string()))
                self.parts[column.values] = octets_of(pc.fill_null(codes, ABSENT).to_numpy().astype(np.int32))
            case "text":
                first, last = self.offsets(column, array, array.buffers()[1])
                self.parts[column.bytes] = octets(array.buffers()[2])[first:last]
            case "list" | "map":
                first, last = self.offsets(column, array, array.buffers()[1])
                self.items(column, array, first, last, where)

    def fitting(self, column: Column, array: pa.Array, where: str) -> pa.Array:
        wanted = column.type
        if pa.types.is_nested(wanted):
            kinds = pa.types.is_map if column.kind == "map" else is_list
            if not kinds(array.type):
                raise SerdeError(f"column {where} is {array.type}, which does not fit {wanted}")
            return array.cast(pa.list_(array.type.value_field)) if pa.types.is_large_list(array.type) else array
        wanted = pa.string() if column.kind == "enum" else wanted
        if array.type == wanted:
            return array
        try:
            return array.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise SerdeError(f"column {where} does not fit {wanted}: {error}") from None

    def nulls(self, column: Column, array: pa.Array) -> None:
        if not array.null_count:
            return
        self.parts[column.validity] = array.is_valid().cast(pa.uint8()).to_numpy()

    def offsets(self, column: Column, array: pa.Array, buffer: pa.Buffer) -> tuple[int, int]:
        if not len(array):
            self.parts[column.values] = octets_of(np.zeros(1, np.int32))
            return 0, 0
        bounds = np.frombuffer(buffer, np.int32)[array.offset : array.offset + len(array) + 1]
        self.parts[column.values] = octets_of(bounds - bounds[0])
        return int(bounds[0]), int(bounds[-1])

    def items(self, column: Column, array: Any, first: int, last: int, where: str) -> None:
        if column.kind == "list":
            self.load(column.field_of_item, array.values[first:last], f"{where}[]")
            return
        key, value = column.field_of_item.children
        self.load(key, array.keys[first:last], f"{where} (keys)")
        self.load(value, array.items[first:last], f"{where} (values)")

    def struct(self, column: Column, array: pa.Array, where: str) -> None:
        if not pa.types.is_struct(array.type):
            raise SerdeError(f"column {where} is {array.type}, which does not fit {column.type}")
        self.nulls(column, array)
        given = {array.type.field(i).name: i for i in range(array.type.num_fields)}
        extra = set(given) - set(column.names)
        if extra:
            raise SerdeError(f"column {where or 'set'} has {', '.join(sorted(extra))}, which the schema has not")
        for name, child in zip(column.names, column.children, strict=True):
            if name in given:
                self.load(child, array.field(given[name]), f"{where}.{name}".lstrip("."))
            else:
                self.missing.add(id(child))

    def arena(self) -> Arena:
        """Put the parts side by side. Counters are not needed for writing: elements are found by offsets."""
        base, position = np.full(len(self.layout.buffers), ABSENT, np.int64), 0
        for number, part in self.parts.items():
            base[number] = position
            position += -(-part.nbytes // 8) * 8
        memory = np.zeros(position + 8, np.uint8)
        for number, part in self.parts.items():
            memory[base[number] : base[number] + part.nbytes] = part
        none = np.zeros(0, np.int64)
        return Arena(self.layout, base, none, none, memory)


def is_list(type: pa.DataType) -> bool:
    return pa.types.is_list(type) or pa.types.is_large_list(type)


def octets(buffer: pa.Buffer | None) -> np.ndarray:
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)


def octets_of(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8)
