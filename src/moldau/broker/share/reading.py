"""What a share partition needs to know of the log: where batches begin and end, and which of them were aborted.

Only headers are looked at. The bytes themselves go to the client as they lie in the file.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from moldau.log.disk import Span
from moldau.log.log import Isolation, Log
from moldau.machines.share.runs import Range, Run
from moldau.wire.records import HEADER_SIZE, Batch, ControlType, control_type, records

CHUNK = 1 << 15  # bytes that are read at a time to find headers


class Located(NamedTuple):
    """A batch, and where it lies in the file."""

    batch: Batch
    position: int


class Fetched(NamedTuple):
    """Batches of the log, one after the other, and the offsets of those whose transaction was aborted."""

    span: Span
    located: list[Located]
    aborted: list[Range]

    @property
    def ranges(self) -> list[Range]:
        return [(one.batch.base_offset, one.batch.last_offset) for one in self.located]

    def slice(self, runs: Sequence[Run]) -> Span:
        """Return the bytes of the batches that hold these records."""
        held = [
            one
            for one in self.located
            if one.batch.last_offset >= runs[0].first and one.batch.base_offset <= runs[-1].last
        ]
        start, end = held[0].position, held[-1].position + held[-1].batch.size
        return Span(self.span.file, start, end - start)


def read_shared(log: Log, offset: int, enough: int, max_bytes: int, isolation: Isolation) -> Fetched | None:
    """Return batches from the one with `offset` to the one with the offset `enough`; None if there are none.

    A group may be ahead of a log that has lost its tail with the power: it waits there, as in Kafka.
    """
    if offset > log.end_offset:
        return None
    found = log.read(offset, max_bytes, isolation=isolation)
    if found.span is None:
        return None
    located: list[Located] = []
    for one in locate(found.span):
        located.append(one)
        if one.batch.last_offset >= enough:
            break
    if not located:
        return None
    return Fetched(found.span, located, aborted_ranges(found.span, located, found.aborted or ()))


def locate(span: Span) -> Iterator[Located]:
    """Yield the batches that lie wholly in a span."""
    position, end = span.position, span.position + span.size
    chunk, start = b"", position
    while position + HEADER_SIZE <= end:
        if position + HEADER_SIZE > start + len(chunk):
            chunk, start = span.file.pread(min(CHUNK, end - position), position), position
            if len(chunk) < HEADER_SIZE:
                return
        batch = Batch(chunk, position - start)
        if position + batch.size > end:
            return
        yield Located(batch, position)
        position += batch.size


def aborted_ranges(span: Span, located: Sequence[Located], aborted: Sequence[tuple[int, int]]) -> list[Range]:
    """Return the batches of aborted transactions: from the first offset of each until its producer's marker."""
    waiting = sorted((first, producer_id) for producer_id, first in aborted)
    heapq.heapify(waiting)
    open_ones: set[int] = set()
    result: list[Range] = []
    for batch, position in located:
        while waiting and waiting[0][0] <= batch.last_offset:
            open_ones.add(heapq.heappop(waiting)[1])
        if batch.producer_id in open_ones and batch.is_transactional:
            if not batch.is_control:
                result.append((batch.base_offset, batch.last_offset))
            elif is_abort(span, batch, position):
                open_ones.discard(batch.producer_id)
    return result


def is_abort(span: Span, batch: Batch, position: int) -> bool:
    whole = Batch(span.file.pread(batch.size, position))
    return any(control_type(record.key) == ControlType.ABORT for record in records(whole))
