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
from collections.abc import Iterable
from itertools import repeat

from moldau.records.varints import MOST, table
from moldau.wire.records import Batch, Headers, varlong

NO_KEY = b"\1"
ONE_BYTE, TWO_BYTES = 64, 8193  # the longest values with their lengths, where those take one byte, or two
Row = tuple[int, int, bytes | None, bytes | None, Headers]  # a record without its name: that takes as long as the rest

_varint = rb"[\x80-\xff]*+[\x00-\x7f]"
_start = _varint + rb"\x00(" + _varint + rb")" + _varint  # length, attributes, time, offset
_first = re.compile(_start + rb"(" + _varint + rb")", re.DOTALL)
_bare = re.compile(rb"\x00" + _start + rb"(\x01)", re.DOTALL)
_keyed = re.compile(rb"\x00" + _start + rb"(?!\x01)(" + _varint + rb")", re.DOTALL)
_first_value = re.compile(_varint + rb"\x00" + _varint + _varint + rb"\x01(" + _varint + rb")", re.DOTALL)
_between_values = re.compile(rb"\x00" + _first_value.pattern, re.DOTALL)


class Numbers(dict[bytes, int]):
    """What varints mean, each decoded once."""

    def __missing__(self, key: bytes) -> int:
        n, _ = varlong(key, 0)
        found = self[key] = (n >> 1) ^ -(n & 1)
        return found


def values(batch: Batch) -> list[bytes] | None:
    """The values in order, where nothing else is wanted of records without keys; None where the batch is another."""
    body = batch.body()
    first = _first_value.match(body)
    if first is None or body[-1]:
        return None
    parts = _between_values.split(body[first.end() : -1])
    found = parts[::2]
    if len(found) != batch.count or not _are_long(found, first[1] + b"".join(parts[1::2])):
        return None
    return found


def rows(batch: Batch) -> list[Row] | None:
    """The records in order; None where the batch is not of this kind."""
    body, count, base = batch.body(), batch.count, batch.base_offset
    first = _first.match(body)
    if first is None or body[-1] or batch.next_offset - base != count:  # offsets are one behind the other
        return None
    has_keys = first[2] != NO_KEY
    parts = (_keyed if has_keys else _bare).split(body[first.end() : -1])
    rests = parts[::3]
    if len(rests) != count:
        return None
    numbers = Numbers()
    keys: Iterable[bytes | None] = repeat(None)
    if has_keys:
        lengths = list(map(numbers.__getitem__, (first[2], *parts[2::3])))
        keys = [rest[:length] for rest, length in zip(rests, lengths, strict=True)]
        rests = [rest[length:] for rest, length in zip(rests, lengths, strict=True)]
    found = _behind_lengths(rests)
    if found is None:
        return None
    zero = batch.base_timestamp
    times = [zero + numbers[delta] for delta in (first[1], *parts[1::3])]
    stamps = repeat(batch.max_timestamp) if batch.timestamp_type else times
    return list(zip(range(base, base + count), stamps, keys, found, repeat(())))


def _behind_lengths(rests: list[bytes]) -> list[bytes] | None:
    """Values without the lengths in front of them; None where a length is not that of its value."""
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
    """Whether values have the lengths that are told of them."""
    longest = max(map(len, found))
    return longest < MOST and told == b"".join(map(table(longest + 1).__getitem__, map(len, found)))
