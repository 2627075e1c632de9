"""The store of suppress(): changes that are held back, with serdes around their buffer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.serdes.context import Serde

from ..record import Change
from .buffers import Held, Origin, SuppressBuffer
from .key_value import coders
from .spec import Opening, StoreSpec


class SuppressStore:
    versioned = False
    cached = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        self.name = spec.name
        self.buffer = SuppressBuffer(opening.bytes)
        self.scalars = self.buffer.scalars
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)
        self._tell, self._shard = opening.on_change, opening.shard

    @property
    def count(self) -> int:
        return self.buffer.count

    @property
    def size(self) -> int:
        return self.buffer.size

    def put(self, time: int, key: Any, change: Change, origin: Origin) -> None:
        raw_key = self.write_key(key)
        assert raw_key is not None
        self.buffer.put(time, raw_key, self._write(change.old), self._write(change.new), origin)
        self.tell(raw_key)

    def prior(self, key: Any) -> tuple[bool, Any]:
        """Whether a key is held back, and the value that was last let through."""
        is_held, raw = self.buffer.prior(self.write_key(key) or b"")
        return is_held, self._read(raw)

    def due(self, time: int) -> Iterator[Held]:
        return self.buffer.due(time)

    def oldest(self) -> Held:
        return self.buffer.oldest()

    def remove(self, held: Held) -> None:
        self.buffer.remove(held)
        self.tell(held.key)

    def read(self, held: Held) -> tuple[Any, Change]:
        return self.read_key(held.key), Change(self._read(held.new), self._read(held.old))

    def approximate_count(self) -> int:
        return self.buffer.count

    def flush(self) -> None:
        """There is nothing that is held back from the bytes."""

    def tell(self, key: bytes) -> None:
        if self._tell is not None:
            self._tell(key, self.buffer.raw(key), self._shard.record.timestamp)


def suppressed(name: str, key: Serde | None = None, value: Serde | None = None, **options: Any) -> StoreSpec:
    return StoreSpec(name, "suppress", SuppressStore, key, value, **options)
