"""Builds record batches from columns: rows go to partitions and are gathered there until a batch is full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moldau.serdes.arrow.batch import Slices
from moldau.spark.sink.markers import Content
from moldau.spark.sink.rows import Rows
from moldau.wire.compression import compress
from moldau.wire.kernel import memory
from moldau.wire.records import HEADER_SIZE, assemble
from moldau.wire.records.column_writer import MOST_OF_A_HEAD, MOST_OF_A_HEADER, digest, encode, place

Send = Callable[[str, int, bytearray], Any]
FIRST_ROOM = 1 << 16


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """The partitions of a topic, and the limits of its batches and records."""

    topic: str
    partitions: int
    batch_bytes: int
    record_bytes: int


@dataclass(slots=True)
class Gathering:
    """The records of a batch that is not full yet."""

    room: np.ndarray = field(default_factory=lambda: np.empty(FIRST_ROOM, np.uint8))
    used: int = 0
    count: int = 0
    base_time: int = 0
    max_time: int = 0

    def make_room(self, more: int) -> None:
        if self.used + more > len(self.room):
            larger = np.empty(max(2 * len(self.room), self.used + more), np.uint8)
            larger[: self.used] = self.room[: self.used]
            self.room = larger

    def batch(self, compression: int) -> bytearray:
        body = compress(compression, self.room[: self.used].data)
        head = (-1, compression, self.count - 1, self.base_time, self.max_time, -1, -1, -1, self.count)
        made = assemble(0, *head, body)
        self.used = self.count = 0
        return made


class Batches:
    """The batches of a task. `add` sends each one that is full, `finish` the rest."""

    def __init__(self, send: Send, compression: int, turn: int = 0) -> None:
        self._send, self._compression = send, compression
        self._turn = turn  # rows without a key go to one partition at a time, as with Java's producer
        self._gathering: dict[tuple[str, int], Gathering] = {}

    def add(self, limits: TopicLimits, rows: Rows) -> Content:
        if not len(rows):
            return Content()
        bounds = rows.sizes + MOST_OF_A_HEAD + MOST_OF_A_HEADER * np.diff(rows.header_bounds)
        self._check(limits, bounds)
        partitions = self._place(limits, rows)
        order = np.argsort(partitions.astype(np.int16) if limits.partitions < 1 << 15 else partitions, kind="stable")
        cuts = np.searchsorted(partitions[order], np.arange(limits.partitions + 1))
        for partition in np.flatnonzero(np.diff(cuts)):
            mine = order[cuts[partition] : cuts[partition + 1]]
            self._gather(limits, int(partition), mine, bounds[mine], rows)
        return content_of(rows)

    def finish(self) -> None:
        for (topic, partition), gathering in self._gathering.items():
            if gathering.count:
                self._send(topic, partition, gathering.batch(self._compression))

    def _check(self, limits: TopicLimits, bounds: np.ndarray) -> None:
        largest = int(bounds.max()) + HEADER_SIZE
        if largest > limits.record_bytes:
            raise ValueError(
                f"A record for topic {limits.topic} has {largest} bytes, and {limits.record_bytes} is the limit: raise "
                f"max.request.size here, and max.message.bytes of the topic."
            )

    def _place(self, limits: TopicLimits, rows: Rows) -> np.ndarray:
        partitions = np.empty(len(rows), np.int32)
        keyless, self._turn = self._turn % limits.partitions, self._turn + 1
        wrong = place(*column(rows.keys), memory(rows.partitions), limits.partitions, keyless, memory(partitions))
        if wrong >= 0:
            raise ValueError(
                f"There is a row for partition {rows.partitions[wrong]} of topic {limits.topic}, which has "
                f"{limits.partitions} partitions, counted from 0."
            )
        return partitions

    def _gather(self, limits: TopicLimits, partition: int, mine: np.ndarray, bounds: np.ndarray, rows: Rows) -> None:
        gathering = self._gathering.setdefault((limits.topic, partition), Gathering())
        ends, at = np.cumsum(bounds), 0
        while at < len(mine):
            taken = int(ends[at - 1]) if at else 0
            last = int(np.searchsorted(ends, taken + limits.batch_bytes - HEADER_SIZE - gathering.used, side="right"))
            if last <= at and gathering.count:
                self._send(limits.topic, partition, gathering.batch(self._compression))
                continue
            last = max(last, at + 1)
            self._encode(gathering, mine, at, last, int(ends[last - 1]) - taken, rows)
            at = last

    def _encode(self, gathering: Gathering, mine: np.ndarray, first: int, last: int, most: int, rows: Rows) -> None:
        times = rows.times[mine[first:last]]
        if gathering.count == 0:
            gathering.base_time = gathering.max_time = int(times[0])
        gathering.max_time = max(gathering.max_time, int(times.max()))
        gathering.make_room(most)
        gathering.used = encode(
            memory(mine), first, last, column(rows.keys), column(rows.values), memory(rows.times),
            memory(rows.header_bounds), column(rows.header_keys), column(rows.header_values),
            gathering.base_time, gathering.count, memory(gathering.room), gathering.used,
        )  # fmt: skip
        gathering.count += last - first


def column(given: Slices) -> tuple[Any, Any, Any, Any]:
    """Return a column as compiled code takes it."""
    return memory(given.data), memory(given.starts), memory(given.ends), memory(given.present)


def content_of(rows: Rows) -> Content:
    """Summarize rows, in any order. Times do not count: they may be the current time."""
    keys, values = (digest(*column(one), seed) for one, seed in ((rows.keys, 1), (rows.values, 2)))
    return Content(len(rows), int(rows.sizes.sum()), (int(keys) + 3 * int(values)) & 0xFFFFFFFF)
