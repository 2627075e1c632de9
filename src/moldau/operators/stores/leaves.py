"""Pages as bytes, and the leaves of paged bytes.

A page is a head, the offsets of its keys and values, its keys in their order, and its values. A leaf stays packed while
few of its entries are used: keys are found by binary search, and replaced values are spliced in. A leaf that is used
much, iterated, or gets or loses a key is unpacked into a dict.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise
from struct import Struct
from sys import byteorder

import numpy as np

FORMAT = 2
HEAD = Struct("<BQI")  # format; in an index: the next leaf's number; how many entries
PLACE_BYTES = 4
ENTRY_BYTES = 2 * PLACE_BYTES  # of an entry, besides its key and value
EMPTY_BYTES = HEAD.size + PLACE_BYTES
SELDOM = 4  # a binary search for a fourth of the entries takes as long as unpacking all


class PageError(ValueError):
    """A page that this version cannot read."""


def encode(serial: int, keys: list[bytes], values: list[bytes]) -> bytes:
    parts = [*keys, *values]
    places = array("I", accumulate(map(len, parts), initial=start_of(len(keys))))
    return b"".join([*head(serial, len(keys), places), *parts])


def head(serial: int, count: int, places: array[int]) -> tuple[bytes, bytes]:
    """Return what comes before the first key."""
    if byteorder == "big":
        places = array("I", places)
        places.byteswap()
    return HEAD.pack(FORMAT, serial, count), places.tobytes()


def start_of(count: int) -> int:
    """Return where the first key of so many begins."""
    return EMPTY_BYTES + ENTRY_BYTES * count


def places_of(page: bytes) -> tuple[int, int, array[int]]:
    """Return the serial, the number of entries, and the offsets of all keys and values and of the end."""
    if len(page) < HEAD.size or page[0] != FORMAT:
        raise PageError(f"a page of state has the format {page[0] if page else None}, and this version reads {FORMAT}")
    _, serial, count = HEAD.unpack_from(page)
    places = array("I")
    places.frombytes(page[HEAD.size : start_of(count)])
    if byteorder == "big":
        places.byteswap()
    return serial, count, places


def decode(page: bytes) -> tuple[int, list[bytes], list[bytes]]:
    """Return the serial, the keys and the values."""
    serial, count, places = places_of(page)
    parts = [page[start:end] for start, end in pairwise(places)]
    return serial, parts[:count], parts[count:]


class Packed:
    """A page as it was read, and the values that replace others in it."""

    __slots__ = ("_changed", "_page", "_places", "_seldom", "count")

    def __init__(self, page: bytes) -> None:
        self._page = page
        _, self.count, self._places = places_of(page)
        self._changed: dict[int, bytes] = {}
        self._seldom = self.count // SELDOM

    def find(self, key: bytes) -> int | None:
        """Return the number of the entry."""
        page, places = self._page, self._places
        low, high = 0, self.count
        while low < high:
            middle = (low + high) >> 1
            if page[places[middle] : places[middle + 1]] < key:
                low = middle + 1
            else:
                high = middle
        return low if low < self.count and page[places[low] : places[low + 1]] == key else None

    def value(self, at: int) -> bytes:
        value = self._changed.get(at)
        if value is None:
            places, place = self._places, self.count + at
            value = self._page[places[place] : places[place + 1]]
        return value

    def change(self, at: int, value: bytes) -> None:
        self._changed[at] = value

    def is_asked_much(self) -> bool:
        """Count a use; return whether there were too many to stay packed."""
        self._seldom -= 1
        return self._seldom < 0

    def unpacked(self) -> dict[bytes, bytes]:
        _, keys, values = decode(self._page)
        for at, value in self._changed.items():
            values[at] = value
        return dict(zip(keys, values, strict=True))

    def bytes(self) -> bytes:
        """Apply the changes to the page, and return it."""
        if self._changed:
            page, places, count = self._page, self._places, self.count
            parts, longer, end = list[bytes](), np.zeros(len(places), np.int64), start_of(count)
            for at, value in sorted(self._changed.items()):
                place = count + at
                start, stop = places[place], places[place + 1]
                parts += (page[end:start], value)
                longer[place + 1] = len(value) - (stop - start)
                end = stop
            parts.append(page[end:])
            self._places = array("I", (np.asarray(places) + longer.cumsum()).astype(np.uint32).tobytes())
            self._page = b"".join([*head(0, count, self._places), *parts])
            self._changed.clear()
        return self._page


class Leaf:
    """The entries from `first` up to the next leaf. `size` is that of its page."""

    __slots__ = ("_entries", "_order", "_packed", "first", "number", "size")

    def __init__(self, number: int, first: bytes, page: bytes | None = None) -> None:
        self.number, self.first = number, first
        self.size = EMPTY_BYTES if page is None else len(page)
        self._packed = None if page is None else Packed(page)
        self._entries: dict[bytes, bytes] = {}  # unless it is packed
        self._order: list[bytes] | None = None  # of the keys; None before it is needed, and after one came or went

    def get(self, key: bytes) -> bytes | None:
        packed = self._packed
        if packed is None:
            return self._entries.get(key)
        if packed.is_asked_much():
            return self._unpacked().get(key)
        at = packed.find(key)
        return None if at is None else packed.value(at)

    def put(self, key: bytes, value: bytes | None) -> int:
        """Put a value, or delete for None; return the change in the number of entries."""
        packed = self._packed
        at = None if packed is None or value is None or packed.is_asked_much() else packed.find(key)
        if packed is not None and value is not None and at is not None:
            self.size += len(value) - len(packed.value(at))
            packed.change(at, value)
            return 0
        entries = self._unpacked()
        before = entries.get(key)
        if before is not None:
            self.size -= entry_size(key, before)
        if value is not None:
            entries[key] = value
            self.size += entry_size(key, value)
        elif before is not None:
            del entries[key]
        came = (value is not None) - (before is not None)
        if came:
            self._order = None
        return came

    def clear(self) -> int:
        """Remove all entries; return how many there were."""
        gone = len(self._entries) if self._packed is None else self._packed.count
        self._packed, self._entries, self._order, self.size = None, {}, None, EMPTY_BYTES
        return gone

    def keys(self) -> list[bytes]:
        """Return the keys in their order."""
        entries = self._unpacked()
        if self._order is None:
            self._order = sorted(entries)
        return self._order

    def between(self, low: bytes | None, high: bytes | None) -> list[bytes]:
        keys = self.keys()
        first = 0 if low is None else bisect_left(keys, low)
        end = len(keys) if high is None else bisect_right(keys, high)
        return keys[first:end]

    @property
    def is_empty(self) -> bool:
        return self._packed is None and not self._entries

    def bytes(self) -> bytes:
        if self._packed is not None:
            return self._packed.bytes()
        keys = self.keys()
        return encode(0, keys, [self._entries[key] for key in keys])

    def split(self, most_bytes: int, number: int) -> list[Leaf]:
        """Move keys to new leaves, numbered from `number` on, if this one is too large: all of about equal size, with
        room to grow.
        """
        if self.size <= most_bytes or len(keys := self.keys()) == 1:
            return []
        wanted = min(-(-2 * self.size // most_bytes), len(keys))
        parts: list[list[bytes]] = [[]]
        room = full = self.size / wanted
        for key in keys:
            if room <= 0:
                parts.append([])
                room += full
            parts[-1].append(key)
            room -= entry_size(key, self._entries[key])
        self._order, *others = parts
        return [self._split_off(number, some) for number, some in enumerate(others, number)]

    def _split_off(self, number: int, keys: list[bytes]) -> Leaf:
        part = Leaf(number, keys[0])
        part._entries, part._order = {key: self._entries.pop(key) for key in keys}, keys
        part.size += sum(map(entry_size, part._entries, part._entries.values()))
        self.size -= part.size - EMPTY_BYTES
        return part

    def _unpacked(self) -> dict[bytes, bytes]:
        if self._packed is not None:
            self._entries = self._packed.unpacked()
            self._packed, self._order = None, [*self._entries]
        return self._entries


def entry_size(key: bytes, value: bytes) -> int:
    return ENTRY_BYTES + len(key) + len(value)
