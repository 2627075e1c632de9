"""What both Avro machines do with single values in memory. Compiled; no Python objects."""

from __future__ import annotations

from typing import Any

from moldau.wire.kernel import compiled, read_long

from .avro_code import BAD_DECIMAL, BAD_LENGTH

BUILT_ON = "0dee5a115a84"  # numba knows this file only: tests/wire/test_kernel.py
Memory = Any  # an array of numba, or a memoryview


@compiled
def read_length(source: Memory, p: int, end: int) -> tuple[int, int]:
    n, p = read_long(source, p, end)
    if p >= 0 and (n < 0 or n > end - p):
        return 0, -BAD_LENGTH
    return n, p


@compiled
def is_utf8(b: Memory, p: int, end: int) -> bool:
    """As Unicode has it: no overlong forms, no surrogates, nothing above U+10FFFF."""
    while p < end:
        first = b[p]
        p += 1
        if first < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if p + more > end or not low <= b[p] <= high:
            return False
        for i in range(p + 1, p + more):
            if not 0x80 <= b[i] <= 0xBF:
                return False
        p += more
    return True


@compiled
def read_decimal(source: Memory, p: int, n: int, b8: Memory, at: int, width: int) -> int:
    """Big-endian two's complement of n bytes to little-endian of `width`; 0, or a problem if it does not fit."""
    fill = 255 if n > 0 and source[p] >= 128 else 0
    for i in range(n - width):
        if source[p + i] != fill:
            return -BAD_DECIMAL
    for i in range(width):
        b8[at + i] = source[p + n - 1 - i] if i < n else fill
    if n > width and (b8[at + width - 1] >= 128) != (fill == 255):
        return -BAD_DECIMAL
    return 0


@compiled
def exceeds(b8: Memory, at: int, width: int, limits: Memory, row: int) -> bool:
    """Whether a decimal's magnitude is at least its limit, a power of ten in bytes."""
    negative = b8[at + width - 1] >= 128
    carry, larger = 1, 1  # equal counts as too large
    for i in range(width):
        byte = b8[at + i] * 1
        if negative:
            byte = (255 - byte) + carry
            carry = byte >> 8
            byte &= 255
        limit = limits[row, i]
        if byte != limit:
            larger = 1 if byte > limit else 0
    return larger == 1


@compiled
def decimal_size(b8: Memory, at: int, width: int) -> int:
    """The fewest bytes that hold it."""
    n = width
    while n > 1:
        top, next = b8[at + n - 1], b8[at + n - 2]
        if not ((top == 0 and next < 128) or (top == 255 and next >= 128)):
            break
        n -= 1
    return n


@compiled
def write_uuid(source: Memory, p: int, b8: Memory, to: int) -> None:
    """Sixteen bytes as the 36 characters of a UUID."""
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            b8[to] = 45
            to += 1
        high, low = source[p + i] >> 4, source[p + i] & 15
        b8[to] = high + 48 if high < 10 else high + 87
        b8[to + 1] = low + 48 if low < 10 else low + 87
        to += 2


@compiled
def hex_value(char: int) -> int:
    if 48 <= char <= 57:
        return char - 48
    char |= 32
    return char - 87 if 97 <= char <= 102 else -1
