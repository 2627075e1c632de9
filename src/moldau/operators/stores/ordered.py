"""The lowest layer of every store: bytes by key, in the order of unsigned bytes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

MANY = 8  # from an eighth of all keys on, sorting anew is cheaper than inserting one by one
FEW = 1000  # keys are copied for a range sooner than the whole list for a change


class OrderedBytes(Protocol):
    """Ordered bytes. Both bounds of a range are inclusive, None is open. A range is a snapshot of the keys: it does not
    change with later puts, but leaves out keys that were deleted meanwhile.
    """

    def get(self, key: bytes, /) -> bytes | None: ...

    def put(self, key: bytes, value: bytes | None, /) -> None:
        """None deletes."""
        ...

    def range(
        self, low: bytes | None = None, high: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]: ...

    def approximate_count(self) -> int: ...


@runtime_checkable
class Removing(Protocol):
    """Ordered bytes that can remove a range faster than key by key."""

    def remove_range(self, low: bytes, high: bytes, /) -> None:
        """Both bounds inclusive."""
        ...


def remove_range(content: OrderedBytes, low: bytes, high: bytes) -> None:
    """Remove all keys between two, both inclusive."""
    if isinstance(content, Removing):
        content.remove_range(low, high)
    else:
        for key, _ in content.range(low, high):
            content.put(key, None)


class MemoryBytes:
    """A dict, and from the first range on the sorted list of its keys. A list in use by a range is not changed."""

    __slots__ = ("_fresh", "_keys", "_lent", "_values", "get")

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] | None = None
        self._lent = False  # to a range, which may still walk it
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
        if end - first <= FEW:
            keys, first, end = keys[first:end], 0, max(0, end - first)
        else:
            self._lent = True
        places = range(end - 1, first - 1, -1) if reverse else range(first, end)
        return self._walk(map(keys.__getitem__, places))

    def approximate_count(self) -> int:
        return len(self._values)

    def _walk(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        get = self.get
        for key in keys:
            value = get(key)
            if value is not None:
                yield key, value

    def _sorted(self) -> list[bytes]:
        if self._keys is None:
            self._keys = sorted(self._values)
        elif fresh := self._fresh:
            keys = self._own()
            if len(fresh) * MANY > len(keys):
                keys.extend(fresh)
                keys.sort()
            else:
                for key in fresh:
                    insort(keys, key)
            fresh.clear()
        return self._keys

    def _forget(self, key: bytes) -> None:
        if key in self._fresh:
            del self._fresh[key]
        else:
            keys = self._own()
            del keys[bisect_left(keys, key)]

    def _own(self) -> list[bytes]:
        """Return a list that can be changed."""
        assert self._keys is not None
        if self._lent:
            self._keys, self._lent = [*self._keys], False
        return self._keys
