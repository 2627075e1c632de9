"""The order in which a shard processes the records of its input partitions: that of Kafka Streams.

Records of a partition go in the order of offsets; of several partitions the one whose first record has the smallest
time comes first. While a partition has more that was not read yet, nothing newer than its last record is taken from the
others: it is held back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from moldau.operators.context import UNKNOWN_TIME
from moldau.operators.record import Raw, Record


class Inbox:
    """The waiting records of a partition. The first one is already deserialized: its time decides which is next."""

    __slots__ = ("head", "head_time", "partition_time", "raw", "read", "waiting")

    def __init__(self, read: Callable[[Raw, int], Record | None], partition_time: int = UNKNOWN_TIME) -> None:
        self.read = read
        self.waiting: deque[Raw] = deque()
        self.raw: Raw | None = None
        self.head: Record | None = None
        self.head_time = UNKNOWN_TIME
        self.partition_time = partition_time

    def add(self, raw: Raw) -> bool:
        """Add a record; return whether the inbox was empty before."""
        self.waiting.append(raw)
        return self.head is None and self.advance()

    def advance(self) -> bool:
        self.head = None
        while self.head is None and self.waiting:
            self.raw = self.waiting.popleft()
            self.head = self.read(self.raw, self.partition_time)
        if self.head is None:
            return False
        self.head_time = self.head.timestamp
        return True

    def take(self) -> tuple[Raw, Record]:
        assert self.raw is not None and self.head is not None
        taken = self.raw, self.head
        self.partition_time = max(self.partition_time, self.head_time)
        return taken

    def left(self) -> list[Raw]:
        """Return the records that were not taken."""
        first = [self.raw] if self.head is not None and self.raw is not None else []
        return [*first, *self.waiting]


class Run(NamedTuple):
    """Consecutive records of one inbox."""

    inbox: int
    first: int
    end: int


def runs(times: Sequence[np.ndarray], latest: list[int], unread: Sequence[bool]) -> Iterator[Run]:
    """Do as `in_order`, for columns: yield which inbox is next, and how far. For each inbox there are the times of its
    records, the time of its partition, which is updated here, and whether there is more to come.
    """
    places = range(len(times))
    at = [0] * len(times)
    while True:
        heads = {place: int(times[place][at[place]]) for place in places if at[place] < len(times[place])}
        if not heads:
            return
        one = min(heads, key=lambda place: (heads[place], place))
        limits = [time - (one > place) for place, time in heads.items() if place != one]
        limits += [latest[place] - (one > place) for place in places if unread[place] and place not in heads]
        end = until(times[one], at[one], min(limits)) if limits else len(times[one])
        if end == at[one]:
            return  # what is there is newer than what is still to come
        latest[one] = max(latest[one], int(times[one][at[one] : end].max()))
        yield Run(one, at[one], end)
        at[one] = end


def until(times: np.ndarray, first: int, limit: int) -> int:
    """Return the place of the first time after the limit. It is usually near."""
    size = 16
    while first < len(times):
        later = np.flatnonzero(times[first : first + size] > limit)
        if len(later):
            return first + int(later[0])
        first += size
        size *= 2
    return len(times)


def in_order(inboxes: dict[str, Inbox], unread: frozenset[str]) -> Iterator[tuple[Raw, Record]]:
    """Yield the records that may be taken; the rest stays in the inboxes. `unread` are those that have more to come.

    Among equal times the first inbox comes first. In Kafka the layout of a heap decides, which depends on when records
    came; here the order must be the same however they were cut into batches.
    """
    ordered = list(inboxes.values())
    waiting = [inbox for inbox in ordered if inbox.advance()]
    places = {id(inbox): place for place, inbox in enumerate(ordered)}
    open_ones = [inboxes[name] for name in inboxes if name in unread]
    while waiting:
        if len(waiting) == 1 and all(other.head is not None for other in open_ones):
            yield from all_of(waiting[0])
            return
        inbox = min(waiting, key=lambda inbox: inbox.head_time)  # of equals the first
        for other in open_ones:
            last = (other.partition_time, places[id(other)])
            if other.head is None and (inbox.head_time, places[id(inbox)]) > last:
                return
        taken = inbox.take()
        if not inbox.advance():
            waiting.remove(inbox)
        yield taken


def all_of(inbox: Inbox) -> Iterator[tuple[Raw, Record]]:
    """Yield all records of the only inbox, which is faster."""
    yield inbox.take()
    inbox.head = None
    read, partition_time = inbox.read, inbox.partition_time
    for raw in inbox.waiting:
        record = read(raw, partition_time)
        if record is not None:
            partition_time = inbox.partition_time = max(partition_time, record.timestamp)
            yield raw, record
    inbox.waiting.clear()
