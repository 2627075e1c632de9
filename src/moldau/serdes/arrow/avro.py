"""Avro payloads to Arrow columns: by the compiled machine, or by fastavro value by value where numba is missing."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from moldau.wire.kernel import memory

from ..avro import codec
from ..context import SerdeError
from ..registry import Schema
from .avro_code import PROBLEMS
from .avro_program import Program, Unreadable, compile_reader
from .avro_reader import read_rows
from .avro_schema import Columns
from .avro_writer import SLACK, write_rows
from .avro_writer_program import compile_writer
from .batch import Converted, Slices
from .columns import MAX_COUNT, ROWS, Arena
from .loading import Loader


@lru_cache(maxsize=1000)
def program(writer: Schema, reader: Schema, dictionaries: bool) -> Program:
    if codec(writer).countless or codec(reader).countless:
        raise SerdeError("the schema has an array whose items take no bytes: a few bytes could claim billions of them")
    return compile_reader(codec(writer).node, codec(reader).node, dictionaries)


def arrow_type(schema: Schema, dictionaries: bool = False) -> pa.DataType:
    return Columns(dictionaries).root(codec(schema).node).type


def read_avro(payloads: Slices, writer: Schema, reader: Schema | None = None, dictionaries: bool = False) -> Converted:
    """Convert payloads without their frames, all by one writer."""
    reader = reader or writer
    try:
        made = program(writer, reader, dictionaries)
    except Unreadable as error:
        rows = np.flatnonzero(payloads.present)
        nothing = pa.nulls(len(payloads.present), arrow_type(reader, dictionaries))
        return Converted(nothing, dict.fromkeys(rows.tolist(), str(error)))
    return run(made, payloads)


def run(made: Program, payloads: Slices) -> Converted:
    rows = len(payloads.starts)
    guess = payloads.size // 4 + 64
    capacity = [guess] * made.layout.counters
    capacity[ROWS] = rows
    arena = Arena.of(made.layout, capacity)
    saved, need = np.zeros(made.layout.counters, np.int64), np.zeros(2, np.int64)
    stack, problems = np.zeros((made.depth + 1, 2), np.int64), np.zeros(rows, np.int8)
    row = 0
    while row < rows:
        row = read_rows(
            *map(memory, (payloads.data, payloads.starts, payloads.ends, payloads.present)),
            *map(memory, (made.code, made.table, made.limits, made.constants)), made.start,
            *map(memory, (arena.base, arena.count, arena.capacity, saved, stack, need, problems)), row,
            *map(memory, arena.views()),
        )  # fmt: skip
        if row < rows:
            arena.grow(int(need[0]), int(need[1]))
    return Converted(arena.array(made.root, rows), problem_texts(problems))


def write_avro(values: pa.Array, schema: Schema, head: bytes = b"") -> Converted:
    """Write Arrow columns as Avro payloads, each after `head`: a binary array, null for null and for rows in
    `errors`."""
    node = codec(schema).node
    columns = Columns(watchful=True)
    root = columns.root(node)
    loader = Loader(columns.layout)
    loader.load(root, values, "")
    code, constants, depth = compile_writer(node, root, loader.missing)
    arena, rows = loader.arena(), len(values)
    present = np.array(values.is_valid().cast(pa.uint8()))  # a copy: of read-only memory, compiled code is another
    stack, problems = np.zeros((depth + 1, 2), np.int64), np.zeros(rows, np.int8)
    offsets = np.zeros(rows + 1, np.int64)
    out = np.empty(arena.memory.nbytes + rows * (len(head) + 8) + 2 * SLACK, np.uint8)
    lead = np.frombuffer(head, np.uint8)
    row = 0
    while row < rows:
        row = write_rows(
            row, rows, *map(memory, (present, lead, code, constants, arena.base, stack)),
            *map(memory, arena.views()[:3]), *map(memory, (out, offsets, problems)),
        )  # fmt: skip
        if row < rows:
            out = np.concatenate((out, np.empty_like(out)))
    return Converted(binary(out, offsets, present & (problems == 0)), problem_texts(problems))


def binary(data: np.ndarray, offsets: np.ndarray, present: np.ndarray) -> pa.Array:
    """Make a binary array; a large one if it must be."""
    rows, end = len(offsets) - 1, int(offsets[-1])
    type, kind = (pa.binary(), np.int32) if end <= MAX_COUNT else (pa.large_binary(), np.int64)
    nulls = rows - int(np.count_nonzero(present))
    valid = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(
        type, rows, [valid, pa.py_buffer(offsets.astype(kind)), pa.py_buffer(data[:end])], nulls
    )


def problem_texts(problems: np.ndarray) -> dict[int, str]:
    return {int(at): PROBLEMS[int(problems[at])] for at in np.flatnonzero(problems)}
