"""What is remembered of the records of a share partition: runs of offsets with a delivery state and a count.

A list of batches is sorted and without overlaps; neighbours differ. Where two batches claim an offset the one that
was delivered more often wins, then the later state: so writes may come twice or in another order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, NamedTuple

first_of, last_of = itemgetter(0), itemgetter(1)


class StateBatch(NamedTuple):
    """Offsets that were delivered equally often, and what became of them."""

    first: int
    last: int
    state: int
    deliveries: int


def read_batches(rows: Iterable[Any]) -> list[StateBatch]:
    """Return the batches of a request or of a record."""
    return [StateBatch(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count) for row in rows]


def combine(known: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Return the batches from the start offset on; with none (-1) all of them."""
    result = list(known)
    for batch in new:
        overlay(result, batch)
    return trim(result, start_offset)


def trim(batches: list[StateBatch], start_offset: int) -> list[StateBatch]:
    """Take away what lies before an offset."""
    at = bisect_left(batches, start_offset, key=last_of)
    del batches[:at]
    if batches and batches[0].first < start_offset:
        batches[0] = batches[0]._replace(first=start_offset)
    return batches


def overlay(batches: list[StateBatch], new: StateBatch) -> None:
    """Lay a batch over the others."""
    low = bisect_left(batches, new.first - 1, key=last_of)
    high = bisect_right(batches, new.last + 1, key=first_of)
    pieces: list[StateBatch] = []
    at = new.first
    for known in batches[low:high]:
        add(pieces, known._replace(last=min(known.last, new.first - 1)))
        add(pieces, new._replace(first=at, last=min(known.first - 1, new.last)))
        first, last = max(known.first, new.first), min(known.last, new.last)
        winner = new if rank(new) > rank(known) else known
        add(pieces, winner._replace(first=first, last=last))
        add(pieces, known._replace(first=max(known.first, new.last + 1)))
        at = max(at, known.last + 1)
    add(pieces, new._replace(first=at))
    batches[low:high] = pieces


def add(pieces: list[StateBatch], piece: StateBatch) -> None:
    """Append a piece, unless it is empty; one with its neighbour where they say the same."""
    if piece.first > piece.last:
        return
    before = pieces[-1] if pieces else None
    if before is not None and before.last + 1 == piece.first and rank(before) == rank(piece):
        pieces[-1] = before._replace(last=piece.last)
    else:
        pieces.append(piece)


def rank(batch: StateBatch) -> tuple[int, int]:
    return batch.deliveries, batch.state
