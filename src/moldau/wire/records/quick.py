r"""Records of a batch that have no headers, at the speed of a regular expression.

Between two values without zero bytes there stands exactly this: the number of headers (0), the record's length, its
attributes (0), time, offset, and the key's length, which is \x01 for no key. A varint ends at its first byte below 128,
so an expression finds these places without a doubt, if it begins at a right one. Behind the key stands the value's
length, which is then held against what is left: from the first record on, a right length makes the next place right.
Whatever is not so (headers, nulls, zeros in keys and values, some records with keys and some without, offsets that were
compacted away) is left to the loop over records.
"""

from __future__ import annotations

import re
from itertools import repeat
from typing import NamedTuple

from moldau.wire.numbers import MOST_KEPT, varlong, zigzags
from moldau.wire.records.batch import Batch
from moldau.wire.records.parse import Headers

NO_KEY = b"\1"
ONE_BYTE, TWO_BYTES = 64, 8193  # the longest values with their lengths, where those take one byte, or two
Pairs = tuple[list[bytes], list[bytes]]  # keys and values, in columns
Row = tuple[int, int, bytes | None, bytes | None, Headers]  # a record without its name: that takes as long as the rest

_varint = rb"[\x80-\xff]*+[\x00-\x7f]"
_start = _varint + rb"\x00(" + _varint + rb")" + _varint  # length, attributes, time, offset
_first = re.compile(_start + rb"(" + _varint + rb")", re.DOTALL)
_bare = re.compile(rb"\x00" + _start + rb"(\x01)", re.DOTALL)
_keyed = re.compile(rb"\x00" + _start + rb"(?!\x01)(" + _varint + rb")", re.DOTALL)
_first_value = re.compile(_varint + rb"\x00" + _varint + _varint + rb"\x01(" + _varint + rb")", re.DOTALL)
_between_values = re.compile(rb"\x00" + _first_value.pattern, re.DOTALL)


class Columns(NamedTuple):
    """The records of a batch in columns: times as varints, with their values."""

    times: list[bytes]
    keys: list[bytes] | None
    values: list[bytes]
    numbers: Numbers


class Numbers(dict[bytes, int]):
    """The values of varints, each decoded once."""

    def __missing__(self, key: bytes) -> int:
        n, _ = varlong(key, 0)
        found = self[key] = (n >> 1) ^ -(n & 1)
        return found


def values(batch: Batch) -> list[bytes] | None:
    """Return the values of records without keys, in order; None for any other batch."""
    body = batch.body()
    first = _first_value.match(body)
    if first is None or body[-1]:
        return None
    parts = _between_values.split(body[first.end() : -1])
    found = parts[::2]
    if len(found) != batch.count or not _are_long(found, first[1] + b"".join(parts[1::2])):
        return None
    return found


def pairs(batch: Batch) -> Pairs | None:
    """Return the keys and the values; None where records lack keys, or the batch is not of this kind."""
    found = _columns(batch)
    return None if found is None or found.keys is None else (found.keys, found.values)


def rows(batch: Batch) -> list[Row] | None:
    """Return the records in order; None if the batch is not of this kind, or offsets were compacted away."""
    first, behind = batch.base_offset, batch.next_offset
    if behind - first != batch.count or (found := _columns(batch)) is None:
        return None
    zero, numbers = batch.base_timestamp, found.numbers
    is_one_time = batch.timestamp_type or len(set(found.times)) == 1
    time = batch.max_timestamp if batch.timestamp_type else zero + numbers[found.times[0]]
    stamps = repeat(time) if is_one_time else [zero + numbers[delta] for delta in found.times]
    keys = repeat(None) if found.keys is None else found.keys
    return list(zip(range(first, behind), stamps, keys, found.values, repeat(())))


def _columns(batch: Batch) -> Columns | None:
    body = batch.body()
    first = _first.match(body)
    if first is None or body[-1]:
        return None
    has_keys = first[2] != NO_KEY
    parts = (_keyed if has_keys else _bare).split(body[first.end() : -1])
    rests, numbers = parts[::3], Numbers()
    if len(rests) != batch.count:
        return None
    keys: list[bytes] | None = None
    if has_keys:
        lengths = list(map(numbers.__getitem__, (first[2], *parts[2::3])))
        keys = [rest[:length] for rest, length in zip(rests, lengths, strict=True)]
        rests = [rest[length:] for rest, length in zip(rests, lengths, strict=True)]
    found = _behind_lengths(rests)
    return None if found is None else Columns([first[1], *parts[1::3]], keys, found, numbers)


def _behind_lengths(rests: list[bytes]) -> list[bytes] | None:
    """Return values without the lengths in front of them; None if a length is wrong."""
    longest = max(map(len, rests))
    if longest > TWO_BYTES:
        return None
    if longest <= ONE_BYTE:
        found = [rest[1:] for rest in rests]
        return found if _are_long(found, b"".join([rest[:1] for rest in rests])) else None
    found = [rest[2:] if len(rest) > ONE_BYTE else rest[1:] for rest in rests]
    told = b"".join([rest[:2] if len(rest) > ONE_BYTE else rest[:1] for rest in rests])
    return found if _are_long(found, told) else None


def _are_long(found: list[bytes], told: bytes) -> bool:
    """Tell whether values have these encoded lengths."""
    longest = max(map(len, found))
    return longest < MOST_KEPT and told == b"".join(map(zigzags(longest + 1).__getitem__, map(len, found)))
