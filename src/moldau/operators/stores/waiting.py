"""The store of a stream-table join with grace: records of the stream that wait, with serdes around their buffer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.serdes.context import Serde

from ..record import Raw, Record
from .buffers import GraceBuffer, Origin
from .key_value import coders
from .spec import Opening, StoreSpec


class GraceStore:
    versioned = False
    cached = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        self.name = spec.name
        self.buffer = GraceBuffer(opening.bytes, spec.part("grace_ms"), opening.on_change)
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)

    def put(self, record: Record, source: Raw | None) -> bool:
        """False if the record came too late to wait."""
        key, value = self.write_key(record.key), self._write(record.value)
        assert key is not None and value is not None
        return self.buffer.put(key, value, Origin.of(source, record))

    def due(self) -> Iterator[tuple[Record, Origin]]:
        for key, value, origin in self.buffer.due():
            yield Record(self.read_key(key), self._read(value), origin.timestamp, origin.headers), origin

    def approximate_count(self) -> int:
        return self.buffer.content.approximate_count()

    def flush(self) -> None:
        """There is nothing that is held back from the bytes."""


def grace(name: str, grace_ms: int, key: Serde | None = None, value: Serde | None = None, **options: Any) -> StoreSpec:
    return StoreSpec(name, "grace", GraceStore, key, value, parts=(("grace_ms", grace_ms),), **options)
