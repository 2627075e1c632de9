"""One partition on disk: append, read, roll, flush, truncate, delete.

A `Log` that is opened after a clean stop is asleep: it knows its offsets from the checkpoints and has read nothing but
the names of its files. The first append or read wakes it. A log that has lost its disk, or whose files are damaged, is
offline: `offline` says why, and every use is refused with KAFKA_STORAGE_ERROR.

Time is always an argument. Nothing here waits for the disk but `flush`, `close` and a truncation.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from struct import Struct

from moldau.log import lookup, reading, truncation
from moldau.log.answers import NOT_FOUND, Appended, Found, Isolation, Origin, Read, new_appended, no_room
from moldau.log.batchwise import append_batches
from moldau.log.checkpoints import Damaged, read_topic_id, write_topic_id
from moldau.log.config import LogConfig
from moldau.log.disk import NO_ROOM, File, Files, Remover, at_once, remove_tree
from moldau.log.epochs import LeaderEpochs
from moldau.log.flush import Flush
from moldau.log.producers import Producers
from moldau.log.recovery import (
    UNSETTLED,
    Loading,
    base_offsets,
    finish_interrupted_work,
    recover,
    replay_producers,
    snapshot_offsets,
)
from moldau.log.rolling import must_roll
from moldau.log.segment import Segment
from moldau.log.segments import Segments
from moldau.log.validation import examine, no_batch, wants_records
from moldau.wire.crc import crc32c
from moldau.wire.errors import Error
from moldau.wire.records import CRC_START, HEADER, HEADER_SIZE, LENGTH_START, TRANSACTIONAL
from moldau.wire.refusal import Refused

__all__ = ["Appended", "Flush", "Found", "Isolation", "Log", "Origin", "Read", "Refused"]

logger = logging.getLogger(__name__)

PLAIN_ATTRIBUTES = 0x17  # a codec, and whether it is transactional
METADATA = "partition.metadata"

_offset_length_epoch = Struct(">qii")


@dataclass(slots=True, eq=False, repr=False)
class Log:
    """A partition's log; use `create` or `open`. See the module's docstring and docs/durability.md."""

    files: Files
    path: str
    topic: str
    partition: int
    config: LogConfig
    now_ms: InitVar[int]
    offline: str | None = None
    start_offset: int = 0
    end_offset: int = 0
    high_watermark: int = 0
    recovery_point: int = 0
    active: Segment | None = None  # None while asleep or offline
    stored_topic_id: bytes | None = None
    jitter_ms: int = 0
    newborn: bool = False
    written: bool = False
    names_made: int = 0  # how many files were made
    names_synced: int = 0  # how many of them the folder's sync covers
    cuts: int = 0  # how often records were taken back
    checkpoint: Callable[[], bool] = lambda: True  # its directory writes the recovery points, if there is room
    on_damage: Callable[["Log", str], object] = lambda log, reason: None  # something of it cannot be read or written
    segments: Segments = field(init=False)
    epochs: LeaderEpochs = field(init=False)
    producer_state: Producers = field(init=False)
    last_flush_ms: int = field(init=False)
    rolled_ms: int = field(init=False)
    wants_records: bool = field(init=False)

    def __post_init__(self, now_ms: int) -> None:
        self.segments = Segments(self.files, self.path, self.config.index_interval_bytes)
        self.epochs = LeaderEpochs(self.files.disk, self.path)
        self.producer_state = Producers(self.files.disk, self.path)
        self.last_flush_ms = self.rolled_ms = now_ms
        self.configure(self.config)

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, {self.start_offset}..{self.end_offset})"

    @classmethod
    def create(
        cls, files: Files, path: str, topic: str, partition: int, config: LogConfig, *, topic_id: bytes, now_ms: int
    ) -> "Log":
        """Create a new partition. OSError when its folder cannot be made."""
        files.disk.mkdir(path)
        write_topic_id(files.disk, f"{path}/{METADATA}", topic_id)
        log = cls(files, path, topic, partition, config, now_ms)
        log.stored_topic_id = topic_id
        log.newborn = True
        return log

    @classmethod
    def open(
        cls,
        files: Files,
        path: str,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        now_ms: int,
        start_offset: int = 0,
        recovery_point: int | None = None,
        high_watermark: int = 0,
        clean: bool = False,
        lost_writes: bool = False,
    ) -> "Log":
        """Open what is there; Refused if there is no room. `clean`: the directory was closed, and this log ended at
        `recovery_point`. `lost_writes`: the machine has been restarted since, and writes may be missing."""
        log = cls(files, path, topic, partition, config, now_ms)
        log.start_offset, log.recovery_point = start_offset, recovery_point or 0
        try:
            names = log._settled_names()
            bases = base_offsets(names)
            log.start_offset = max([start_offset, *bases[:1]])
            if clean and recovery_point is not None and log.start_offset <= recovery_point:
                log.end_offset = recovery_point
                log.high_watermark = min(max(high_watermark, log.start_offset), log.end_offset)
            else:
                log._load(names, now_ms, clean, lost_writes, high_watermark)
        except Damaged as error:
            log.fail(str(error))
        except OSError as error:
            refused = log.trouble(error, "opened")
            if log.offline is None:
                raise refused from error
        finally:
            log.segments.release()
        return log

    def _settled_names(self) -> list[str]:
        disk = self.files.disk
        names = disk.listdir(self.path)
        if any(name.endswith(UNSETTLED) for name in names):
            finish_interrupted_work(self.files, self.path, names)
            names = disk.listdir(self.path)
        return names

    def _load(self, names: list[str], now_ms: int, clean: bool, lost_writes: bool, high_watermark: int) -> None:
        """Read what an append or a read needs: little after a clean stop, else all from the recovery point on."""
        segments = [self.segments.make(base) for base in base_offsets(names)]
        self.epochs.load()
        self.producer_state.snapshots = snapshot_offsets(names)
        if not segments:
            self.end_offset = self.recovery_point = self.producer_state.end_offset = self.start_offset
            self.newborn = True  # whoever made the folder may have died before a sync
            self._start_segment(self.start_offset, now_ms)
        else:
            self._load_segments(segments, now_ms, clean, lost_writes)
        self.high_watermark = min(max(high_watermark, self.start_offset), self.end_offset)
        self.epochs.truncate_end(self.end_offset)
        self.epochs.truncate_start(self.start_offset)
        self.producer_state.on_high_watermark(self.high_watermark)

    def _load_segments(self, segments: list[Segment], now_ms: int, clean: bool, lost_writes: bool) -> None:
        state, point = self.producer_state, self.recovery_point
        loading = Loading(self.config, self.epochs, state, segments, self.start_offset, point, now_ms, lost_writes)
        if clean and (end := segments[-1].resume()) == (point or end):  # else this is not what was closed: check it
            loading.end_offset = loading.recovery_point = end
            if state.snapshots:
                replay_producers(loading)
        else:
            recover(loading)
            self.written = self.newborn = True  # nobody knows what was synced before the crash
            self.last_flush_ms = 0  # nor how long flush.ms has been waiting
            self.names_made += 1
            ends = [segment.base_offset for segment in segments[1:]]
            self.segments.unsynced = [s for s, end in zip(segments, ends, strict=False) if end >= self.recovery_point]
        self.end_offset = state.end_offset = loading.end_offset
        self.recovery_point = loading.recovery_point
        self.segments.set(segments)
        self.active = segments[-1]
        state.keep_snapshots(self.segments.bases)
        if self.end_offset < self.start_offset:
            logger.warning("%s ends before its first offset %d: it begins there anew", self.path, self.start_offset)
            self.truncate_fully(self.start_offset, now_ms)

    def wake(self) -> Segment:
        """Make the log ready for use and return its active segment, or refuse and say why it is offline."""
        if self.offline is not None:
            raise Refused(Error.KAFKA_STORAGE_ERROR, self.offline)
        if self.active is None:
            try:
                self._load(self.files.disk.listdir(self.path), self.last_flush_ms, True, False, self.high_watermark)
            except OSError as error:
                raise self.trouble(error, "read") from error
            except Damaged as error:
                raise self.fail(str(error)) from error
        assert self.active is not None
        return self.active

    def trouble(self, error: OSError, verb: str) -> Refused:
        """Refuse what needs room while there is none; take the partition offline for any other error."""
        return no_room(self.path) if error.errno in NO_ROOM else self.fail(f"{self.path} cannot be {verb}: {error}")

    def fail(self, reason: str) -> Refused:
        """Take the partition offline and return the refusal."""
        logger.error("partition %s-%d is offline: %s", self.topic, self.partition, reason)
        self.offline = reason
        self.active = None
        self.segments.release()
        self.on_damage(self, reason)
        return Refused(Error.KAFKA_STORAGE_ERROR, reason)

    def configure(self, config: LogConfig) -> None:
        """Obey these settings from now on."""
        self.config = config
        self.wants_records = wants_records(config)
        self.segments.interval = config.index_interval_bytes
        if self.active is not None:
            self.active.interval = config.index_interval_bytes
            self.active.roomy_size = -1

    @property
    def topic_id(self) -> bytes | None:
        """None when nobody has written it, or when a crash has taken it."""
        if self.stored_topic_id is None:
            try:
                self.stored_topic_id = read_topic_id(self.files.disk, f"{self.path}/{METADATA}")
            except Damaged as error:
                logger.warning("%s", error)
        return self.stored_topic_id

    @property
    def leader_epochs(self) -> LeaderEpochs:
        self.wake()
        return self.epochs

    @property
    def producers(self) -> Producers:
        self.wake()
        return self.producer_state

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        self.wake()
        return self.segments.size

    @property
    def last_stable_offset(self) -> int:
        """Everything before it is decided: no open transaction, no marker that is not replicated yet."""
        if self.active is None:
            self.wake()
        first = self.producer_state.first_unstable
        return self.high_watermark if first is None else min(max(first, self.start_offset), self.high_watermark)

    def append(
        self, view: memoryview, leader_epoch: int, now_ms: int, origin: Origin = Origin.CLIENT, txn_version: int = 0
    ) -> Appended:
        """Append one batch of a client, or batches of another origin. Offset and epoch are set in place in `view`.

        The condition `fine` is all that a good batch costs; `examine` knows what is wrong with the others.
        """
        active = self.active or self.wake()
        if origin is not Origin.CLIENT:
            return append_batches(self, active, view, leader_epoch, now_ms, origin, txn_version)
        config, size, append_time = self.config, len(view), -1
        if size < HEADER_SIZE:
            raise no_batch(size)
        base, length, _, magic, crc, attributes, delta, _, timestamp, pid, epoch, sequence, count = HEADER.unpack_from(
            view
        )
        fine = (
            length + LENGTH_START == size <= config.max_message_bytes
            and magic == 2
            and base == 0
            and attributes & PLAIN_ATTRIBUTES == attributes
            and attributes & 7 < 5
            and delta + 1 == count > 0
            and (pid < 0 or sequence >= 0)
            and timestamp <= now_ms + config.message_timestamp_after_max_ms
            and not self.wants_records
            and crc32c(view[CRC_START:]) == crc
        )
        if not fine:
            view, append_time = examine(view, config, now_ms)
            _, length, _, _, _, attributes, delta, _, timestamp, pid, epoch, sequence, _ = HEADER.unpack_from(view)
            size = len(view)
        base = self.end_offset
        last = base + delta
        state, transactional = self.producer_state, attributes & TRANSACTIONAL != 0
        last_sequence = (sequence + delta) & 0x7FFFFFFF
        if pid >= 0 and (sent := state.check(pid, epoch, sequence, last_sequence, transactional, origin)):
            return Appended(sent.first_offset, sent.last_offset, sent.timestamp, self.start_offset, True)
        try:
            # The bounds answer for must_roll while nothing is near: the call would cost more than the question.
            if (
                active.size + size > active.roomy_size
                or timestamp > active.roomy_timestamp
                or last > active.roomy_offset
            ) and must_roll(self, active, size, timestamp, last, now_ms):
                active = self.roll(now_ms)
            _offset_length_epoch.pack_into(view, 0, base, length, leader_epoch)
            active.append(view, last, timestamp)
        except OSError as error:
            raise self.write_failed(error) from error
        self.end_offset = last + 1
        self.written = True
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base)
        if pid >= 0:
            state.apply(pid, epoch, last_sequence, base, last, timestamp, transactional)
        return new_appended(Appended, (base, last, append_time, self.start_offset, False))

    def write_failed(self, error: OSError) -> Refused:
        """Refuse this append if the disk is full, and leave the log as it was; take it offline for any other error."""
        if error.errno in NO_ROOM and self.active is not None:
            try:
                self.active.cut(self.active.size)
                return no_room(self.path)
            except OSError as second:
                error = second
        return self.fail(f"{self.path} cannot be written: {error}")

    def roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the end of the log, unless the active one has nothing to leave behind."""
        active = self.wake()
        if active.base_offset == self.end_offset:
            return active
        self._take_snapshot()
        return self._start_segment(self.end_offset, now_ms)

    def _start_segment(self, base_offset: int, now_ms: int) -> Segment:
        self.active = self.segments.start(base_offset)
        self.written = True
        self.names_made += 1
        self.rolled_ms = now_ms
        # spreads the rolls of partitions that began together, and is the same wherever the segment is opened
        spread = min(self.config.segment_jitter_ms, self.config.segment_ms)
        self.jitter_ms = crc32c(memoryview(self.active.path.encode())) % spread if spread else 0
        return self.active

    def _take_snapshot(self) -> None:
        self.producer_state.end_offset = self.end_offset
        self.producer_state.take_snapshot()

    def advance_high_watermark(self, offset: int) -> None:
        """Records before `offset` are replicated. It moves back only by truncation."""
        if offset > self.high_watermark:
            self.high_watermark = offset if offset < self.end_offset else self.end_offset
            if self.producer_state.unreplicated:
                self.producer_state.on_high_watermark(self.high_watermark)

    def upper_bound(self, isolation: Isolation) -> int:
        """Return the offset before which a reader must stop."""
        if isolation is Isolation.HIGH_WATERMARK:
            return self.high_watermark
        return self.last_stable_offset if isolation is Isolation.COMMITTED else self.end_offset

    def read(
        self, offset: int, max_bytes: int, *, min_one: bool = True, isolation: Isolation = Isolation.LOG_END
    ) -> Read:
        """Bytes from the batch that holds `offset` on, out of one segment. They may end within a batch.

        The first batch is whole: if it is larger than `max_bytes`, it comes alone (`min_one`) or not at all.
        """
        if self.active is None:
            self.wake()
        if not self.start_offset <= offset <= self.end_offset:
            text = f"Offset {offset} is not within {self.start_offset} and {self.end_offset}."
            raise Refused(Error.OFFSET_OUT_OF_RANGE, text)
        bound, committed = self.upper_bound(isolation), isolation is Isolation.COMMITTED
        if offset >= bound:
            return reading.EMPTY_COMMITTED if committed else reading.EMPTY
        try:
            return reading.read(self.segments, offset, max_bytes, min_one, bound, self.end_offset, committed)
        except (Damaged, OSError) as error:
            raise self.fail(f"{self.path} cannot be read: {error}") from error

    def check(self, offset: int) -> None:
        """Look whether what a read from `offset` gives is damaged, and report it; the log stays in use."""
        try:
            problem = reading.damage_in(self.read(offset, reading.CHECK_BYTES).span)
        except OSError as error:
            self.fail(f"{self.path} cannot be read: {error}")
        else:
            if problem:
                self.on_damage(self, f"{self.path} is damaged after offset {offset}: {problem}")

    def readable_bytes(self, offset: int, isolation: Isolation = Isolation.HIGH_WATERMARK) -> int:
        """Return about how many bytes reads from `offset` on would give."""
        if self.active is None:
            self.wake()
        return 0 if offset >= self.upper_bound(isolation) else reading.readable_bytes(self.segments, offset)

    def offset_for_time(self, timestamp: int, isolation: Isolation = Isolation.LOG_END) -> Found:
        """Return the first record at or after a timestamp, or what ListOffsets' special timestamps ask for."""
        self.wake()
        if timestamp == lookup.LATEST:
            return Found(self.upper_bound(isolation), -1, self.epochs.latest)
        if timestamp in (lookup.EARLIEST, lookup.EARLIEST_LOCAL):
            return Found(self.start_offset, -1, self.epochs.epoch_of(self.start_offset))
        try:
            if timestamp == lookup.MAX_TIMESTAMP:
                record = lookup.newest(self.segments.items)
            elif timestamp < 0:  # nothing is tiered here
                record = NOT_FOUND
            else:
                record = lookup.first_at_or_after(self.segments.items, timestamp, self.start_offset)
        except (Damaged, OSError) as error:
            raise self.fail(f"{self.path} cannot be read: {error}") from error
        return record if record.offset < self.upper_bound(isolation) else NOT_FOUND

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch; (-1, -1) if the epoch is not known."""
        return self.leader_epochs.end_offset(epoch, self.start_offset, self.end_offset)

    @property
    def unflushed(self) -> int:
        """Records behind the recovery point."""
        return self.end_offset - self.recovery_point

    def flush_due(self, now_ms: int) -> bool:
        """Return whether flush.messages, flush.ms or a roll asks for a flush now."""
        unflushed = self.end_offset - self.recovery_point
        return unflushed > 0 and (
            unflushed >= self.config.flush_messages
            or bool(self.segments.unsynced)
            or now_ms - self.last_flush_ms >= self.config.flush_ms
        )

    def prepare_flush(self, now_ms: int) -> Flush | None:
        """Return what must be synced, or None. The caller syncs it, in a thread if need be, and then completes it."""
        if self.active is None or not (self.unflushed or self.segments.unsynced or self.epochs.dirty):
            return None
        try:
            self.epochs.write()
            files = [file for segment in self.segments.unsynced for file in segment.written_files()]
            files += self.active.dirty_files()
            files += self._newborn_files()
        except OSError as error:
            raise self.write_failed(error) from error
        folders = self._changed_folders() if self.names_made > self.names_synced or self.active.txns.dirty else []
        sealed = list(self.segments.unsynced)
        return Flush(self, self.files.disk, files, folders, self.end_offset, now_ms, self.names_made, sealed, self.cuts)

    def flushed(self, flush: Flush) -> None:
        """`flush` is on the disk. If records were taken back since, others may stand at their offsets."""
        if flush.cuts == self.cuts:
            self.recovery_point = max(self.recovery_point, flush.offset)
        self.last_flush_ms = flush.now_ms
        self.segments.unsynced = [segment for segment in self.segments.unsynced if segment not in flush.sealed]
        self.names_synced = max(self.names_synced, flush.names)
        self.newborn = False

    def flush(self, now_ms: int | None = None) -> None:
        """Sync everything now."""
        if flush := self.prepare_flush(self.last_flush_ms if now_ms is None else now_ms):
            try:
                flush.sync()
            except OSError as error:
                raise self.fail(f"{self.path} cannot be synced: {error}") from error
            flush.complete()

    def close(self, *, clean: bool = True, sync: bool = True) -> None:
        """Let go of the files. After a clean close the next start need not look at them.

        Without `sync` the caller must sync the whole disk before it calls the stop a clean one.
        """
        if clean and self.active is not None and self.written:
            try:
                self._take_snapshot()
                self.epochs.write(sync=sync)
                self.active.seal()
                if sync:
                    self._sync([*self.segments.unsynced, self.active])
                self.recovery_point = self.end_offset
            except OSError as error:
                raise self.fail(f"{self.path} cannot be closed: {error}") from error
        self.shut(f"{self.path} is closed")

    def _sync(self, segments: Sequence[Segment]) -> None:
        files = [file for segment in segments for file in segment.written_files()]
        files += self._newborn_files()
        Flush(self, self.files.disk, files, self._changed_folders(), self.end_offset, self.last_flush_ms).sync()

    def _newborn_files(self) -> list[File]:
        path = f"{self.path}/{METADATA}"
        return [self.files.disk.open(path)] if self.newborn and self.files.disk.exists(path) else []

    def _changed_folders(self) -> list[str]:
        return [self.path, self.path.rpartition("/")[0]] if self.newborn else [self.path]

    def settle_in(self, path: str) -> None:
        """Go on in another folder, which holds the same records and was closed. Raises Refused, and is offline then."""
        self.segments.release()
        self.path, self.active = path, None
        self.segments = Segments(self.files, path, self.config.index_interval_bytes)
        self.epochs = LeaderEpochs(self.files.disk, path)
        self.producer_state = Producers(self.files.disk, path)
        self.recovery_point = self.end_offset
        self.written = self.newborn = False
        self.names_synced = self.names_made
        self.wake()

    def delete(self) -> None:
        """Remove the partition's folder and everything in it."""
        self.shut(f"{self.topic}-{self.partition} was deleted")
        remove_tree(self.files.disk, self.path)

    def shut(self, reason: str) -> None:
        """Let go of the files as they are."""
        self.segments.release()
        self.active = None
        self.offline = self.offline or reason

    def delete_records(self, offset: int) -> int:
        """Let the log begin at `offset` (-1: at the high watermark) and return where it begins now.

        The segments that lie before it go with the next retention.
        """
        self.wake()
        wanted = self.high_watermark if offset == -1 else offset
        if not 0 <= wanted <= self.high_watermark:
            text = f"Offset {wanted} is not within 0 and the high watermark {self.high_watermark}."
            raise Refused(Error.OFFSET_OUT_OF_RANGE, text)
        self._begin_at(wanted)
        return self.start_offset

    def _begin_at(self, offset: int) -> None:
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.truncate_start(offset)

    def delete_segments(self, doomed: Sequence[Segment], now_ms: int) -> None:
        """Drop the oldest segments, as retention has decided. If that is all of them, an empty one follows.

        The active one comes last: the new one that it needs may find no room before the others are gone.
        """
        if not doomed:
            return
        active = self.wake()
        try:
            self._drop([segment for segment in doomed if segment is not active], now_ms)
            if doomed[-1] is active and self.roll(now_ms) is not active:
                self._drop([active], now_ms)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise self.write_failed(error) from error
            raise self.fail(f"Segments of {self.path} cannot be deleted: {error}") from error

    def _drop(self, segments: Sequence[Segment], now_ms: int) -> None:
        self.segments.condemn(segments, now_ms + self.config.file_delete_delay_ms)
        self.producer_state.drop_snapshots([segment.base_offset for segment in segments])
        self._begin_at(self.segments.bases[0])

    def replace_segments(self, old: Sequence[Segment], new: Sequence[Segment], now_ms: int) -> None:
        """Swap in what compaction has made of `old`: complete and synced `.cleaned` segments."""
        try:
            self.segments.replace(old, new, now_ms + self.config.file_delete_delay_ms)
            kept = {segment.base_offset for segment in new}
            self.producer_state.drop_snapshots([s.base_offset for s in old if s.base_offset not in kept])
        except OSError as error:
            raise self.fail(f"Segments of {self.path} cannot be replaced: {error}") from error

    def sweep(self, now_ms: int, remove: Remover = at_once) -> None:
        """Remove the files whose delay is over, and forget producers that have been silent for too long."""
        try:
            for segment in self.segments.take_due(now_ms):
                remove(segment.remove)
        except OSError as error:
            raise self.fail(f"Files of {self.path} cannot be removed: {error}") from error
        self.producer_state.expire(now_ms, self.config.producer_id_expiration_ms)

    def truncate_to(self, offset: int, now_ms: int | None = None) -> None:
        """Drop all records from `offset` on: the leader has others there."""
        self.wake()
        now_ms = self.last_flush_ms if now_ms is None else now_ms
        if offset < self.segments.bases[0]:
            self.truncate_fully(offset, now_ms)
        elif offset < self.end_offset:
            try:
                truncation.truncate_to(self, offset, now_ms)
            except (OSError, Damaged) as error:
                raise self.fail(f"{self.path} cannot be truncated: {error}") from error
        else:  # a leader that has appended nothing leaves an epoch behind the last record, which no other leader knows
            self.epochs.truncate_end(offset)

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        """Drop everything and begin anew, empty, at `offset`; asleep if there is no room yet for a segment."""
        try:
            truncation.truncate_fully(self, offset)
            self._start_segment(offset, now_ms)
        except OSError as error:
            raise self.trouble(error, "truncated") from error
