"""What compaction must know of records: their keys, offsets and places in the batch.

Compaction copies records as bytes, so `Scan` reads no more of a record than its size, offset and key, and whether it
has a value: half the time of `records`. Damage after the key goes unnoticed, and is copied as it is.
"""

from collections.abc import Iterable

from moldau.wire.errors import WireError
from moldau.wire.numbers import varint, varlong, zigzag


class Scan:
    """The records of a batch, column by column, as far as they have been scanned."""

    __slots__ = ("end", "keys", "nulls", "offsets")

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []
        self.offsets: list[int] = []
        self.nulls: list[int] = []  # which records have no value
        self.end = 0

    def extend(self, data: bytes, count: int, base_offset: int) -> None:
        """Scan the next `count` records; WireError where they do not parse."""
        try:
            self._extend(data, count, base_offset)
        except IndexError:
            raise WireError("a record ends after its batch") from None

    def finish(self, data: bytes) -> None:
        """Check that all records were scanned; WireError if something is left."""
        if self.end != len(data):
            raise WireError(f"{len(data) - self.end} bytes behind the last record")

    # See `records._records`: varints of one or two bytes are decoded in place for speed.
    def _extend(self, data: bytes, count: int, base_offset: int) -> None:
        keys, add_key, add_offset = self.keys, self.keys.append, self.offsets.append
        at, total = self.end, len(data)
        for _ in range(count):
            n = data[at]
            at += 1
            if n > 127:
                if (high := data[at]) < 128:
                    n += (high << 7) - 128
                    at += 1
                else:
                    n, at = varint(data, at - 1)
            end = at + (n >> 1)
            if n & 1 or end > total:
                raise WireError(f"a record of {(n >> 1) ^ -(n & 1)} bytes where {total - at} are left")
            at += 1
            while data[at] > 127:  # the timestamp, which only matters if the batch is written anew
                at += 1
            n = data[at + 1]
            at += 2
            if n > 127:
                if (high := data[at]) < 128:
                    n += (high << 7) - 128
                    at += 1
                else:
                    n, at = varint(data, at - 1)
            if n & 1:
                raise WireError("a record with an offset before its batch")
            add_offset(base_offset + (n >> 1))
            n = data[at]
            at += 1
            if n > 127:
                n, at = varint(data, at - 1)
            add_key(None if n & 1 else data[at : (at := at + (n >> 1))])
            if data[at] & 1:
                self.nulls.append(len(keys) - 1)
            if at >= end:
                raise WireError("a key ends after its record")
            at = end
        self.end = at


def places(data: bytes, count: int) -> list[int]:
    """Return where each record begins, and where the last one ends. The records must have been scanned."""
    found, at = [0], 0
    for _ in range(count):
        n = data[at]
        at += 1
        if n > 127:
            if (high := data[at]) < 128:
                n += (high << 7) - 128
                at += 1
            else:
                n, at = varint(data, at - 1)
        at += n >> 1
        found.append(at)
    return found


def timestamp_at(data: bytes, start: int) -> tuple[int, int, int]:
    """Return the timestamp delta of the record at `start`, where its fields begin, and where the next field begins."""
    fields = start + 1
    while data[fields - 1] > 127:
        fields += 1
    n = data[fields + 1]
    behind = fields + 2
    if n > 127:
        n, behind = varlong(data, behind - 1)
    return (n >> 1) ^ -(n & 1), fields, behind


def newest_timestamp(data: bytes, starts: Iterable[int], most: int) -> int:
    """Return the largest timestamp delta of the records at these places; it is at most `most`."""
    found: int | None = None
    for start in starts:
        delta = timestamp_at(data, start)[0]
        if delta == most:
            return most
        if found is None or delta > found:
            found = delta
    assert found is not None
    return found


def shifted(data: bytes, start: int, end: int, shift: int) -> bytes:
    """Return the record with a timestamp delta for a base timestamp that is `shift` larger."""
    delta, fields, behind = timestamp_at(data, start)
    moved = data[fields : fields + 1] + zigzag(delta - shift)
    return zigzag(len(moved) + end - behind) + moved + data[behind:end]
