"""The store of suppress(): changes that are held back, at most one for each key.

Keys: `1, time, key` the change; `2, key` its time. The time of a key is that of its first change since one was last let
through; later changes take its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.serdes.context import Serde

from ..record import Change
from .buffers import Held, Origin, pack_held, unpack_held
from .key_value import coders
from .scalars import Scalars
from .segments import DATA, INDEX, time_key
from .spec import Opening, StoreSpec


class SuppressStore:
    """The changes of a table that are held back. `count` and `size` are bounded by the operator."""

    versioned = False
    cached = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        self.name, self.content = spec.name, opening.bytes
        self.scalars = Scalars(opening.bytes)
        self.count = self.scalars.get("count", 0)
        self.size = self.scalars.get("size", 0)
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)
        self._tell, self._shard = opening.on_change, opening.shard

    def put(self, time: int, key: Any, change: Change, origin: Origin) -> None:
        raw_key, old, new = self.write_key(key), self._write(change.old), self._write(change.new)
        assert raw_key is not None
        since = self.content.get(INDEX + raw_key)
        if since is None:
            since = time_key(time)
            self.content.put(INDEX + raw_key, since)
            held = Held(raw_key, old, old, new, origin)
            self.resize(1, held.size())
        else:
            before = self.held(raw_key, since)
            held = Held(raw_key, before.prior, old, new, origin)
            self.resize(0, held.size() - before.size())
        data = pack_held(held)
        self.content.put(DATA + since + raw_key, data)
        self.tell(raw_key, data + since)

    def prior(self, key: Any) -> tuple[bool, Any]:
        """Return whether a key is held back, and the value that was last let through."""
        raw_key = self.write_key(key) or b""
        since = self.content.get(INDEX + raw_key)
        return (False, None) if since is None else (True, self._read(self.held(raw_key, since).prior))

    def due(self, time: int) -> Iterator[Held]:
        """Yield the changes that have been held back since a time, the oldest first."""
        if time < 0:
            return
        end = DATA + time_key(time + 1)
        for place, data in self.content.range(DATA, end):
            if place != end:  # an empty key
                yield unpack_held(place[9:], data)

    def oldest(self) -> Held:
        place, data = next(self.content.range(DATA, INDEX))
        return unpack_held(place[9:], data)

    def remove(self, held: Held) -> None:
        since = self.content.get(INDEX + held.key)
        assert since is not None
        self.content.put(DATA + since + held.key, None)
        self.content.put(INDEX + held.key, None)
        self.resize(-1, -held.size())
        self.tell(held.key, None)

    def read(self, held: Held) -> tuple[Any, Change]:
        return self.read_key(held.key), Change(self._read(held.new), self._read(held.old))

    def held(self, key: bytes, since: bytes) -> Held:
        data = self.content.get(DATA + since + key)
        assert data is not None
        return unpack_held(key, data)

    def resize(self, records: int, size: int) -> None:
        if records:
            self.count += records
            self.scalars.put("count", self.count)
        if size:
            self.size += size
            self.scalars.put("size", self.size)

    def tell(self, key: bytes, data: bytes | None) -> None:
        if self._tell is not None:
            self._tell(key, data, self._shard.record.timestamp)


def suppressed(name: str, key: Serde | None = None, value: Serde | None = None, **options: Any) -> StoreSpec:
    return StoreSpec(name, "suppress", SuppressStore, key, value, **options)
