"""What lies on a disk: files and folders, each with the state that is certain and the changes that are not yet.

A write is certain when its file was synced, a name (made, renamed, removed) when its folder was. A crash of the machine
decides the fate of all else. Of a folder a prefix of its changes survives, because file systems keep a journal of
them; the writes to a file have no order among each other, and none with the names: a renamed file may come back empty.
"""

from __future__ import annotations

from random import Random

SECTOR = 64
"""Small, so that the small writes of a small world are torn at sectors too."""


class Inode:
    """A file: its bytes as a reader sees them, those that a crash cannot take, and the writes in between."""

    __slots__ = ("data", "modified_ms", "pending", "safe")

    def __init__(self) -> None:
        self.data = bytearray()
        self.safe = b""
        self.pending: list[tuple[int, bytes | None]] = []  # position and bytes; a truncation has a size and no bytes
        self.modified_ms = 0

    def write(self, position: int, data: bytes) -> None:
        put(self.data, position, data)
        self.pending.append((position, data))

    def truncate(self, size: int) -> None:
        resize(self.data, size)
        self.pending.append((size, None))

    def sync(self) -> None:
        if self.pending:
            self.safe = bytes(self.data)
            self.pending.clear()

    def crash(self, random: Random) -> None:
        """Decide what the writes since the last sync have come to."""
        if self.pending:
            self.data = remains(bytearray(self.safe), self.pending, random)
            self.safe = bytes(self.data)
            self.pending.clear()

    def rot(self, position: int, bit: int) -> None:
        """A bit flips in data that was synced long ago."""
        assert not self.pending
        self.data[position] ^= 1 << bit
        self.safe = bytes(self.data)


def put(target: bytearray, position: int, data: bytes) -> None:
    if position > len(target):
        target.extend(bytes(position - len(target)))
    target[position : position + len(data)] = data


def resize(target: bytearray, size: int) -> None:
    if size < len(target):
        del target[size:]
    else:
        target.extend(bytes(size - len(target)))


def remains(data: bytearray, pending: list[tuple[int, bytes | None]], random: Random) -> bytearray:
    """All, none, those up to a moment, or any of the writes; the last one of a moment is torn."""
    mode = random.choice(("all", "none", "moment", "moment", "any"))
    moment = len(pending) if mode == "all" else 0 if mode == "none" else random.randrange(len(pending) + 1)
    for number, (position, written) in enumerate(pending):
        whole = number < moment or (mode == "any" and random.random() < 0.6)
        torn = not whole and (mode == "any" or (mode == "moment" and number == moment))
        if written is None:
            if whole:
                resize(data, position)
        elif whole:
            put(data, position, written)
        elif torn:
            tear(data, position, written, random)
    return data


def tear(data: bytearray, position: int, written: bytes, random: Random) -> None:
    """Part of a write: its first bytes, some of its sectors, nothing, or only the space for it."""
    size = len(written)
    match random.randrange(4):
        case 0:
            put(data, position, written[: random.randrange(size + 1)])
        case 1:
            for start in range(-(position % SECTOR), size, SECTOR):
                if random.random() < 0.5:
                    begin = max(start, 0)
                    put(data, position + begin, written[begin : start + SECTOR])
        case 2:
            resize(data, max(len(data), position + size))
        case _:
            pass


class Folder:
    """Names and what they stand for; `safe` are the names that a crash cannot take."""

    __slots__ = ("names", "pending", "safe")

    def __init__(self) -> None:
        self.names: dict[str, Inode | Folder] = {}
        self.safe: dict[str, Inode | Folder] = {}
        self.pending: list[tuple[str | None, str | None, Inode | Folder]] = []  # old name, new name, what

    def change(self, old: str | None, new: str | None, node: Inode | Folder) -> None:
        """Make (no old name), remove (no new one) or rename: each is all or nothing."""
        apply(self.names, old, new, node)
        self.pending.append((old, new, node))

    def sync(self) -> None:
        if self.pending:
            self.safe = dict(self.names)
            self.pending.clear()

    def sync_all(self) -> None:
        self.sync()
        for node in self.names.values():
            node.sync_all() if isinstance(node, Folder) else node.sync()

    def crash(self, random: Random) -> None:
        if self.pending:
            kept = random.choice((0, len(self.pending), random.randrange(len(self.pending) + 1)))
            for change in self.pending[:kept]:
                apply(self.safe, *change)
            self.pending.clear()
        self.names = dict(self.safe)
        for node in self.names.values():
            node.crash(random)


def apply(names: dict[str, Inode | Folder], old: str | None, new: str | None, node: Inode | Folder) -> None:
    if old is not None:
        names.pop(old, None)
    if new is not None:
        names[new] = node
