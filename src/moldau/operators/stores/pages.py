"""Ordered bytes in pages, for a state store that can only read and write whole values.

A store is an index page, a page with its count, and many leaf pages. A leaf holds the entries from its first key up to
that of the next leaf; the index has the first key of each leaf. Pages that were read stay in memory, and `write` puts
back the leaves that changed, so the work of a batch grows with the keys it touches, not with all keys. What is put goes
to its leaf only when the order is needed, or at `write`, so a key that changes often finds its leaf once. A leaf that
has grown beyond `LEAF_BYTES` is split; an empty one is removed.

The page of an entry depends only on what was put and when it was written, never on the process.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Protocol

from .leaves import Leaf, PageError, decode, encode

LEAF_BYTES = 32 * 1024
INDEX = 0  # the number of the index page,
COUNT = 1  # of the page that counts the entries,
LEAVES = 2  # and of the first leaf


class Pages(Protocol):
    """The place where pages are kept, each by its number."""

    def get(self, number: int, /) -> bytes | None: ...

    def put(self, number: int, page: bytes, /) -> None: ...

    def remove(self, number: int, /) -> None:
        """Remove a page, which may not exist."""
        ...


class Walk:
    """A range that is being iterated. It does not see keys that came after it began."""

    __slots__ = ("came", "went")

    def __init__(self) -> None:
        self.came: dict[bytes, None] = {}
        self.went: dict[bytes, None] = {}

    def notice(self, key: bytes, came: bool) -> None:
        if not came:
            self.went[key] = None
        elif key not in self.went:
            self.came[key] = None


class PagedBytes:
    """OrderedBytes over pages. Nothing is written before `write`."""

    __slots__ = (
        "_changed", "_count", "_firsts", "_index_changed", "_leaves", "_next", "_numbers", "_pages", "_recent",
        "_walks",
    )  # fmt: skip

    def __init__(self, pages: Pages, is_new: bool = False) -> None:
        """Open pages; a new store has none."""
        self._pages = pages
        self._leaves: dict[int, Leaf] = {}  # those that were read or made
        self._changed: dict[int, Leaf] = {}
        self._recent: dict[bytes, bytes | None] = {}  # what was put and is in no leaf yet; None for what is to go
        self._walks: list[Walk] = []
        self._index_changed = False
        self._next, self._firsts, self._numbers = LEAVES, list[bytes](), list[int]()
        index, count = (None, None) if is_new else (pages.get(INDEX), pages.get(COUNT))
        if index is not None:
            self._next, self._firsts, numbers = decode(index)
            self._numbers = [int.from_bytes(number, "little") for number in numbers]
        self._count = 0 if count is None else decode(count)[0]

    def move(self, pages: Pages) -> None:
        """Use another access to the same pages from now on."""
        self._pages = pages

    @property
    def size(self) -> int:
        """The size of the decoded leaves as pages."""
        self._settle()
        return sum(leaf.size for leaf in self._leaves.values())

    def get(self, key: bytes, /) -> bytes | None:
        if key in self._recent:
            return self._recent[key]
        if not self._firsts:
            return None
        return self._leaf(bisect_right(self._firsts, key) - 1).get(key)

    def put(self, key: bytes, value: bytes | None, /) -> None:
        """Put a value; None deletes."""
        if self._walks:
            self._put(key, value)
        else:
            self._recent[key] = value

    def _settle(self) -> None:
        for key, value in self._recent.items():
            self._put(key, value)
        self._recent.clear()

    def _put(self, key: bytes, value: bytes | None) -> None:
        if not self._firsts:
            if value is None:
                return
            self._add(0, Leaf(self._next, b""))
        leaf = self._leaf(bisect_right(self._firsts, key) - 1)
        by = leaf.put(key, value)
        if value is None and not by:
            return
        if by:
            self._count += by
            for walk in self._walks:
                walk.notice(key, by > 0)
        self._changed[leaf.number] = leaf

    def range(
        self, low: bytes | None = None, high: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield entries, and read leaves as they are needed."""
        self._settle()
        if not self._firsts:
            return
        first = 0 if low is None else bisect_right(self._firsts, low) - 1
        end = len(self._firsts) if high is None else bisect_right(self._firsts, high)
        numbers = self._numbers[first:end]
        walk = Walk()
        self._walks.append(walk)
        try:
            for number in reversed(numbers) if reverse else numbers:
                leaf = self._read(number)
                keys = leaf.between(low, high)
                for key in reversed(keys) if reverse else keys:
                    value = leaf.get(key)
                    if value is not None and key not in walk.came:
                        yield key, value
        finally:
            self._walks.remove(walk)

    def remove_range(self, low: bytes, high: bytes, /) -> None:
        """Remove a range; a leaf that is wholly in it is not unpacked."""
        self._settle()
        firsts = self._firsts
        for place in range(max(0, bisect_right(firsts, low) - 1), bisect_right(firsts, high)):
            leaf, end = self._leaf(place), place + 1
            is_whole = not self._walks and low <= firsts[place] and end < len(firsts) and firsts[end] <= high
            if is_whole:
                self._count -= leaf.clear()
                self._changed[leaf.number] = leaf
            else:
                for key in leaf.between(low, high):
                    self._put(key, None)

    def approximate_count(self) -> int:
        self._settle()
        return self._count

    def write(self) -> bool:
        """Write what changed, and return whether anything did. The decoded leaves stay."""
        self._settle()
        if not self._changed:
            return False
        for leaf in sorted(self._changed.values(), key=lambda leaf: leaf.first):
            self._write_leaf(bisect_left(self._firsts, leaf.first), leaf)
        self._changed.clear()
        self._pages.put(COUNT, encode(self._count, [], []))
        if self._index_changed:
            numbers = [number.to_bytes(8, "little") for number in self._numbers]
            self._pages.put(INDEX, encode(self._next, self._firsts, numbers))
            self._index_changed = False
        return True

    def _leaf(self, place: int) -> Leaf:
        return self._read(self._numbers[place], self._firsts[place])

    def _read(self, number: int, first: bytes | None = None) -> Leaf:
        leaf = self._leaves.get(number)
        if leaf is None:
            page = self._pages.get(number)
            if page is None:
                raise PageError(f"the state has lost page {number}, which its index names")
            if first is None:
                first = self._firsts[self._numbers.index(number)]
            leaf = self._leaves[number] = Leaf(number, first, page)
        return leaf

    def _add(self, place: int, leaf: Leaf) -> None:
        self._firsts.insert(place, leaf.first)
        self._numbers.insert(place, leaf.number)
        self._leaves[leaf.number] = leaf
        self._next = leaf.number + 1
        self._index_changed = True

    def _write_leaf(self, place: int, leaf: Leaf) -> None:
        if leaf.is_empty:
            self._take_out(place, leaf)
            return
        for offset, part in enumerate(leaf.split(LEAF_BYTES, self._next), 1):
            self._add(place + offset, part)
            self._pages.put(part.number, part.bytes())
        self._pages.put(leaf.number, leaf.bytes())

    def _take_out(self, place: int, leaf: Leaf) -> None:
        """Remove a leaf. The one before it takes over its range; the first leaf always begins at the empty key."""
        del self._firsts[place], self._numbers[place], self._leaves[leaf.number]
        if place == 0 and self._firsts:
            after = self._leaf(0)
            self._firsts[0] = after.first = b""
        self._pages.remove(leaf.number)
        self._index_changed = True
