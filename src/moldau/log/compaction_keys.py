"""The newest offset of each key, as compaction needs it."""

import hashlib
from collections.abc import Iterable
from functools import partial
from typing import cast

from moldau.wire.records.scan import Scan

ENTRY_BYTES = 160
"""What one key takes in memory: the digest, the offset, and its share of the table."""

DIGEST_BYTES = 20
"""Longer keys are held as digests of this size; shorter ones are held as they are, and cannot be taken for a digest."""

SHARDS = 256  # a power of two

_digest = partial(hashlib.sha1, usedforsecurity=False)


def digest(key: bytes) -> bytes:
    return key if len(key) < DIGEST_BYTES else _digest(key).digest()


def digests(keys: list[bytes]) -> Iterable[bytes]:
    """Return all digests; no work at all when every key is short."""
    return keys if max(map(len, keys), default=0) < DIGEST_BYTES else map(digest, keys)


class KeyMap:
    """The newest offset of each key up to `latest`. It is full when its share of memory is used up.

    It is many small dicts: a large one would stop everything for tens of milliseconds whenever it grows.
    """

    __slots__ = ("capacity", "latest", "most", "shards")

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        self.capacity = int(memory_bytes * load_factor) // ENTRY_BYTES
        self.shards: list[dict[bytes, int]] = [{} for _ in range(SHARDS)]
        self.latest = -1
        self.most = 0  # there are at most so many keys

    def __len__(self) -> int:
        return sum(map(len, self.shards))

    @property
    def is_full(self) -> bool:
        if self.most >= self.capacity:
            self.most = len(self)
        return self.most >= self.capacity

    def add(self, scan: Scan, first_offset: int) -> None:
        """Enter the keys of a batch; records before `first_offset` and those without a key do not count."""
        keys, offsets, shards = scan.keys, scan.offsets, self.shards
        if None in keys or (offsets and offsets[0] < first_offset):
            pairs = [(k, o) for k, o in zip(keys, offsets, strict=True) if k is not None and o >= first_offset]
            keys, offsets = [key for key, _ in pairs], [offset for _, offset in pairs]
        self.most += len(keys)
        for key, offset in zip(digests(cast(list[bytes], keys)), offsets, strict=True):
            shards[hash(key) & SHARDS - 1][key] = offset

    def newest(self, keys: list[bytes]) -> list[int]:
        """For each key its newest offset, -1 for one that was not entered."""
        shards = self.shards
        return [shards[hash(key) & SHARDS - 1].get(key, -1) for key in digests(keys)]
