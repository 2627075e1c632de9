"""Arrow columns as buffers in one arena, so that compiled code can reach all of them by number.

A column is a node of a tree. Its buffers are sized by a counter: counter 0 counts rows, a list's counter the items of
its child, and a column of text or bytes has a counter for its bytes. When a counter reaches its capacity, the arena is
laid out anew with more room and the work goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from ..context import SerdeError

ALIGNMENT = 64
MAX_COUNT = 2**31 - 1  # offsets are 32 bits wide
MAX_COLUMNS = 5_000
ROWS = 0
Kind = Literal["null", "bool", "fixed", "text", "list", "map", "struct", "enum"]


@dataclass(slots=True)
class Column:
    kind: Kind
    type: pa.DataType
    nullable: bool = False
    width: int = 0
    values: int = -1  # buffer of the values, or of the offsets of text and lists
    bytes: int = -1  # buffer of the bytes of text
    counter: int = -1  # of the bytes of text, or of the items of a list
    validity: int = -1
    names: list[str] = field(default_factory=list)
    children: list[Column] = field(default_factory=list)
    symbols: tuple[str, ...] = ()

    @property
    def field_of_item(self) -> Column:
        return self.children[0]


@dataclass(slots=True)
class Buffer:
    counter: int
    width: int
    extra: int = 0  # elements besides those that are counted: offsets have one more


@dataclass(slots=True)
class Layout:
    """The buffers of a tree of columns, without memory."""

    buffers: list[Buffer] = field(default_factory=list)
    counters: int = 1
    columns: int = 0

    def buffer(self, counter: int, width: int, extra: int = 0) -> int:
        self.buffers.append(Buffer(counter, width, extra))
        return len(self.buffers) - 1

    def count(self) -> int:
        self.counters += 1
        return self.counters - 1

    def column(self, kind: Kind, type: pa.DataType, level: int, width: int = 0, symbols: Sequence[str] = ()) -> Column:
        self.columns += 1
        if self.columns > MAX_COLUMNS:
            raise SerdeError(f"the schema has more than {MAX_COLUMNS} columns")
        made = Column(kind, type, width=width, symbols=tuple(symbols))
        match kind:
            case "text":
                made.values, made.counter = self.buffer(level, 4, 1), self.count()
                made.bytes = self.buffer(made.counter, 1)
            case "list" | "map":
                made.values, made.counter = self.buffer(level, 4, 1), self.count()
            case "fixed":
                made.values = self.buffer(level, width)
            case "enum":
                made.values = self.buffer(level, 4)
            case "bool":
                made.values = self.buffer(level, 1)
        return made

    def optional(self, column: Column, level: int) -> Column:
        if column.kind != "null":
            column.validity = self.buffer(level, 1) if column.validity < 0 else column.validity
        column.nullable = True
        return column


@dataclass(slots=True)
class Arena:
    """Memory for a layout, and views of it in the widths that compiled code writes."""

    layout: Layout
    base: np.ndarray  # where each buffer begins, in bytes; -1 for one that is not there
    capacity: np.ndarray  # by counter
    count: np.ndarray
    memory: np.ndarray

    @classmethod
    def of(cls, layout: Layout, capacity: Sequence[int]) -> Arena:
        room = np.array(capacity, np.int64)
        base, size = places(layout, room)
        return cls(layout, base, room, np.zeros(layout.counters, np.int64), np.zeros(size, np.uint8))

    def views(self) -> tuple[np.ndarray, ...]:
        kinds = (np.uint8, np.int32, np.int64, np.float32, np.float64)
        return tuple(self.memory.view(kind) for kind in kinds)

    def grow(self, counter: int, needed: int) -> None:
        if needed > MAX_COUNT:
            raise SerdeError(f"a column of more than {MAX_COUNT} bytes or items: convert fewer rows at once")
        used, old_base, old = self.count.copy(), self.base, self.memory
        used[ROWS] = self.capacity[ROWS]
        self.capacity[counter] = min(max(needed, 2 * int(self.capacity[counter])), MAX_COUNT)
        self.base, size = places(self.layout, self.capacity)
        self.memory = np.zeros(size, np.uint8)
        for number, buffer in enumerate(self.layout.buffers):
            length = int((used[buffer.counter] + buffer.extra) * buffer.width)
            self.memory[self.base[number] :][:length] = old[old_base[number] :][:length]

    def slice(self, number: int, count: int) -> np.ndarray:
        buffer = self.layout.buffers[number]
        start = int(self.base[number])
        return self.memory[start : start + (count + buffer.extra) * buffer.width]

    def array(self, column: Column, rows: int) -> pa.Array:
        """Return the column as an Arrow array over the arena's memory."""
        valid, nulls = self.bitmap(column.validity, rows)
        match column.kind:
            case "null":
                return pa.nulls(rows)
            case "fixed":
                buffers, inner = [self.whole(column.values, rows)], None
            case "bool":
                bits = np.packbits(self.slice(column.values, rows), bitorder="little")
                buffers, inner = [pa.py_buffer(bits)], None
            case "text":
                data = self.whole(column.bytes, int(self.count[column.counter]))
                buffers, inner = [self.whole(column.values, rows), data], None
            case "struct":
                buffers, inner = [], [self.array(child, rows) for child in column.children]
            case "list" | "map":
                items = self.array(column.field_of_item, int(self.count[column.counter]))
                buffers, inner = [self.whole(column.values, rows)], [items]
            case "enum":
                codes = pa.Array.from_buffers(pa.int32(), rows, [valid, self.whole(column.values, rows)], nulls)
                made = pa.DictionaryArray.from_arrays(codes, pa.array(column.symbols or [""], pa.string()), safe=False)
                return made if pa.types.is_dictionary(column.type) else made.dictionary_decode()
        return pa.Array.from_buffers(column.type, rows, [valid, *buffers], nulls, children=inner)

    def whole(self, number: int, count: int) -> pa.Buffer:
        return pa.py_buffer(self.slice(number, count))

    def bitmap(self, number: int, rows: int) -> tuple[pa.Buffer | None, int]:
        if number < 0:
            return None, 0
        mask = self.slice(number, rows)
        nulls = rows - int(np.count_nonzero(mask))
        return (pa.py_buffer(np.packbits(mask, bitorder="little")) if nulls else None), nulls


def places(layout: Layout, capacity: np.ndarray) -> tuple[np.ndarray, int]:
    base, position = np.empty(len(layout.buffers), np.int64), 0
    for number, buffer in enumerate(layout.buffers):
        base[number] = position
        size = int((capacity[buffer.counter] + buffer.extra) * buffer.width)
        position += -(-size // ALIGNMENT) * ALIGNMENT
    return base, position + ALIGNMENT


def listed(item: Column) -> pa.DataType:
    return pa.list_(pa.field("item", item.type, item.nullable))


def mapped(value: Column) -> pa.DataType:
    return pa.map_(pa.string(), pa.field("value", value.type, value.nullable))


def structured(names: Sequence[str], children: Sequence[Column]) -> pa.DataType:
    return pa.struct([pa.field(name, child.type, child.nullable) for name, child in zip(names, children, strict=True)])
