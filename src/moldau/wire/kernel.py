"""numba where it is installed. `compiled` compiles a function once and keeps it on disk; `memory` is what it works on.

Without numba the same functions run as they stand, on memoryviews, which Python indexes faster than arrays: slow, and
right. So they are written for both: plain integers, and nothing that relies on a width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

TRUNCATED, BAD_NUMBER = 1, 2  # what can be wrong with a varint

try:
    import numba
except ImportError:
    numba = None


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    if numba is None:
        return function
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # there is no place on disk that it may write to
        return numba.njit(nogil=True)(function)


def memory(array: Any) -> Any:
    return array if numba is not None else memoryview(array)


def copy_in_python(source: Any, p: int, n: int, to: Any, at: int) -> int:
    chunk = bytes(source[p : p + n])
    to[at : at + n] = chunk
    return 0 if chunk.isascii() else 128


@compiled
def copy_bytes(source: Any, p: int, n: int, to: Any, at: int) -> Any:
    """Copy n bytes; return 128 or more if one of them is not ASCII."""
    seen = np.uint8(0)
    for i in range(n):
        byte = source[p + i]
        to[at + i] = byte
        seen |= byte
    return seen


copy: Callable[..., Any] = copy_bytes if numba is not None else copy_in_python


@compiled
def read_long(source: Any, p: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 64 bits: its value, and the position after it or a problem, negative."""
    value, shift = 0, 0
    while p < end and shift < 70:
        byte = source[p] * 1
        p += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if shift == 63 and byte > 1:
                return 0, -BAD_NUMBER
            return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), p
        shift += 7
    return 0, -BAD_NUMBER if shift == 70 else -TRUNCATED


@compiled
def write_long(out: Any, p: int, value: int) -> int:
    """Write a zigzag varint, and return the position after it."""
    rest = (value << 1) ^ (value >> 63)
    while not 0 <= rest <= 127:  # as signed numbers, the first step of a large one is negative
        out[p] = rest & 127 | 128
        rest = (rest >> 7) & 0x1FFFFFFFFFFFFFF
        p += 1
    out[p] = rest
    return p + 1


@compiled
def long_size(value: int) -> int:
    """Count the bytes that write_long writes."""
    rest = (value << 1) ^ (value >> 63)
    size = 1
    while not 0 <= rest <= 127:
        rest = (rest >> 7) & 0x1FFFFFFFFFFFFFF
        size += 1
    return size
