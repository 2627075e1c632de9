"""Index files of a segment, in Kafka's formats.

`Index` is a sorted list of fixed-size entries: an offset index holds (relative offset, position), 8 bytes each; a time
index (timestamp, relative offset), 12 bytes each. While a segment is written the entries stand in memory and reach the
file at a flush, a roll or a close: what is not on disk lies behind the recovery point and is rebuilt after a crash.
A segment that is only read keeps nothing in memory and searches the file by pread.

`AbortedTransactions` is the transaction index: 34-byte entries, one for each aborted transaction.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from moldau.log.disk import File, Files, remove_if_there

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


@dataclass(slots=True, eq=False)
class Index:
    """Sorted entries of two numbers; `data` holds them while the index is written, else they are read from the file."""

    files: Files
    path: str
    entry: struct.Struct
    file: File | None = None
    data: bytearray | None = None
    count: int = -1  # not known yet
    written: int = 0

    def load(self, *, writable: bool) -> None:
        """Learn how many entries there are; a missing file is an empty index."""
        if self.count < 0 or (writable and self.data is None):
            try:
                content = self.files.disk.read(self.path) if writable else b""
                size = len(content) if writable else self.files.disk.size(self.path)
            except FileNotFoundError:
                content, size = b"", 0
            self.count = self.written = size // self.entry.size
            if writable:
                self.data = bytearray(content[: self.count * self.entry.size])

    def start(self) -> None:
        """Begin anew, empty and writable."""
        self.data = bytearray()
        self.count = self.written = 0

    def append(self, first: int, second: int) -> None:
        assert self.data is not None
        self.data += self.entry.pack(first, second)
        self.count += 1

    def at(self, slot: int) -> tuple[int, int]:
        size = self.entry.size
        if self.data is not None:
            return self.entry.unpack_from(self.data, slot * size)
        file = self.file or self.files.open(self)
        return self.entry.unpack(file.pread(size, slot * size))

    def last(self) -> tuple[int, int] | None:
        return self.at(self.count - 1) if self.count else None

    def floor(self, wanted: int, field: int = 0) -> int:
        """Return the last slot whose field is at most `wanted`, or -1."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.at(middle)[field] <= wanted:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def truncate(self, count: int) -> None:
        assert self.data is not None
        if count < self.count:
            del self.data[count * self.entry.size :]
            self.count = count
            self.written = min(self.written, count)
            self._cut_file()

    def _cut_file(self) -> None:
        try:
            file = self.file or self.files.open(self)
        except FileNotFoundError:
            return
        file.truncate(self.written * self.entry.size)

    def write(self) -> File:
        """Bring the file up to the entries in memory (it may hold a preallocated or damaged tail: cut)."""
        file = self.file or self.files.open(self, create=True)
        if self.data is not None:
            size = self.entry.size
            if self.written < self.count:
                file.pwrite(memoryview(self.data)[self.written * size :], self.written * size)
                self.written = self.count
            if file.size() != self.count * size:
                file.truncate(self.count * size)
        return file


class Aborted(NamedTuple):
    """An aborted transaction: its data lies in [first_offset, last_offset], the marker at last_offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


ABORTED_ENTRY = struct.Struct(">hqqqq")


@dataclass(slots=True, eq=False)
class AbortedTransactions:
    """The transaction index of a segment. The file is only there when a transaction was aborted."""

    files: Files
    path: str
    file: File | None = None
    entries: list[Aborted] | None = None
    dirty: bool = False
    rest: int = 0  # bytes after the last entry that are not an entry

    def __iter__(self) -> Iterator[Aborted]:
        if self.entries is None:
            try:
                data = self.files.disk.read(self.path)
            except FileNotFoundError:
                data = b""
            whole = len(data) - len(data) % ABORTED_ENTRY.size
            rows = [Aborted(*row[1:]) for row in ABORTED_ENTRY.iter_unpack(data[:whole])]
            self.entries = list(_sound(rows))
            self.rest = len(data) - len(self.entries) * ABORTED_ENTRY.size
        return iter(self.entries)

    def set(self, entries: list[Aborted]) -> None:
        """Hold exactly these. What is there already is not written again: some of it may be synced, some may not."""
        known = list(self)
        same = next((n for n, pair in enumerate(zip(known, entries, strict=False)) if pair[0] != pair[1]), len(known))
        same = min(same, len(entries))
        if same < len(known) or self.rest:
            self._keep(known[:same])
        for entry in entries[same:]:
            self.append(entry)
        self.dirty = self.dirty or self.files.disk.exists(self.path)

    def append(self, aborted: Aborted) -> None:
        entries = list(self)
        file = self.file or self.files.open(self, create=True)
        file.pwrite(ABORTED_ENTRY.pack(0, *aborted), len(entries) * ABORTED_ENTRY.size)
        self.entries = [*entries, aborted]
        self.dirty = True

    def truncate(self, offset: int) -> None:
        """Forget the transactions whose marker is at or after `offset`."""
        kept = [entry for entry in self if entry.last_offset < offset]
        if len(kept) < len(list(self)) or self.rest:
            self._keep(kept)

    def _keep(self, entries: list[Aborted]) -> None:
        (self.file or self.files.open(self)).truncate(len(entries) * ABORTED_ENTRY.size)
        self.entries, self.rest = entries, 0
        self.dirty = True

    def clear(self) -> None:
        self.files.release(self)
        remove_if_there(self.files.disk, self.path)
        self.entries = []
        self.dirty = False

    def written_file(self) -> File | None:
        """Return the file to sync, if anything was written."""
        return (self.file or self.files.open(self)) if self.dirty else None


def _sound(rows: list[Aborted]) -> Iterator[Aborted]:
    """Yield the entries up to one that cannot be: a crash may have left space that was never written."""
    last = -1
    for row in rows:
        if row.producer_id < 0 or not row.first_offset < row.last_offset > last:
            return
        last = row.last_offset
        yield row
