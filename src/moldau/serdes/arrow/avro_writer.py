"""The machine that writes columns as Avro: it runs a program of `avro_writer_program` over each row."""

from __future__ import annotations

from typing import Any

from moldau.wire.kernel import compiled, copy, write_long

from . import avro_code as op
from .avro_numbers import decimal_size, hex_value

BUILT_ON = "8c96c7483016"  # numba knows this file only: tests/wire/test_kernel.py
Memory = Any  # an array of numba, or a memoryview
SLACK = 64  # room that every instruction may use without asking


@compiled
def write_uuid_bytes(b8: Memory, at: int, n: int, out: Memory, p: int) -> int:
    """The 16 bytes of a UUID's 36 characters."""
    if n != 36:
        return -op.BAD_VALUE
    digits = 0
    for i in range(36):
        if i == 8 or i == 13 or i == 18 or i == 23:
            if b8[at + i] != 45:
                return -op.BAD_VALUE
            continue
        value = hex_value(b8[at + i])
        if value < 0:
            return -op.BAD_VALUE
        if digits & 1:
            out[p + (digits >> 1)] |= value
        else:
            out[p + (digits >> 1)] = value << 4
        digits += 1
    return p + 16


@compiled
def write_duration(at: int, b32: Memory, b64: Memory, out: Memory, p: int) -> int:
    months, days, nanos = b32[at >> 2], b32[(at >> 2) + 1], b64[(at >> 3) + 1]
    millis = nanos // 1_000_000
    if months < 0 or days < 0 or nanos < 0 or nanos % 1_000_000 or millis > 0xFFFFFFFF:
        return -op.BAD_VALUE
    for i in range(4):
        out[p + i] = (months >> (8 * i)) & 255
        out[p + 4 + i] = (days >> (8 * i)) & 255
        out[p + 8 + i] = (millis >> (8 * i)) & 255
    return p + 12


@compiled
def write_decimal(b8: Memory, at: int, n: int, size: int, out: Memory, p: int) -> int:
    """The low n bytes, big-endian, with their sign before them to fill `size`."""
    if n > size:
        return -op.BAD_DECIMAL
    sign = 255 if b8[at + n - 1] >= 128 else 0
    for i in range(size - n):
        out[p + i] = sign
    for i in range(n):
        out[p + size - 1 - i] = b8[at + i]
    return p + size


@compiled
def write_rows(
    first: int, rows: int, present: Memory, head: Memory, code: Memory, constants: Memory, base: Memory, stack: Memory,
    b8: Memory, b32: Memory, b64: Memory, out: Memory, offsets: Memory, problems: Memory,
) -> int:  # fmt: skip
    """Rows from `first` on, each with `head` before it. Returns the number of rows, or the row that `out` has no room
    for. A row with a problem is empty. `stack` holds the lists that are open: the element outside, and the last item.
    """
    for row in range(first, rows):
        p, k, depth, pc, room = offsets[row], row, 0, 0, out.shape[0] - SLACK
        offsets[row + 1] = p
        if not present[row]:
            continue
        if p + head.shape[0] > room:
            return row
        copy(head, 0, head.shape[0], out, p)
        p += head.shape[0]
        while True:
            if p > room:
                return row
            what, x, y, z = code[pc, 0], code[pc, 1], code[pc, 2], code[pc, 3]
            pc += 1
            if what == op.HALT:
                break
            if what == op.LONG:
                p = write_long(out, p, b64[(base[x] >> 3) + k])
            elif what == op.INT or what == op.ENUM:
                value = b32[(base[x] >> 2) + k]
                p = write_long(out, p, value) if what == op.INT or value >= 0 else -op.BAD_SYMBOL
            elif what == op.BYTES or what == op.RAW:
                at = b32[(base[x] >> 2) + k]
                n = b32[(base[x] >> 2) + k + 1] - at
                if p + n > room:
                    return row
                if what == op.BYTES:
                    p = write_long(out, p, n)
                copy(b8, base[y] + at, n, out, p)
                p += n
            elif what == op.FIXED:
                if p + y > room:
                    return row
                copy(b8, base[x] + k * y, y, out, p)
                p += y
            elif what == op.BOOL:
                out[p] = b8[base[x] + k]
                p += 1
            elif what == op.BRANCH:
                p = write_long(out, p, x)
            elif what == op.IF_NULL:
                if base[x] >= 0 and b8[base[x] + k] == 0:
                    pc = y
            elif what == op.REQUIRE:
                if base[x] >= 0 and b8[base[x] + k] == 0:
                    p = -op.NULL
            elif what == op.JUMP:
                pc = x
            elif what == op.LIST:
                at, last = b32[(base[y] >> 2) + k], b32[(base[y] >> 2) + k + 1]
                stack[depth, 0], stack[depth, 1] = k, last
                depth += 1
                k = at - 1
                if last > at:
                    p = write_long(out, p, last - at)
                pc = x
            elif what == op.NEXT:
                k += 1
                if k < stack[depth - 1, 1]:
                    pc = x
                else:
                    depth -= 1
                    k = stack[depth, 0]
                    out[p] = 0
                    p += 1
            elif what == op.DECIMAL:
                at = base[x] + k * y
                n = decimal_size(b8, at, y)
                p = write_long(out, p, n)
                p = write_decimal(b8, at, n, n, out, p)
            elif what == op.DECIMAL_FIXED:
                at = base[x] + k * y
                p = write_decimal(b8, at, decimal_size(b8, at, y), z, out, p) if p + z <= room else p
                if p + z > room and p >= 0:
                    return row
            elif what == op.UUID:
                at = b32[(base[x] >> 2) + k]
                p = write_uuid_bytes(b8, base[y] + at, b32[(base[x] >> 2) + k + 1] - at, out, p)
            elif what == op.DURATION:
                p = write_duration(base[x] + 16 * k, b32, b64, out, p)
            elif what == op.CONSTANT:
                if p + y - x > room:
                    return row
                copy(constants, x, y - x, out, p)
                p += y - x
            elif what == op.FAIL:
                p = -x
            if p < 0:
                problems[row] = -p
                p = offsets[row]
                break
        offsets[row + 1] = p
    return rows
