"""Compares what replicas of a partition have of a range of offsets, as bytes and, where those differ, record by record.

Replicas are copies: their batches are the same bytes. Only compaction, which each replica does by itself, may leave
other records out, and writes the headers of batches anew; so of a compacted topic what all replicas have at an offset
must be the same record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from moldau.wire.errors import WireError
from moldau.wire.records import Batch, records, starts

NOTHING, DAMAGED = "nothing", "damaged"
SHOWN = 8  # hexadecimal digits of a fingerprint
Fingerprints = dict[int, str]


class Piece(NamedTuple):
    """Batches of one replica, and the offset up to which they are all that it has."""

    data: memoryview
    reach: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Offsets at which replicas differ, and what each broker has at the first of them."""

    first: int
    last: int
    brokers: Mapping[int, str]


class Compared(NamedTuple):
    """The offset up to which all replicas were compared, the bytes of one of them, and what differs."""

    end: int
    size: int
    differences: list[Difference]


def piece(data: memoryview, offset: int, end: int, high_watermark: int) -> Piece:
    """Make a piece of what a replica answered from `offset` on: complete batches that end before `end`.

    One that has no batch there, although its high watermark is beyond, has nothing up to the end.
    """
    reach, size = offset, 0
    for at in starts(data):
        batch = Batch(data, at)
        if batch.last_offset >= end:
            return Piece(data[:size], end)
        reach, size = max(reach, batch.next_offset), at + batch.size
    return Piece(data[:size], end if not size and high_watermark >= end else reach)


def compare(pieces: Mapping[int, Piece], offset: int, *, compacted: bool) -> Compared:
    """Compare the replicas from `offset` up to where all of them reach."""
    end = min(one.reach for one in pieces.values())
    cut = {broker: _until(one.data, end) for broker, one in pieces.items()}
    first, *others = cut.values()
    if all(one == first for one in others):
        return Compared(end, len(first), [])
    found = {broker: _fingerprints(data, offset, end, whole=not compacted) for broker, data in cut.items()}
    return Compared(end, max(map(len, cut.values())), list(_differences(found, compacted)))


def _until(data: memoryview, end: int) -> memoryview:
    """Return the batches that begin before an offset."""
    size = 0
    for at in starts(data):
        batch = Batch(data, at)
        if batch.base_offset >= end:
            break
        size = at + batch.size
    return data[:size]


def _fingerprints(data: memoryview, offset: int, end: int, *, whole: bool) -> Fingerprints:
    """Return a fingerprint for each record of a range; `whole` ones contain the bytes of their batch."""
    found: Fingerprints = {}
    for at in starts(data):
        batch = Batch(data, at)
        if not batch.is_valid():
            found |= dict.fromkeys(_within(batch, offset, end), DAMAGED)
            continue
        common = blake2b(batch.view[: batch.size] if whole else b"", digest_size=SHOWN // 2)
        common.update(repr((batch.is_control, batch.is_transactional)).encode())
        try:
            for record in records(batch):
                if offset <= record.offset < end:
                    one = common.copy()
                    one.update(repr(record).encode())
                    found[record.offset] = one.hexdigest()
        except WireError:
            found |= dict.fromkeys(_within(batch, offset, end), DAMAGED)
    return found


def _within(batch: Batch, offset: int, end: int) -> range:
    return range(max(batch.base_offset, offset), min(batch.next_offset, end, batch.base_offset + batch.size))


def _differences(found: Mapping[int, Fingerprints], compacted: bool) -> Iterator[Difference]:
    """Yield what differs; neighbouring offsets at which the same brokers stand out are one difference."""
    run: Difference | None = None
    kind: object = None
    for offset in sorted({offset for one in found.values() for offset in one}):
        values = {broker: one.get(offset, NOTHING) for broker, one in found.items()}
        known = {value for value in values.values() if value != NOTHING or not compacted}
        if len(known) < 2:
            continue
        sides = tuple(sorted((value, broker) for broker, value in values.items()))
        shape = tuple(value if value in (NOTHING, DAMAGED) else _rank(value, sides) for value in values.values())
        if run is not None and shape == kind and offset == run.last + 1:
            run = Difference(run.first, offset, run.brokers)
            continue
        if run is not None:
            yield run
        run, kind = Difference(offset, offset, values), shape
    if run is not None:
        yield run


def _rank(value: str, sides: tuple[tuple[str, int], ...]) -> int:
    """Return the lowest broker that has a value: which of them agree is what counts."""
    return min(broker for known, broker in sides if known == value)
