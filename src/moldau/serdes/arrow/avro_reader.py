"""The machine that reads Avro into columns: it runs a program of `avro_program` over each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from moldau.wire.kernel import compiled, copy, read_long

from . import avro_code as op
from .avro_numbers import exceeds, is_utf8, read_decimal, read_length, write_uuid

BUILT_ON = "8c96c7483016"  # numba knows this file only: tests/wire/test_kernel.py
Memory = Any  # an array of numba, or a memoryview


@compiled
def read_duration(source: Memory, p: int, at: int, b32: Memory, b64: Memory) -> int:
    """Months, days and milliseconds, unsigned, as months, days and nanoseconds."""
    months, days, millis = 0, 0, 0
    for i in range(3, -1, -1):
        months = months << 8 | source[p + i]
        days = days << 8 | source[p + 4 + i]
        millis = millis << 8 | source[p + 8 + i]
    if months > 0x7FFFFFFF or days > 0x7FFFFFFF:
        return -op.BAD_VALUE
    b32[at >> 2] = months
    b32[(at >> 2) + 1] = days
    b64[(at >> 3) + 1] = millis * 1_000_000
    return p + 12


@compiled
def read_float(source: Memory, p: int) -> float:
    bits = np.zeros(4, np.uint8)
    for i in range(4):
        bits[i] = source[p + i]
    return bits.view(np.float32)[0]


@compiled
def skip(code: int, size: int, source: Memory, p: int, end: int) -> int:
    if code == op.SKIP_NUMBER:
        return read_long(source, p, end)[1]
    n = size
    if code == op.SKIP_BYTES:
        n, p = read_length(source, p, end)
    if p >= 0 and n > end - p:
        return -op.TRUNCATED
    return p + n if p >= 0 else p


@compiled
def next_block(source: Memory, p: int, end: int) -> tuple[int, int, int]:
    """The head of a block of a list: number of items, its size in bytes or -1, position."""
    n, p = read_long(source, p, end)
    size = -1
    if p >= 0 and n < 0:
        n = -n
        size, p = read_length(source, p, end)
    if p >= 0 and not 0 <= n <= end - p:
        return 0, 0, -op.BAD_LENGTH
    return n, size, p


@compiled
def read_rows(
    data: Memory, starts: Memory, ends: Memory, present: Memory,
    code: Memory, table: Memory, limits: Memory, constants: Memory, start: int,
    base: Memory, count: Memory, capacity: Memory, saved: Memory, stack: Memory, need: Memory,
    problems: Memory, first: int,
    b8: Memory, b32: Memory, b64: Memory, f32: Memory, f64: Memory,
) -> int:  # fmt: skip
    """Rows from `first` on. Returns the number of rows, or the row at which `need` tells a counter that is full.

    The program for a null row begins at 0 and cannot fail; that for a value at `start`. A row with a problem gives back
    what it has taken of the counters and becomes null. `stack` holds the lists, and the constants, that are open.
    """
    for row in range(first, starts.shape[0]):
        for i in range(count.shape[0]):
            saved[i] = count[i]
        source, p, end, k, depth = data, starts[row], ends[row], row, 0
        pc = start if present[row] else 0
        while True:
            what, x, y, z = code[pc, 0], code[pc, 1], code[pc, 2], code[pc, 3]
            pc += 1
            if what == op.HALT:
                break
            if what == op.LONG or what == op.INT:
                value, p = read_long(source, p, end)
                if y > 0 and not 0 <= value < y:
                    p = p if p < 0 else -op.BAD_TIME
                elif what == op.LONG:
                    b64[(base[x] >> 3) + k] = value
                elif -0x80000000 <= value <= 0x7FFFFFFF:
                    b32[(base[x] >> 2) + k] = value
                else:
                    p = -op.BAD_NUMBER
            elif what == op.STRING or what == op.BYTES or what == op.RAW:
                n = end - p
                if what != op.RAW:
                    n, p = read_length(source, p, end)
                at = count[z]
                if at + n > capacity[z]:
                    need[0], need[1] = z, at + n
                    p = -op.FULL
                if p >= 0:
                    to = base[y] + at
                    seen = copy(source, p, n, b8, to)
                    count[z] = at + n
                    b32[(base[x] >> 2) + k + 1] = at + n
                    if what == op.STRING and seen >= 128 and not is_utf8(b8, to, to + n):
                        p = -op.BAD_TEXT
                    else:
                        p += n
            elif what == op.FIXED:
                if y > end - p:
                    p = -op.TRUNCATED
                else:
                    to = base[x] + k * y
                    copy(source, p, y, b8, to)
                    p += y
            elif what == op.VALID:
                b8[base[x] + k] = y
            elif what == op.UNION:
                branch, p = read_long(source, p, end)
                if p >= 0 and not 0 <= branch < x:
                    p = -op.BAD_BRANCH
                elif p >= 0:
                    pc = table[y + branch]
            elif what == op.JUMP:
                pc = x
            elif what == op.EMPTY:
                b32[(base[x] >> 2) + k + 1] = count[y]
            elif what == op.ENUM:
                value, p = read_long(source, p, end)
                if p >= 0:
                    symbol = table[y + value] if 0 <= value < z else -1
                    if symbol >= 0:
                        b32[(base[x] >> 2) + k] = symbol
                    else:
                        p = -op.BAD_SYMBOL
            elif what == op.LIST:
                stack[depth, 0], stack[depth, 1] = 0, k
                depth += 1
                pc = x
            elif what == op.NEXT or what == op.SKIP_NEXT:
                left, size = stack[depth - 1, 0], -1
                if left == 0:
                    left, size, p = next_block(source, p, end)
                if p >= 0 and what == op.SKIP_NEXT and size >= 0 and left > 0:
                    p += size  # a block that says how long it is need not be looked at
                    pc -= 1
                elif p >= 0 and left == 0:
                    depth -= 1
                    k = stack[depth, 1]
                    if what == op.NEXT:
                        b32[(base[y] >> 2) + k + 1] = count[z]
                elif p >= 0:
                    stack[depth - 1, 0] = left - 1
                    pc = x
                    if what == op.NEXT:
                        k = count[z]
                        count[z] = k + 1
                        if k >= capacity[z]:
                            need[0], need[1] = z, k + 1
                            p = -op.FULL
            elif what == op.BOOL:
                if p >= end or source[p] > 1:
                    p = -op.BAD_VALUE
                else:
                    b8[base[x] + k] = source[p]
                    p += 1
            elif what == op.DECIMAL or what == op.DECIMAL_FIXED:
                n = z
                if what == op.DECIMAL:
                    n, p = read_length(source, p, end)
                to = base[x] + k * y
                if p >= 0 and n > end - p:
                    p = -op.TRUNCATED
                elif p >= 0 and (
                    read_decimal(source, p, n, b8, to, y) < 0 or exceeds(b8, to, y, limits, code[pc - 1, 4])
                ):
                    p = -op.BAD_DECIMAL
                    for i in range(y):
                        b8[to + i] = 0  # also under a null, Arrow wants no decimal that is too large
                elif p >= 0:
                    p += n
            elif what == op.INT_TO_FLOAT or what == op.INT_TO_DOUBLE:
                value, p = read_long(source, p, end)
                if what == op.INT_TO_FLOAT:
                    f32[(base[x] >> 2) + k] = value
                else:
                    f64[(base[x] >> 3) + k] = value
            elif what == op.FLOAT_TO_DOUBLE:
                if end - p < 4:
                    p = -op.TRUNCATED
                else:
                    f64[(base[x] >> 3) + k] = read_float(source, p)
                    p += 4
            elif what == op.UUID:
                at = count[z]
                if at + 36 > capacity[z]:
                    need[0], need[1] = z, at + 36
                    p = -op.FULL
                elif end - p < 16:
                    p = -op.TRUNCATED
                else:
                    write_uuid(source, p, b8, base[y] + at)
                    count[z] = at + 36
                    b32[(base[x] >> 2) + k + 1] = at + 36
                    p += 16
            elif what == op.DURATION:
                p = read_duration(source, p, base[x] + 16 * k, b32, b64) if end - p >= 12 else -op.TRUNCATED
            elif what == op.CONSTANT:
                stack[depth, 0], stack[depth, 1] = p, end
                depth += 1
                source, p, end = constants, x, y
            elif what == op.RESUME:
                depth -= 1
                source, p, end = data, stack[depth, 0], stack[depth, 1]
            elif what == op.FAIL:
                p = -x
            else:
                p = skip(what, x, source, p, end)
            if p < 0:
                for i in range(count.shape[0]):
                    count[i] = saved[i]
                if p == -op.FULL:
                    return row
                problems[row] = -p
                source, p, end, k, depth, pc = data, 0, 0, row, 0, 0
    return starts.shape[0]
