"""Layers between a store and its bytes: the changelog, and the cache that holds changes back until a flush."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct

from ..context import Shard
from ..record import Raw, Record
from .ordered import OrderedBytes
from .spec import OnChange, Opening

STAMP = Struct(">q")
STAMP_SIZE = 8
OVERHEAD = 100  # bytes of a cached entry besides key and value, roughly
Flushed = Callable[[bytes, bytes | None, bytes | None, Record], None]  # key, new, old, the record of the last change


class LoggedBytes:
    """Writes each change to the changelog. Values of stamped stores begin with the time of their record."""

    __slots__ = ("_inner", "_put", "_shard", "_stamped", "_tell", "approximate_count", "get", "range")

    def __init__(self, inner: OrderedBytes, tell: OnChange, shard: Shard, stamped: bool) -> None:
        self._inner, self._put, self._tell, self._shard, self._stamped = inner, inner.put, tell, shard, stamped
        self.get, self.range, self.approximate_count = inner.get, inner.range, inner.approximate_count

    def put(self, key: bytes, value: bytes | None, /) -> None:
        self._put(key, value)
        if value is None or not self._stamped:
            self._tell(key, value, self._shard.record.timestamp)
        else:
            self._tell(key, value[STAMP_SIZE:], STAMP.unpack_from(value)[0])


Held = tuple[bytes | None, Record, Raw | None]  # a value that is held back, the record that made it, and its source


class CachedBytes:
    """Holds changes back: of several changes of a key the last one goes on, when the cache is flushed or full.

    The listener gets these changes in the order of last changes, with the shard set to the record that caused each. A
    key that came and went in between is left out.
    """

    __slots__ = ("_dirty", "_inner", "_limit", "_shard", "_size", "listener", "send_old")

    def __init__(self, inner: OrderedBytes, limit: int, shard: Shard) -> None:
        self._inner, self._limit, self._shard = inner, limit, shard
        self._dirty: dict[bytes, Held] = {}
        self._size = 0
        self.listener: Flushed | None = None
        self.send_old = False

    def get(self, key: bytes, /) -> bytes | None:
        held = self._dirty.get(key)
        return self._inner.get(key) if held is None else held[0]

    def put(self, key: bytes, value: bytes | None, /) -> None:
        """Put a value; its key moves to the end of the order."""
        dirty, shard = self._dirty, self._shard
        before = dirty.pop(key, None)
        dirty[key] = value, shard.record, shard.source
        self._size += len(value or b"") + (OVERHEAD + len(key) if before is None else -len(before[0] or b""))
        while self._size > self._limit and dirty:
            self._release(next(iter(dirty)))

    def range(
        self, low: bytes | None = None, high: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        held = [
            (key, value)
            for key, (value, _, _) in self._dirty.items()
            if (low is None or low <= key) and (high is None or key <= high)
        ]
        found: dict[bytes, bytes | None] = dict(self._inner.range(low, high))
        found.update(held)
        for key in sorted(found, reverse=reverse):
            value = found[key]
            if value is not None:
                yield key, value

    def approximate_count(self) -> int:
        return self._inner.approximate_count()

    def flush(self) -> None:
        dirty, self._dirty, self._size = self._dirty, {}, 0  # first: the listener may come back with changes
        for key, held in dirty.items():
            self._pass_on(key, held)

    def _release(self, key: bytes) -> None:
        held = self._dirty.pop(key)
        self._size -= OVERHEAD + len(key) + len(held[0] or b"")
        self._pass_on(key, held)

    def _pass_on(self, key: bytes, held: Held) -> None:
        shard, (value, record, source) = self._shard, held
        old = self._inner.get(key) if value is None or self.send_old else None
        if value is None and old is None:
            return
        before = shard.record, shard.source
        shard.record, shard.source = record, source
        self._inner.put(key, value)
        if self.listener is not None:
            self.listener(key, value, old if self.send_old else None, record)
        shard.record, shard.source = before


def layered(opening: Opening, *, stamped: bool) -> tuple[OrderedBytes, CachedBytes | None]:
    """Return the bytes of a key-value store with its layers, and its cache if it has one."""
    inner: OrderedBytes = opening.bytes
    if opening.on_change is not None:
        inner = LoggedBytes(inner, opening.on_change, opening.shard, stamped)
    if opening.cache_bytes:
        cache = CachedBytes(inner, opening.cache_bytes, opening.shard)
        return cache, cache
    return inner, None
