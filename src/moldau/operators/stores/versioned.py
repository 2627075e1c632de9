"""Versioned stores: values with the times from which they are valid, within a history retention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from moldau.serdes.context import Serde

from ..record import Stamped
from .key_value import coders, required_key
from .spec import Opening, StoreSpec
from .versioned_bytes import Version, VersionedBytes


class VersionedRecord(NamedTuple):
    """A value with the times from which and until which it is valid; None if it still is."""

    value: Any
    timestamp: int
    valid_to: int | None = None


class VersionedStore:
    """The versioned store of tables and processors. `put` returns LATEST, NOT_PUT, or the end of validity."""

    versioned = True
    cached = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        assert spec.retention_ms is not None
        self.name = spec.name
        self.bytes = VersionedBytes(opening.bytes, spec.retention_ms, spec.part("segment_interval_ms"))
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)
        self.raw_key = required_key(self.write_key, self.name)
        self._tell = opening.on_change

    def put(self, key: Any, value: Any, timestamp: int) -> int:
        """Put a value; None is a tombstone: there is no value from then on."""
        raw_key, raw = self.raw_key(key), self._write(value)
        valid_to = self.bytes.put(raw_key, raw, timestamp)
        if self._tell is not None:
            self._tell(raw_key, raw, timestamp)
        return valid_to

    def delete(self, key: Any, timestamp: int) -> VersionedRecord | None:
        """Put a tombstone, and return the value that was valid then."""
        found = self.as_of(key, timestamp)
        self.put(key, None, timestamp)
        return found

    def get(self, key: Any) -> Stamped | None:
        found = self.bytes.get(self.raw_key(key))
        return None if found is None else Stamped(self._read(found.value), found.timestamp)

    def as_of(self, key: Any, timestamp: int) -> VersionedRecord | None:
        """Return what was valid at a time, if that is within the history retention or nothing has changed since."""
        found = self.bytes.as_of(self.raw_key(key), timestamp)
        return None if found is None else self.record(found)

    def get_range(self, key: Any, first: int, last: int, reverse: bool = False) -> Iterator[VersionedRecord]:
        """Return all that was valid at some time of a span, the earliest first."""
        return (self.record(found) for found in self.bytes.between(self.raw_key(key), first, last, reverse))

    def latest(self) -> Iterator[tuple[Any, Stamped]]:
        """Yield what is valid now, of all keys."""
        for key, found in self.bytes.latest():
            yield self.read_key(key), Stamped(self._read(found.value), found.timestamp)

    def approximate_count(self) -> int:
        return self.bytes.content.approximate_count()

    def flush(self) -> None:
        """Do nothing: this store has no cache."""

    def record(self, found: Version) -> VersionedRecord:
        return VersionedRecord(self._read(found.value), found.timestamp, found.valid_to)


def versioned(
    name: str,
    history_retention_ms: int,
    key: Serde | None = None,
    value: Serde | None = None,
    *,
    segment_interval_ms: int | None = None,
    **options: Any,
) -> StoreSpec:
    options |= {"retention_ms": history_retention_ms, "parts": (("segment_interval_ms", segment_interval_ms),)}
    return StoreSpec(name, "versioned-key-value", VersionedStore, key, value, versioned=True, **options)
