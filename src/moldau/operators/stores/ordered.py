"""The lowest layer of every store: bytes by key, in the order of unsigned bytes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Protocol

MANY = 8  # from an eighth of all keys on, sorting anew is cheaper than inserting one by one


class OrderedBytes(Protocol):
    """Both bounds of a range are inclusive, None is open. A range is a snapshot of the keys: what is put or deleted
    while it is walked does not disturb it, and a key that was deleted meanwhile is left out.
    """

    def get(self, key: bytes, /) -> bytes | None: ...

    def put(self, key: bytes, value: bytes | None, /) -> None:
        """None deletes."""
        ...

    def range(
        self, low: bytes | None = None, high: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]: ...

    def approximate_count(self) -> int: ...


class MemoryBytes:
    """A dict, and the sorted list of its keys from the first range on."""

    __slots__ = ("_fresh", "_keys", "_values", "get")

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] | None = None
        self._fresh: dict[bytes, None] = {}  # keys that are not in the list yet
        self.get = self._values.get

    def put(self, key: bytes, value: bytes | None, /) -> None:
        values = self._values
        if value is None:
            if values.pop(key, None) is not None and self._keys is not None:
                self._forget(key)
        else:
            if self._keys is not None and key not in values:
                self._fresh[key] = None
            values[key] = value

    def range(
        self, low: bytes | None = None, high: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        keys = self._sorted()
        first = 0 if low is None else bisect_left(keys, low)
        end = len(keys) if high is None else bisect_right(keys, high)
        chosen = keys[first:end]
        if reverse:
            chosen.reverse()
        return self._walk(chosen)

    def approximate_count(self) -> int:
        return len(self._values)

    def _walk(self, keys: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        get = self.get
        for key in keys:
            value = get(key)
            if value is not None:
                yield key, value

    def _sorted(self) -> list[bytes]:
        keys, fresh = self._keys, self._fresh
        if keys is None:
            keys = self._keys = sorted(self._values)
        elif len(fresh) * MANY > len(keys):
            keys.extend(fresh)
            keys.sort()
            fresh.clear()
        elif fresh:
            for key in fresh:
                insort(keys, key)
            fresh.clear()
        return keys

    def _forget(self, key: bytes) -> None:
        assert self._keys is not None
        if key in self._fresh:
            del self._fresh[key]
        else:
            del self._keys[bisect_left(self._keys, key)]
