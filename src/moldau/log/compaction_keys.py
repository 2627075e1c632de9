"""What compaction must know of records: their keys, offsets and places in the batch, and the newest offset of a key.

Compaction copies records as bytes, so `scan` reads no more of a record than its size, offset and key, and whether it
has a value. Damage behind the key goes unnoticed, and is copied as it is.
"""

import hashlib
from collections.abc import Iterable
from functools import partial
from itertools import repeat

from moldau.wire.errors import WireError
from moldau.wire.records import varint, varlong, zigzag

ENTRY_BYTES = 160
"""What one key takes in memory: the digest, the offset, and its share of the table."""

DIGEST_BYTES = 20
"""Longer keys are held as digests of this size; shorter ones are held as they are, and cannot be taken for a digest."""

_digest = partial(hashlib.sha1, usedforsecurity=False)


class Scan:
    """The records of a batch, column by column. `starts` has one place more than there are records: the end."""

    __slots__ = ("keys", "nulls", "offsets", "starts")

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []
        self.offsets: list[int] = []
        self.starts: list[int] = [0]
        self.nulls: list[int] = []  # which records have no value

    def extend(self, data: bytes, count: int, base_offset: int) -> None:
        """Scan the next `count` records; WireError where they do not parse."""
        try:
            self._extend(data, count, base_offset)
        except IndexError:
            raise WireError("a record ends after its batch") from None

    # See `records._records`: varints of one or two bytes are decoded in place for speed.
    def _extend(self, data: bytes, count: int, base_offset: int) -> None:
        add_key, add_offset, add_start = self.keys.append, self.offsets.append, self.starts.append
        at, total = self.starts[-1], len(data)
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
            at += 1
            n = data[at]
            at += 1
            if n > 127:
                n, at = varint(data, at - 1)
            add_offset(base_offset + ((n >> 1) ^ -(n & 1)))
            n = data[at]
            at += 1
            if n > 127:
                n, at = varint(data, at - 1)
            add_key(None if n & 1 else data[at : (at := at + (n >> 1))])
            if data[at] & 1:
                self.nulls.append(len(self.keys) - 1)
            if at >= end:
                raise WireError("a key ends after its record")
            add_start(at := end)


def timestamp_at(data: bytes, start: int) -> tuple[int, int, int]:
    """Timestamp delta of the record at `start`, and where its fields and the one behind the timestamp begin."""
    _, fields = varint(data, start)
    n, behind = varlong(data, fields + 1)
    return (n >> 1) ^ -(n & 1), fields, behind


def shifted(data: bytes, start: int, end: int, shift: int) -> bytes:
    """The record with another timestamp delta: the batch gets a base timestamp that is `shift` larger."""
    delta, fields, behind = timestamp_at(data, start)
    moved = data[fields : fields + 1] + zigzag(delta - shift)
    return zigzag(len(moved) + end - behind) + moved + data[behind:end]


def digest(key: bytes) -> bytes:
    return key if len(key) < DIGEST_BYTES else _digest(key).digest()


def digests(keys: list[bytes]) -> Iterable[bytes]:
    """All digests; no work at all when every key is short."""
    return keys if max(map(len, keys), default=0) < DIGEST_BYTES else map(digest, keys)


class KeyMap:
    """The newest offset of each key up to `latest`. It is full when its share of memory is used up."""

    __slots__ = ("capacity", "latest", "offsets")

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        self.capacity = int(memory_bytes * load_factor) // ENTRY_BYTES
        self.offsets: dict[bytes, int] = {}
        self.latest = -1

    @property
    def is_full(self) -> bool:
        return len(self.offsets) >= self.capacity

    def add(self, found: Scan, first_offset: int) -> None:
        """Enter the keys of a batch; records before `first_offset` and those without a key do not count."""
        keys, offsets = found.keys, found.offsets
        if None in keys or (offsets and offsets[0] < first_offset):
            pairs = [(k, o) for k, o in zip(keys, offsets, strict=True) if k is not None and o >= first_offset]
            self.offsets.update((digest(key), offset) for key, offset in pairs)
        else:
            self.offsets.update(zip(digests(keys), offsets, strict=True))  # pyright: ignore[reportArgumentType]

    def newest(self, keys: list[bytes]) -> list[int]:
        """For each key its newest offset, -1 for one that was not entered."""
        return list(map(self.offsets.get, digests(keys), repeat(-1)))
