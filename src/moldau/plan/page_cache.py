"""The cache of hot pages: stores of shards as a worker's last batch left them, decoded.

They are used only if Spark's state has the same version. A version is a digest of all that was ever written to the
stores of a shard: after a batch that failed, was replayed, or ran in another process, it is another one, unless the
batch has written the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct

from moldau.operators.stores.pages import PagedBytes, Pages

MOST_BYTES = 64 << 20  # of entries in a process, without what Python needs for them
DIGEST_BYTES = 16
PLACE = Struct("<qq")  # number of a page, its size; of one that is removed: -1


class Version:
    """The version of a shard's state, updated by the pages that a batch writes."""

    __slots__ = ("_before", "_digest")

    def __init__(self, before: str) -> None:
        self._before = before
        self._digest: blake2b | None = None  # until something is written

    def add(self, store: str, number: int, page: bytes | None) -> None:
        digest = self._digest = self._digest or blake2b(self._before.encode(), digest_size=DIGEST_BYTES)
        digest.update(store.encode() + b"\0" + PLACE.pack(number, -1 if page is None else len(page)))
        if page is not None:
            digest.update(page)

    @property
    def text(self) -> str:
        return self._before if self._digest is None else self._digest.hexdigest()


class VersionedPages:
    """The pages of a store, whose changes update the version."""

    __slots__ = ("_pages", "_store", "_version", "get")

    def __init__(self, pages: Pages, store: str, version: Version) -> None:
        self._pages, self._store, self._version = pages, store, version
        self.get = pages.get

    def put(self, number: int, page: bytes, /) -> None:
        self._version.add(self._store, number, page)
        self._pages.put(number, page)

    def remove(self, number: int, /) -> None:
        self._version.add(self._store, number, None)
        self._pages.remove(number)


@dataclass(frozen=True, slots=True)
class Kept:
    version: str
    stores: dict[str, PagedBytes]
    size: int


class HotPages:
    """The hot pages of a process; the least recently used shards are dropped first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._size = most_bytes, 0
        self._kept: dict[Hashable, Kept] = {}

    def __contains__(self, shard: Hashable) -> bool:
        return shard in self._kept

    def take(self, shard: Hashable, version: str) -> dict[str, PagedBytes]:
        """Remove and return the stores of a shard, until its batch has ended."""
        kept = self._kept.pop(shard, None)
        if kept is None:
            return {}
        self._size -= kept.size
        return kept.stores if kept.version == version else {}

    def keep(self, shard: Hashable, version: str, stores: dict[str, PagedBytes]) -> None:
        kept = self._kept[shard] = Kept(version, stores, sum(store.size for store in stores.values()))
        self._size += kept.size
        while self._size > self._most:
            self._size -= self._kept.pop(next(iter(self._kept))).size
