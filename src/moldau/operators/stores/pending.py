"""The cache of window and session stores: of several changes of a window, only the last is logged and forwarded.

The store itself has every change at once; what waits until a flush, or until there is no room, is logging and
forwarding. A window that came and went in between is left out. Changes go in the order of last changes, each as caused
by the record that made it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..context import Shard
from ..record import Raw, Record
from .layers import OVERHEAD

Release = Callable[[bytes, bytes | None, bytes | None, Record], None]  # place, new, old, the record of the last change


@dataclass(slots=True)
class Untold:
    old: bytes | None  # what was told last
    new: bytes | None
    record: Record
    source: Raw | None


class Pending:
    """The pending changes by place: the bytes by which the store identifies a window."""

    __slots__ = ("_changes", "_limit", "_release", "_shard", "_size")

    def __init__(self, limit: int, shard: Shard, release: Release) -> None:
        self._limit, self._shard, self._release = limit, shard, release
        self._changes: dict[bytes, Untold] = {}
        self._size = 0

    def add(self, place: bytes, old: bytes | None, new: bytes | None) -> None:
        before = self._changes.pop(place, None)
        if before is not None:
            old = before.old
            self._size -= size_of(place, before)
        untold = self._changes[place] = Untold(old, new, self._shard.record, self._shard.source)
        self._size += size_of(place, untold)
        while self._size > self._limit and self._changes:
            first = next(iter(self._changes))
            untold = self._changes.pop(first)
            self._size -= size_of(first, untold)
            self._tell(first, untold)

    def flush(self) -> None:
        changes, self._changes, self._size = self._changes, {}, 0  # first: those below may come back with changes
        for place, untold in changes.items():
            self._tell(place, untold)

    def _tell(self, place: bytes, untold: Untold) -> None:
        if untold.old is None and untold.new is None:
            return
        shard = self._shard
        before = shard.record, shard.source
        shard.record, shard.source = untold.record, untold.source
        self._release(place, untold.new, untold.old, untold.record)
        shard.record, shard.source = before


def size_of(place: bytes, untold: Untold) -> int:
    return len(place) + len(untold.new or b"") + OVERHEAD
