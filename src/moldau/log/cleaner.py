"""Which log is compacted next, and how far each has come.

A log is clean up to the offset in the `cleaner-offset-checkpoint` of its directory, and dirty from there to the first
offset that must not be cleaned: that of the active segment, of the last stable offset, and of the first segment with a
record younger than `min.compaction.lag.ms`. The log with the largest share of dirty bytes is next, if the share is over
`min.cleanable.dirty.ratio` or the log has waited for longer than `max.compaction.lag.ms`.

`Cleaner.next` chooses and returns a `Cleaning`; its `step` does a little of the work. A log whose files are damaged is
not tried again before a restart; one that ran out of space, or changed under the work, has its turn again.
"""

import logging
import os.path
from collections.abc import Iterable
from dataclasses import dataclass

from moldau.log.checkpoints import Damaged, Partition, read_offsets, write_offsets
from moldau.log.compaction import Abandoned, Compacted, Sync, compact
from moldau.log.config import FOREVER
from moldau.log.disk import Disk
from moldau.log.log import Log
from moldau.log.segment import Segment
from moldau.wire.refusal import Refused

logger = logging.getLogger(__name__)

CHECKPOINT = "cleaner-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The numbers by which a log is chosen."""

    log: Log
    first_dirty: int
    upper: int  # the first offset that must not be cleaned, the base of a segment
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int  # by how much the oldest dirty record has waited too long

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def wants_cleaning(self) -> bool:
        if not self.dirty_bytes:
            return False
        return self.overdue_ms > 0 or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def filthiest(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the one with the largest share of dirty bytes among those that want it."""
    return max((c for c in candidates if c.wants_cleaning), key=lambda c: c.dirty_ratio, default=None)


def first_dirty_offset(log: Log, checkpoint: int | None) -> int:
    """Return where cleaning goes on. A checkpoint outside of the log says nothing: then all of it is dirty."""
    if checkpoint is None or not log.start_offset <= checkpoint <= log.end_offset:
        return log.start_offset
    return checkpoint


def candidate(log: Log, checkpoint: int | None, now_ms: int) -> Candidate:
    """Measure a log."""
    active = log.wake()
    segments = log.segments.items
    first_dirty = first_dirty_offset(log, checkpoint)
    dirty_slot = log.segments.slot_of(first_dirty)
    young = _first_young(segments[dirty_slot:-1], now_ms, log.config.min_compaction_lag_ms)
    limit = min(log.last_stable_offset, active.base_offset, young.base_offset if young else FOREVER)
    upper_slot = log.segments.slot_of(max(limit, first_dirty))
    return Candidate(
        log,
        first_dirty,
        segments[upper_slot].base_offset,
        sum(segment.look() for segment in segments[:dirty_slot]),
        sum(segment.look() for segment in segments[dirty_slot:upper_slot]),
        _overdue_ms(segments[dirty_slot:-1], now_ms - log.config.max_compaction_lag_ms),
    )


def _first_young(segments: Iterable[Segment], now_ms: int, lag_ms: int) -> Segment | None:
    """Without a lag no record is too young, not even one from the future."""
    if lag_ms <= 0:
        return None
    return next((segment for segment in segments if segment.largest_timestamp > now_ms - lag_ms), None)


def _overdue_ms(segments: Iterable[Segment], oldest_ms: int) -> int:
    """Return how long before `oldest_ms` the oldest of these segments begins."""
    if oldest_ms <= 0:
        return 0
    stamps = [stamp for segment in segments if (stamp := _first_timestamp(segment)) > 0]
    return max(0, oldest_ms - min(stamps, default=oldest_ms))


def _first_timestamp(segment: Segment) -> int:
    """Of its first batch; -1 when it is empty."""
    if segment.first_timestamp < 0 and segment.look():
        segment.first_timestamp = next(segment.headers())[1].max_timestamp
    return segment.first_timestamp


class Checkpoints:
    """The cleaner checkpoints of all log directories."""

    __slots__ = ("by_folder", "disk")

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.by_folder: dict[str, dict[Partition, int]] = {}

    def _of(self, log: Log) -> tuple[str, dict[Partition, int]]:
        folder = os.path.dirname(log.path)
        if folder not in self.by_folder:
            try:
                self.by_folder[folder] = read_offsets(self.disk, f"{folder}/{CHECKPOINT}")
            except Damaged as error:
                logger.warning("%s; all compacted logs there count as dirty", error)
                self.by_folder[folder] = {}
        return folder, self.by_folder[folder]

    def get(self, log: Log) -> int | None:
        return self._of(log)[1].get((log.topic, log.partition))

    def put(self, log: Log, offset: int | None) -> None:
        """Write the file only if something changes; None forgets the log."""
        folder, offsets = self._of(log)
        partition = (log.topic, log.partition)
        if offsets.get(partition) == offset:
            return
        if offset is None:
            del offsets[partition]
        else:
            offsets[partition] = offset
        write_offsets(self.disk, f"{folder}/{CHECKPOINT}", offsets)


class Cleaning:
    """A compaction that is under way."""

    __slots__ = ("_steps", "candidate", "result")

    def __init__(self, chosen: Candidate, *, now_ms: int, memory_bytes: int, load: float) -> None:
        self.candidate = chosen
        self.result: Compacted | None = None
        self._steps = compact(
            chosen.log, chosen.first_dirty, chosen.upper, now_ms=now_ms, memory_bytes=memory_bytes, load=load
        )

    @property
    def log(self) -> Log:
        return self.candidate.log

    def step(self) -> int | Sync | None:
        """Do a little: the bytes handled, or a `Sync` to run before the next step, or None when all is done."""
        try:
            return next(self._steps)
        except StopIteration as end:
            self.result = end.value
            return None

    def cancel(self) -> None:
        """Undo what is not swapped in; what cannot be removed is left to the next start."""
        try:
            self._steps.close()
        except OSError as error:
            logger.warning("%s", error)


class Cleaner:
    """Chooses logs and remembers how far they are clean. One compaction at a time."""

    __slots__ = ("checkpoints", "current", "load", "memory_bytes", "uncleanable")

    def __init__(self, disk: Disk, *, memory_bytes: int, load: float = 0.9) -> None:
        self.checkpoints = Checkpoints(disk)
        self.memory_bytes = memory_bytes
        self.load = load
        self.current: Cleaning | None = None
        self.uncleanable: dict[Partition, str] = {}

    def next(self, logs: Iterable[Log], now_ms: int) -> Cleaning | None:
        """Begin with the filthiest of these logs, unless none wants it. `logs` may hold logs that are not compacted."""
        assert self.current is None
        measured = [one for log in logs if (one := self._measure(log, now_ms)) is not None]
        chosen = filthiest(measured)
        if chosen is None:
            return None
        self.current = Cleaning(chosen, now_ms=now_ms, memory_bytes=self.memory_bytes, load=self.load)
        return self.current

    def _measure(self, log: Log, now_ms: int) -> Candidate | None:
        if not log.config.compacted or log.offline is not None or (log.topic, log.partition) in self.uncleanable:
            return None
        try:
            return candidate(log, self.checkpoints.get(log), now_ms)
        except (Damaged, OSError) as error:
            self._give_up(log, str(error))
        except Refused:  # the log went offline and has said why
            return None
        return None

    def step(self) -> int | Sync | None:
        """One step of the current compaction; None when there is none, or it has just ended."""
        cleaning = self.current
        if cleaning is None:
            return None
        try:
            step = cleaning.step()
            if step is None:
                self.current = None
                self._done(cleaning)
            return step
        except (Abandoned, Refused) as reason:
            logger.info("compaction was given up: %s", reason)
        except OSError as error:
            logger.error("compaction of %s failed and will be tried again: %s", cleaning.log.path, error)
        except Damaged as error:
            self._give_up(cleaning.log, str(error))
        self.current = None
        return None

    def _done(self, cleaning: Cleaning) -> None:
        log, result = cleaning.log, cleaning.result
        assert result is not None
        self.checkpoints.put(log, result.end_offset)
        for text in result.tally.damaged:
            logger.warning("%s: %s", log.path, text)
            log.on_damage(log, f"{log.path} is damaged: {text}")
        logger.info(
            "compacted %s up to offset %d: %d to %d bytes, %d to %d segments, %d of %d records kept",
            log.path,
            result.end_offset,
            result.bytes_before,
            result.bytes_after,
            result.segments_before,
            result.segments_after,
            result.tally.kept_records,
            result.tally.records,
        )

    def _give_up(self, log: Log, reason: str) -> None:
        logger.error("%s-%d cannot be compacted: %s", log.topic, log.partition, reason)
        self.uncleanable[log.topic, log.partition] = reason
        log.on_damage(log, reason)

    def cancel(self, log: Log | None = None) -> None:
        """Give up the current compaction, or only if it is that of `log`: before the log is closed or deleted."""
        if self.current is not None and log in (None, self.current.log):
            self.current.cancel()
            self.current = None

    def forget(self, log: Log) -> None:
        """The log is deleted."""
        self.cancel(log)
        self.uncleanable.pop((log.topic, log.partition), None)
        try:
            self.checkpoints.put(log, None)
        except OSError as error:
            logger.warning("%s-%d stays in the cleaner's checkpoint: %s", log.topic, log.partition, error)

    def truncated(self, log: Log, offset: int) -> None:
        """The log was cut: what is written there from now on is dirty."""
        checkpoint = self.checkpoints.get(log)
        if checkpoint is not None and checkpoint > offset:
            self.checkpoints.put(log, offset)
