"""The store of a stream-table join with grace: records of the stream that wait for the table.

Keys: `1, timestamp, key, sequence` the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

from moldau.serdes.context import Serde

from ..record import Raw, Record
from .buffers import Origin, pack_origin, unpack_origin
from .key_value import coders
from .scalars import INT64, Scalars
from .segments import DATA, time_key
from .spec import Opening, StoreSpec

SEQUENCE = Struct(">i")


class GraceStore:
    """The waiting records in the order of their timestamps."""

    versioned = False
    cached = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        self.name, self.content, self._tell = spec.name, opening.bytes, opening.on_change
        self.grace: int = spec.part("grace_ms")
        self.scalars = Scalars(opening.bytes)
        self.observed = self.scalars.get("observed", -1)
        self.sequence = self.scalars.get("sequence", 0)
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)

    def put(self, record: Record, source: Raw | None) -> bool:
        """Keep a record; return False if it came too late to wait."""
        key, value = self.write_key(record.key), self._write(record.value)
        assert key is not None and value is not None
        timestamp = record.timestamp
        if self.observed - self.grace > timestamp:
            return False
        if timestamp > self.observed:
            self.observed = timestamp
            self.scalars.put("observed", timestamp)
        self.sequence = (self.sequence + 1) & 0x7FFFFFFF
        self.scalars.put("sequence", self.sequence)
        place = DATA + INT64.pack(timestamp) + key + SEQUENCE.pack(self.sequence)
        self._store(place, pack_origin(Origin.of(source, record)) + value, timestamp)
        return True

    def due(self) -> Iterator[tuple[Record, Origin]]:
        """Yield the records that have waited long enough, each removed once it has been processed."""
        last = self.observed - self.grace
        if last < 0:
            return
        for place, data in self.content.range(DATA, DATA + time_key(last + 1)):
            origin, at = unpack_origin(data)
            key, value = self.read_key(place[9:-4]), self._read(data[at:])
            yield Record(key, value, origin.timestamp, origin.headers), origin
            self._store(place, None, origin.timestamp)

    def _store(self, place: bytes, data: bytes | None, timestamp: int) -> None:
        self.content.put(place, data)
        if self._tell is not None:
            self._tell(place[1:], data, timestamp)


def grace(name: str, grace_ms: int, key: Serde | None = None, value: Serde | None = None, **options: Any) -> StoreSpec:
    return StoreSpec(name, "grace", GraceStore, key, value, parts=(("grace_ms", grace_ms),), **options)
