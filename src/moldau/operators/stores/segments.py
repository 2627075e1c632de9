"""Time segments: how long windows and sessions are kept.

A store observes time by the windows that are put into it. What is older than its retention is no longer visible, and is
removed with its segment. A segment is half the retention, at least a minute, and lives while a part of it may still be
within the retention. A put is dropped if its segment is gone.

The visible rules (Kafka 4.3), for a store that has observed time T and has the retention R:
| store                 | a look-up sees        | a put is dropped      |
|---|---|---|
| persistent            | times > T - R         | if its segment is gone |
| ordered by time       | times >= T - R        | if its segment is gone |
| in memory             | times > T - R         | times <= T - R |
"""

from __future__ import annotations

from struct import Struct

from .ordered import OrderedBytes
from .scalars import Scalars

DATA = b"\x01"
INDEX = b"\x02"
INT64 = Struct(">q")
NO_TIME = -1
SHORTEST_SEGMENT_MS = 60_000


def divide(time: int, interval: int) -> int:
    """Divide towards zero, as Java does."""
    return time // interval if time >= 0 else -(-time // interval)


def time_key(time: int) -> bytes:
    return INT64.pack(max(0, time))


class Segments:
    """The observed time of a store, and which of its data have expired. `latest` is the latest time of its data. It is
    later than the observed time while a cache holds changes back: time is observed when they are let go.
    """

    __slots__ = ("content", "in_memory", "interval", "latest", "lowest", "observed", "retention", "scalars")

    def __init__(self, content: OrderedBytes, retention: int, in_memory: bool) -> None:
        self.content, self.in_memory = content, in_memory
        self.scalars = Scalars(content)
        self.retention = retention
        self.interval = max(retention // 2, SHORTEST_SEGMENT_MS)
        self.observed = self.latest = self.scalars.get("observed", NO_TIME)
        self.lowest = self.lowest_live()

    def observe(self, time: int) -> bool:
        """Observe a time; return whether segments have expired by it."""
        if time <= self.observed:
            return False
        self.observed = time
        self.latest = max(self.latest, time)
        self.scalars.put("observed", time)
        before, self.lowest = self.lowest, self.lowest_live()
        return self.lowest > before

    def of(self, time: int) -> int:
        return divide(time, self.interval)

    def lowest_live(self) -> int:
        return divide(self.observed - self.retention, self.interval)

    def keeps(self, time: int) -> bool:
        if self.in_memory:
            return time > self.observed - self.retention
        return self.of(time) >= self.lowest

    def between(self, start: int, end: int) -> range:
        """Return the segments that may hold these times."""
        return range(max(self.of(start), self.lowest), self.of(min(end, self.latest)) + 1)
