"""Compiled code of the sink: which partition a key belongs to, and Arrow columns into the records of a batch.

Columns come as positions in one buffer each (`Slices`). Nothing here makes an object for a record. The hash is the
murmur2 of Kafka's Java producer, so that a key lies where other producers put it.
"""

from __future__ import annotations

from typing import Any

from moldau.wire.kernel import compiled, long_size, write_long

BUILT_ON = "8f7bb9dd5e6e"  # numba knows this file only: tests/wire/test_kernel.py

MASK = 0xFFFFFFFF
MIX = 0x9E3779B9
MOST_OF_A_HEAD = 46  # bytes of a record beside key, value and headers, at most: attributes and six varints
MOST_OF_A_HEADER = 10  # of two lengths


@compiled
def murmur2(data: Any, start: int, end: int) -> Any:
    length = end - start
    h = (0x9747B28C ^ length) & MASK
    at = start
    while at + 4 <= end:
        k = data[at] + data[at + 1] * 0x100 + data[at + 2] * 0x10000 + data[at + 3] * 0x1000000
        k = k * 0x5BD1E995 & MASK
        k ^= k >> 24
        k = k * 0x5BD1E995 & MASK
        h = (h * 0x5BD1E995 & MASK) ^ k
        at += 4
    if at < end:
        shift = 0
        while at < end:
            h ^= (0 + data[at]) << shift
            shift += 8
            at += 1
        h = h * 0x5BD1E995 & MASK
    h ^= h >> 13
    h = h * 0x5BD1E995 & MASK
    return h ^ h >> 15


@compiled
def place(data: Any, starts: Any, ends: Any, present: Any, given: Any, count: int, keyless: int, out: Any) -> int:
    """Choose the partition of each row: the one that it names, otherwise by its key, otherwise `keyless`.

    Return the first row that names a partition which does not exist, or -1.
    """
    for row in range(len(starts)):
        if given[row] >= 0:
            if given[row] >= count:
                return row
            out[row] = given[row]
        elif present[row]:
            out[row] = (murmur2(data, starts[row], ends[row]) & 0x7FFFFFFF) % count
        else:
            out[row] = keyless
    return -1


@compiled
def digest(data: Any, starts: Any, ends: Any, present: Any, seed: int) -> int:
    """Sum over rows in any order the length, the first and the last bytes of each."""
    total = 0
    for row in range(len(starts)):
        h = seed
        if present[row]:
            first, last = starts[row], ends[row]
            h = (h ^ (last - first)) * MIX & MASK
            for at in range(first, min(last, first + 8)):
                h = (h ^ (0 + data[at])) * MIX & MASK
            for at in range(max(first, last - 16), last):
                h = (h ^ (0 + data[at])) * MIX & MASK
        total = (total + h) & MASK
    return total


@compiled
def put_bytes(out: Any, at: int, data: Any, start: int, end: int, there: Any) -> int:
    if not there:
        out[at] = 1  # a length of -1
        return at + 1
    at = write_long(out, at, end - start)
    for place in range(start, end):
        out[at] = data[place]
        at += 1
    return at


@compiled
def bytes_size(start: int, end: int, there: Any) -> int:
    return long_size(end - start) + end - start if there else 1


@compiled
def encode(
    rows: Any,
    first: int,
    last: int,
    keys: Any,
    values: Any,
    times: Any,
    header_bounds: Any,
    header_keys: Any,
    header_values: Any,
    base_time: int,
    count: int,
    out: Any,
    at: int,
) -> int:
    """Write the records of `rows[first:last]`, numbered from `count` in their batch; return the position after them.

    A column is a tuple of data, starts, ends and presence.
    """
    key_data, key_starts, key_ends, key_there = keys
    value_data, value_starts, value_ends, value_there = values
    name_data, name_starts, name_ends, name_there = header_keys
    word_data, word_starts, word_ends, word_there = header_values
    for place in range(first, last):
        row = rows[place]
        time, number = times[row] - base_time, count + place - first
        low, high = header_bounds[row], header_bounds[row + 1]
        size = 1 + long_size(time) + long_size(number) + long_size(high - low)
        size += bytes_size(key_starts[row], key_ends[row], key_there[row])
        size += bytes_size(value_starts[row], value_ends[row], value_there[row])
        for header in range(low, high):
            size += bytes_size(name_starts[header], name_ends[header], name_there[header])
            size += bytes_size(word_starts[header], word_ends[header], word_there[header])
        at = write_long(out, at, size)
        out[at] = 0
        at = write_long(out, at + 1, time)
        at = write_long(out, at, number)
        at = put_bytes(out, at, key_data, key_starts[row], key_ends[row], key_there[row])
        at = put_bytes(out, at, value_data, value_starts[row], value_ends[row], value_there[row])
        at = write_long(out, at, high - low)
        for header in range(low, high):
            at = put_bytes(out, at, name_data, name_starts[header], name_ends[header], name_there[header])
            at = put_bytes(out, at, word_data, word_starts[header], word_ends[header], word_there[header])
    return at
