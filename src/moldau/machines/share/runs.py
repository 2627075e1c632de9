"""The records of a share partition that are in flight, as runs of offsets that fare alike.

Runs are sorted and do not overlap. There may be holes between them, where the log has no records.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from moldau.machines.share.batches import first_of, last_of

Range = tuple[int, int]  # first and last offset


class RecordState(IntEnum):
    """What becomes of a record in a share group; the numbers are those that are persisted."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
FINAL = frozenset({ACKNOWLEDGED, ARCHIVED})
NO_BATCH: Range = (0, -1)


class Run(NamedTuple):
    """Offsets with one fate. What is acquired has an owner, until its lock ends.

    `batch` is what was first acquired together, for as long as it is open: it is delivered together again.
    """

    first: int
    last: int
    state: RecordState
    deliveries: int
    owner: str = ""
    deadline_ms: float = 0.0
    batch: Range = NO_BATCH

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def records(self) -> int:
        return self.last - self.first + 1


class Runs:
    """The list of runs."""

    def __init__(self) -> None:
        self.items: list[Run] = []

    def __iter__(self) -> Iterator[Run]:
        return iter(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def append(self, run: Run) -> None:
        """Add a run behind all others; it keeps its borders."""
        self.items.append(run)

    def between(self, first: int, last: int) -> list[Run]:
        """Return the runs of these offsets, cut to them."""
        low = bisect_left(self.items, first, key=last_of)
        high = bisect_right(self.items, last, key=first_of)
        return [clip(run, first, last) for run in self.items[low:high]]

    def lay(self, new: Run) -> None:
        """Put a run in the place of what is known of its offsets, none of which may be in a hole."""
        items = self.items
        low = bisect_left(items, new.first, key=last_of)
        high = bisect_right(items, new.last, key=first_of)
        head = [clip(items[low], 0, new.first - 1)] if items[low].first < new.first else []
        tail = [clip(items[high - 1], new.last + 1, items[high - 1].last)] if items[high - 1].last > new.last else []
        low = max(0, low - 1)  # the neighbours may be one with it now
        before = [run for run in items[low:high] if run.last < new.first]
        items[low : high + 1] = join_neighbours([*before, *head, new, *tail, *items[high : high + 1]])

    def forget(self, before: int) -> None:
        """Let go of all that lies before an offset."""
        at = bisect_left(self.items, before, key=last_of)
        del self.items[:at]
        if self.items and self.items[0].first < before:
            self.items[0] = self.items[0]._replace(first=before)


def join_neighbours(runs: Iterable[Run]) -> list[Run]:
    """Neighbours that fare alike as one."""
    result: list[Run] = []
    for run in runs:
        before = result[-1] if result else None
        if before is not None and before.last + 1 == run.first and before[2:] == run[2:]:
            result[-1] = before._replace(last=run.last)
        else:
            result.append(run)
    return result


def clip(run: Run, first: int, last: int) -> Run:
    """Return the part of a run that lies within a range."""
    if first <= run.first and run.last <= last:
        return run
    return run._replace(first=max(run.first, first), last=min(run.last, last))


def without(runs: Sequence[Run], ranges: Sequence[Range]) -> list[Run]:
    """Return the parts of runs that lie in none of the ranges, which are sorted."""
    result: list[Run] = []
    for run in runs:
        at = run.first
        for first, last in ranges:
            if first <= run.last and last >= at:
                if first > at:
                    result.append(run._replace(first=at, last=first - 1))
                at = last + 1
        if at <= run.last:
            result.append(clip(run, at, run.last))
    return result
