"""Compaction of one log: two walks in small steps.

The first walk goes through the dirty part, from `first_dirty` to `upper`, and notes the newest offset of each key,
until the key map is full. The second goes through everything before the last noted offset: it writes what `Filter`
leaves of each batch to a `.cleaned` segment, several small segments into one, syncs it, and has it swapped in. A crash
at any point leaves the old segments or the new ones. Should a segment have gone in the meantime (retention, truncation,
deletion of the topic), nothing is swapped and the compaction ends with `Abandoned`.

`compact` is a generator, so that a node can spend a millisecond on it now and then. It yields how many bytes it has
handled, or a `Sync` that must have run, in a thread if need be, before the next step.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from moldau.log.compaction_filter import Filter, LastOfProducer, Tally, Transactions, check, control_kind, scan
from moldau.log.compaction_keys import KeyMap
from moldau.log.config import LogConfig
from moldau.log.disk import File
from moldau.log.flush import Flush
from moldau.log.log import Log
from moldau.log.segment import CLEANED, MAX_DELTA, Segment
from moldau.wire.errors import WireError
from moldau.wire.records import Batch

WRITE_BYTES = 1 << 18


class Abandoned(Exception):
    """The log changed under the compaction; nothing of it was swapped in since."""


@dataclass(frozen=True, slots=True)
class Sync:
    """Files, or all that a flush covers, that must reach the disk before the compaction goes on."""

    files: Sequence[File | Flush]

    def sync(self) -> None:
        for file in self.files:
            file.sync()


@dataclass(slots=True)
class Compacted:
    """What came of it. `end_offset` is where the dirty part of the log begins now."""

    end_offset: int = 0
    keys: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    segments_before: int = 0
    segments_after: int = 0
    tally: Tally = field(default_factory=Tally)


Steps = Generator[int | Sync, None, Compacted]
Part = Generator[int | Sync, None, None]
T = TypeVar("T")


def compact(log: Log, first_dirty: int, upper: int, *, now_ms: int, memory_bytes: int, load: float = 0.9) -> Steps:
    """Clean the log before `upper`, the base offset of a segment; it is dirty from `first_dirty` on."""
    done = Compacted()
    keys = KeyMap(memory_bytes, load)
    keys.latest = first_dirty - 1  # what is clean needs no second look
    cleanable = [segment for segment in log.segments if segment.base_offset < upper]
    aborted = [entry for segment in log.segments for entry in segment.txns]
    yield from _note_keys(cleanable, keys, Transactions(aborted), first_dirty, upper)
    yield from _flush(log, now_ms)
    done.end_offset, done.keys = keys.latest + 1, len(keys)
    transactions = Transactions(aborted)
    affected = [segment for segment in cleanable if segment.base_offset < done.end_offset]
    for group in group_segments(affected, log.config, upper):
        producers = last_of_producers(log)
        retention_ms = log.config.delete_retention_ms
        filter_ = Filter(keys, transactions, producers, upper, now_ms, retention_ms, done.tally)
        yield from _clean(log, group, filter_, done)
    return done


def _flush(log: Log, now_ms: int) -> Part:
    """Sync the log: a record that goes in favour of a newer one must not be lost together with it."""
    if flush := log.prepare_flush(now_ms):
        yield Sync([flush])
        flush.complete()


def last_of_producers(log: Log) -> dict[int, LastOfProducer]:
    """Return where each producer that is still known has written last."""
    known = log.producers.by_id.values()
    return {p.producer_id: (p.batches[-1].last_offset if p.batches else None, p.epoch) for p in known}


def _note_keys(segments: list[Segment], keys: KeyMap, transactions: Transactions, start: int, upper: int) -> Part:
    for at, segment in enumerate(segments):
        behind = segments[at + 1].base_offset if at + 1 < len(segments) else upper
        if behind <= start:
            continue
        place = segment.locate(max(start, segment.base_offset))
        for _, batch in segment.batches(place[0] if place else segment.look()):
            if keys.is_full:
                return
            yield from _note_batch(batch, keys, transactions, start)
            keys.latest = batch.last_offset
            yield batch.size
        keys.latest = behind - 1  # there may be a gap


def _note_batch(batch: Batch, keys: KeyMap, transactions: Transactions, start: int) -> Part:
    """Enter the keys of a batch. One that is damaged has none: it stays, and must not displace what can be read."""
    try:
        check(batch)
        if batch.is_control:
            transactions.on_marker(batch, control_kind(batch))
        elif not transactions.on_data(batch):
            scanned = yield from _with_numbers(scan(batch, batch.body()))
            keys.add(scanned, start)
    except WireError:
        return


def _with_numbers(steps: Generator[None, None, T]) -> Generator[int, None, T]:
    """Turn interruptions within a batch into steps that have handled no bytes yet."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        yield 0


def group_segments(segments: Sequence[Segment], config: LogConfig, upper: int) -> Iterator[list[Segment]]:
    """Neighbours that fit into one segment together: by their bytes, their indexes and their range of offsets."""
    group: list[Segment] = []
    size = entries = times = 0
    for at, segment in enumerate(segments):
        segment.look_into_indexes()
        size, entries, times = size + segment.look(), entries + segment.index.count, times + segment.times.count
        last = (segments[at + 1].base_offset if at + 1 < len(segments) else upper) - 1
        fits = (
            size <= config.segment_bytes
            and entries * segment.index.entry.size <= config.segment_index_bytes
            and times * segment.times.entry.size <= config.segment_index_bytes
            and (segment.look() == 0 or not group or last - group[0].base_offset <= MAX_DELTA)
        )
        if group and not fits:
            yield group
            group, size, entries, times = [], segment.look(), segment.index.count, segment.times.count
        group.append(segment)
    if group:
        yield group


def _clean(log: Log, group: list[Segment], filter_: Filter, done: Compacted) -> Part:
    interval = log.config.index_interval_bytes
    cleaned = Segment(log.files, log.path, group[0].base_offset, interval=interval, suffix=CLEANED)
    before = _state(group)
    swapped = False
    try:
        cleaned.start()
        filter_.transactions.kept = cleaned.txns
        yield from _write(group, cleaned, filter_)
        cleaned.seal()
        yield Sync(cleaned.written_files())
        if log.offline is not None or not before.items() <= _state(log.segments).items():
            raise Abandoned(f"{log.path} changed while it was compacted")
        log.replace_segments(group, [cleaned], filter_.now_ms)
        swapped = True
    finally:
        if not swapped:
            cleaned.remove()
    done.segments_before, done.segments_after = done.segments_before + len(group), done.segments_after + 1
    done.bytes_before, done.bytes_after = done.bytes_before + sum(before.values()), done.bytes_after + cleaned.size


def _state(segments: Iterable[Segment]) -> dict[int, int]:
    """Return which segments these are, and how large: a truncation changes the size of one that stays."""
    return {id(segment): segment.look() for segment in segments}


def _write(group: list[Segment], cleaned: Segment, filter_: Filter) -> Part:
    """Copy what is left of each batch, many batches to a write."""
    parts: list[bytearray | memoryview] = []
    pending = 0
    for segment in group:
        for _, batch in segment.batches():
            left = yield from _with_numbers(filter_.apply(batch))
            if left is not None:
                newest = batch.max_timestamp if left is batch.view else Batch(left).max_timestamp
                cleaned.note(cleaned.size + pending, len(left), batch.last_offset, newest)
                parts.append(left)
                pending += len(left)
                if pending >= WRITE_BYTES:
                    _append(cleaned, parts, pending)
                    parts, pending = [], 0
            yield batch.size + (len(left) if left is not None else 0)
    _append(cleaned, parts, pending)


def _append(cleaned: Segment, parts: list[bytearray | memoryview], size: int) -> None:
    cleaned.open_file().append(b"".join(parts))
    cleaned.size += size
