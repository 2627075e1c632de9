"""A key-value store with a limited number of entries: the least recently used one is removed first.

The order of use is kept in the same bytes as the entries, so that it outlives the process:
`E key` -> when it was last used, and the value; `U when` -> key; `C` -> the numbers of uses and of entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from struct import Struct
from typing import Any

from .key_value import KeyValueStore
from .ordered import OrderedBytes
from .spec import Opening, StoreSpec

WHEN = Struct(">Q")
COUNTS = Struct(">QQ")
ENTRY, USE, COUNT = b"E", b"U", b"C"


class LruBytes:
    """The bytes of the store. `forgotten` is called with the key of an entry that was removed."""

    def __init__(self, inner: OrderedBytes, limit: int, forgotten: Callable[[bytes], None]) -> None:
        self.inner, self.limit, self.forgotten = inner, limit, forgotten
        self.used, self.count = COUNTS.unpack(inner.get(COUNT) or COUNTS.pack(0, 0))

    def get(self, key: bytes, /) -> bytes | None:
        found = self.inner.get(ENTRY + key)
        if found is None:
            return None
        self._use(key, found[WHEN.size :], found)
        return found[WHEN.size :]

    def put(self, key: bytes, value: bytes | None, /) -> None:
        found = self.inner.get(ENTRY + key)
        if value is not None:
            self.count += found is None
            self._use(key, value, found)
            if self.count > self.limit:
                self._forget_oldest()
        elif found is not None:
            self._remove(key, found)

    def range(
        self, low: bytes | None = None, high: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        first = ENTRY + (low or b"")
        for key, value in self.inner.range(first, ENTRY + high if high is not None else None, reverse):
            if key.startswith(ENTRY):
                yield key[1:], value[WHEN.size :]

    def approximate_count(self) -> int:
        return self.count

    def _use(self, key: bytes, value: bytes, before: bytes | None) -> None:
        if before is not None:
            self.inner.put(USE + before[: WHEN.size], None)
        self.used += 1
        when = WHEN.pack(self.used)
        self.inner.put(USE + when, key)
        self.inner.put(ENTRY + key, when + value)
        self.inner.put(COUNT, COUNTS.pack(self.used, self.count))

    def _remove(self, key: bytes, found: bytes) -> None:
        self.count -= 1
        self.inner.put(USE + found[: WHEN.size], None)
        self.inner.put(ENTRY + key, None)
        self.inner.put(COUNT, COUNTS.pack(self.used, self.count))

    def _forget_oldest(self) -> None:
        _, key = next(iter(self.inner.range(USE, None)))
        found = self.inner.get(ENTRY + key)
        assert found is not None
        self._remove(key, found)
        self.forgotten(key)


def opened(spec: StoreSpec, opening: Opening) -> KeyValueStore:
    """Open a store whose changelog learns what was removed."""

    def forgotten(key: bytes) -> None:
        if opening.on_change is not None:
            opening.on_change(key, None, opening.shard.record.timestamp)

    bounded = LruBytes(opening.bytes, spec.part("max_entries"), forgotten)
    return KeyValueStore(spec, replace(opening, bytes=bounded))


def lru(name: str, max_entries: int, **options: Any) -> StoreSpec:
    return StoreSpec(name, "lru", opened, parts=(("max_entries", max_entries),), **options)
