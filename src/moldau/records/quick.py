r"""The values of a batch whose records have no keys and no headers, at the speed of a regular expression.

Between two values without zero bytes there stands exactly this: the number of headers (0), the record's length, its
attributes (0), time, offset, the key's length (-1, which is \x01) and the value's length. A varint ends at its first
byte below 128, so an expression finds these places without a doubt, if it begins at a right one. Each value's length is
then held against what was read in front of it: from the first record on, a right length makes the next place right.
Whatever is not so (keys, headers, nulls, zeros in values) is left to the loop over records.
"""

from __future__ import annotations

import re

from moldau.wire.records import Batch, zigzag

KNOWN = 1 << 16

_varint = rb"[\x80-\xff]*[\x00-\x7f]"
_head = _varint + rb"\x00" + _varint + _varint + rb"\x01(" + _varint + rb")"
_first = re.compile(_head, re.DOTALL)
_between = re.compile(rb"\x00" + _head, re.DOTALL)
_sizes: list[bytes] = []


def values(batch: Batch) -> list[bytes] | None:
    """The values in order; None where the batch is not of this kind."""
    body = batch.body()
    first = _first.match(body)
    if first is None or body[-1]:
        return None
    parts = _between.split(body[first.end() : -1])
    found = parts[::2]
    if len(found) != batch.count:
        return None
    sizes = _table()
    try:
        expected = b"".join(map(sizes.__getitem__, map(len, found)))
    except IndexError:
        return None
    return found if expected == first[1] + b"".join(parts[1::2]) else None


def _table() -> list[bytes]:
    """Varints of lengths, made when they are first needed."""
    if not _sizes:
        _sizes.extend(map(zigzag, range(KNOWN)))
    return _sizes
