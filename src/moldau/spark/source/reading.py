"""Reads ranges of partitions to their ends: what a task of Spark does.

A range may end in transaction markers, in aborted records or in a hole that compaction left. It is complete when the
position after the fetched batches reaches its end, whether or not there was a record.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from moldau.client import Client, ClientError, Error, Fetched, Fetcher
from moldau.spark.source.batches import Decoded, decoded
from moldau.spark.source.loss import lost
from moldau.spark.source.options import EARLIEST, LATEST
from moldau.spark.source.planning import Range, TopicPartition
from moldau.spark.source.topics import id_of, list_offsets
from moldau.wire.errors import WireError

LEAST_BYTES, MOST_BYTES = 64 << 10, 8 << 20  # per fetch
GUESSED_RECORD = 1024  # bytes, to guess the size of a short range
ATTEMPT_S = 30.0
CERTAIN = 3  # empty answers; the first may only name another replica to ask
GONE = {Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.INCONSISTENT_TOPIC_ID}


class Unreadable(RuntimeError):
    """A partition that cannot be read, or whose brokers do not answer; the text says why."""


@dataclass(slots=True)
class Reached:
    """The state of reading a range."""

    wanted: Range
    position: int
    empty: int = 0  # answers in a row

    @property
    def done(self) -> bool:
        return self.position >= self.wanted.end


def read(
    client: Client, ranges: Sequence[Range], *, isolation: str, fail_on_data_loss: bool, patience_ms: int
) -> Iterator[tuple[Range, Decoded]]:
    """Yield the records of ranges, from all partitions at the same time.

    It waits for brokers that are away, but raises ClientError if nothing came for `patience_ms`.
    """
    ids = {one.topic: id_of(one.topic_id) for one in ranges if one.topic_id}
    fetcher = Fetcher(client, isolation_level=isolation, topic_ids=ids)
    for wave in waves(ranges):
        yield from _read(client, fetcher, wave, isolation, fail_on_data_loss, patience_ms / 1000)


def waves(ranges: Iterable[Range]) -> list[list[Range]]:
    """Group ranges that can be read at the same time: at most one of each partition."""
    by_partition: dict[TopicPartition, list[Range]] = {}
    for one in ranges:
        by_partition.setdefault((one.topic, one.partition), []).append(one)
    return [[one for one in wave if one is not None] for wave in zip_longest(*by_partition.values())]


def _read(
    client: Client, fetcher: Fetcher, ranges: Iterable[Range], isolation: str, fail_on_data_loss: bool, patience: float
) -> Iterator[tuple[Range, Decoded]]:
    left = {(one.topic, one.partition): Reached(one, one.start) for one in ranges}
    until = time.monotonic() + patience
    while left:
        answers = _fetch(fetcher, left, until)
        full = any(len(found.records) for found in answers.values())
        for place, found in answers.items():
            state, before = left[place], left[place].position
            if found.error:
                state.position = _after(client, state, found.error, fail_on_data_loss)
            else:
                yield from _records(state, found, isolation, full)
            if state.position > before:
                until = time.monotonic() + patience
        first, *others = left  # whoever was asked for first may have had all the room
        left = {place: left[place] for place in (*others, first) if not left[place].done}
        if left and time.monotonic() > until:
            state = next(iter(left.values()))
            name, position = state.wanted.name, state.position
            raise Unreadable(f"Partition {name} gives nothing at offset {position} for {patience:.0f} s.")


def _records(state: Reached, found: Fetched, isolation: str, full: bool) -> Iterator[tuple[Range, Decoded]]:
    wanted, position = state.wanted, state.position
    try:
        for chunk in decoded(found, position, wanted.end):
            yield wanted, chunk
        _advance(state, found, isolation, full)
    except WireError as error:
        raise Unreadable(f"Partition {wanted.name} cannot be read after offset {position}: {error}.") from None


def _advance(state: Reached, found: Fetched, isolation: str, full: bool) -> None:
    """Move the position after what came.

    The end is also reached if nothing comes and nothing can come before it, as where compaction removed the last
    records. An empty answer does not count if it has records of other partitions: they may have taken all the room.
    """
    reached = found.next_offset(state.position)
    if reached > state.position:
        state.position, state.empty = reached, 0
        return
    state.empty += not full
    readable = found.last_stable_offset if isolation == "read_committed" else found.high_watermark
    if state.empty >= CERTAIN and readable >= state.wanted.end:
        state.position = state.wanted.end


def _fetch(fetcher: Fetcher, left: Mapping[TopicPartition, Reached], until: float) -> dict[TopicPartition, Fetched]:
    """Fetch once, without partitions that fail for a while.

    That a topic is gone counts only if nothing else came: brokers say so too while a partition moves.
    """
    most = max(state.wanted.end - state.position for state in left.values()) * GUESSED_RECORD
    size = min(MOST_BYTES, max(LEAST_BYTES, most))
    offsets = {place: state.position for place, state in left.items()}
    attempt_s = min(ATTEMPT_S, max(1.0, until - time.monotonic()))
    try:
        found = fetcher.fetch(offsets, max_bytes=MOST_BYTES, max_partition_bytes=size, timeout_s=attempt_s)
    except ClientError as error:
        if error.error in GONE:  # one of the topics is; which?
            topics = {topic for topic, _ in left}
            if len(topics) == 1:
                return {place: Fetched(error.error) for place in left}
            found = {}
            for name in topics:
                found |= _fetch(fetcher, {place: one for place, one in left.items() if place[0] == name}, until)
            return found
        if not error.retriable or time.monotonic() > until:
            raise
        return {}
    passing = GONE | {one.error for one in found.values() if one.error.retriable}
    return {place: one for place, one in found.items() if one.error not in passing}


def _after(client: Client, state: Reached, error: Error, fail: bool) -> int:
    """Return the position at which to continue after a partition refused, or raise."""
    wanted, position, name = state.wanted, state.position, state.wanted.name
    if error in GONE:
        lost([f"The topic {wanted.topic} was deleted: {name} is lost from offset {position} on."], fail)
        return wanted.end
    if error is not Error.OFFSET_OUT_OF_RANGE:
        raise Unreadable(f"Partition {name} cannot be read: {error.message}")
    place = (wanted.topic, wanted.partition)
    first = list_offsets(client, {place: EARLIEST}, committed=False)[place]
    if first > position:
        lost([f"Partition {name} begins at offset {first} now: {position} to {first - 1} are lost."], fail)
        return first
    end = list_offsets(client, {place: LATEST}, committed=False)[place]
    lost([f"Partition {name} ends at offset {end} now: up to {wanted.end - 1} are lost."], fail)
    return wanted.end
