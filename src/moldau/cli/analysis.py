"""Statistics of a topic's records: sizes, keys, rates, compression, and what compaction would keep.

`Analysis.add` takes a batch at a time. Distinct keys are counted by their 64-bit hashes, up to a limit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from moldau.wire.compression import Compression
from moldau.wire.records import Batch, Record

MOST_KEYS = 5_000_000
MS_A_SECOND = 1000
CODECS = {codec.value: codec.name.lower() for codec in Compression}


@dataclass(slots=True)
class Analysis:
    """Sums over the batches added so far."""

    records: int = 0
    batches: int = 0
    stored: int = 0  # bytes of batches as stored on disk
    keys_bytes: int = 0
    values_bytes: int = 0
    with_key: int = 0
    tombstones: int = 0
    with_headers: int = 0
    largest: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    codecs: Counter[str] = field(default_factory=Counter)
    keys: set[int] = field(default_factory=set)
    uncounted: bool = False  # there are more keys than MOST_KEYS

    def add(self, batch: Batch, added: list[Record]) -> None:
        self.batches += 1
        self.stored += batch.size
        self.codecs[CODECS.get(batch.compression, str(batch.compression))] += 1
        self.records += len(added)
        for _, timestamp, key, value, headers in added:
            size = (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
            self.largest = max(self.largest, size)
            self.values_bytes += len(value) if value is not None else 0
            self.tombstones += value is None
            self.with_headers += bool(headers)
            self._see_time(timestamp)
            if key is not None:
                self.with_key += 1
                self.keys_bytes += len(key)
                self._see_key(key)

    def _see_time(self, timestamp: int) -> None:
        if timestamp >= 0:
            self.first_ms = timestamp if self.first_ms is None else min(self.first_ms, timestamp)
            self.last_ms = timestamp if self.last_ms is None else max(self.last_ms, timestamp)

    def _see_key(self, key: bytes) -> None:
        if len(self.keys) < MOST_KEYS:
            self.keys.add(hash(key))
        else:
            self.uncounted = True

    def facts(self) -> dict[str, Any]:
        """Return the numbers for people and programs; None if there is nothing to divide by."""
        seconds = None
        if self.first_ms is not None and self.last_ms is not None:
            seconds = (self.last_ms - self.first_ms) / MS_A_SECOND
        raw = self.keys_bytes + self.values_bytes
        left = len(self.keys) + self.records - self.with_key
        return {
            "records": self.records,
            "batches": self.batches,
            "records_a_batch": ratio(self.records, self.batches),
            "bytes_stored": self.stored,
            "bytes_of_keys_and_values": raw,
            "stored_to_raw": ratio(self.stored, raw),
            "average_record": ratio(raw, self.records),
            "largest_record": self.largest,
            "compression": dict(self.codecs),
            "with_key": self.with_key,
            "distinct_keys": None if self.uncounted else len(self.keys),
            "tombstones": self.tombstones,
            "with_headers": self.with_headers,
            "compaction_keeps": None if self.uncounted else ratio(left, self.records),
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
            "records_a_second": ratio(self.records, seconds),
            "bytes_a_second": ratio(raw, seconds),
        }


def ratio(of: float, to: float | None) -> float | None:
    """Divide and round; None if there is nothing to divide by."""
    return round(of / to, 3) if to else None
