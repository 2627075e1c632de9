"""A segment: a run of batches in one file, with its indexes.

The same class serves the segment that is written (`start`, `resume`), those that are only read, and the files that
compaction makes (`suffix`). Nothing is opened before it is needed.

The batches that were appended last are remembered, so that a fetch at the tail finds its position without a read.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct

from moldau.log.checkpoints import Damaged
from moldau.log.disk import Data, File, Files, remove_if_there
from moldau.log.index import OFFSET_ENTRY, TIME_ENTRY, AbortedTransactions, Index
from moldau.wire.errors import WireError
from moldau.wire.records import HEADER_SIZE, LENGTH_START, Batch

logger = logging.getLogger(__name__)

LOG, INDEX, TIMES, TXNS = ".log", ".index", ".timeindex", ".txnindex"
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
RECENT = 1024
LOOK_BYTES = 8192
CHUNK_BYTES = 1 << 20
MAX_DELTA = 2**31 - 1
NOTHING_REMEMBERED = 2**63

_offsets = Struct(">qi11xi30xi")  # base offset, length, last offset delta, count


def name_of(base_offset: int, kind: str, suffix: str = "") -> str:
    return f"{base_offset:020d}{kind}{suffix}"


@dataclass(slots=True, eq=False, repr=False)
class Segment:
    """One segment. `size` is -1 until the file has been looked at."""

    files: Files
    folder: str
    base_offset: int
    interval: int = field(default=4096, kw_only=True)
    suffix: str = field(default="", kw_only=True)
    path: str = field(init=False)
    index: Index = field(init=False)
    times: Index = field(init=False)
    txns: AbortedTransactions = field(init=False)
    file: File | None = field(default=None, init=False)
    size: int = field(default=-1, init=False)
    unindexed: int = field(default=0, init=False)
    first_timestamp: int = field(default=-1, init=False)
    max_timestamp: int = field(default=-1, init=False)
    max_timestamp_offset: int = field(init=False)
    # A batch within these bounds certainly has room here; rolling.py sets them.
    roomy_size: int = field(default=-1, init=False)
    roomy_timestamp: int = field(default=-1, init=False)
    roomy_offset: int = field(default=-1, init=False)
    # The batches that were appended last; `recent_after` is the last offset before them.
    recent_after: int = field(init=False)
    recent_last: list[int] = field(init=False)
    recent_position: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.path, index, times, txns = (
            f"{self.folder}/{name_of(self.base_offset, kind, self.suffix)}" for kind in (LOG, INDEX, TIMES, TXNS)
        )
        self.index = Index(self.files, index, OFFSET_ENTRY)
        self.times = Index(self.files, times, TIME_ENTRY)
        self.txns = AbortedTransactions(self.files, txns)
        self.max_timestamp_offset = self.base_offset
        self._forget_recent(NOTHING_REMEMBERED)

    def __repr__(self) -> str:
        return f"Segment({self.path!r})"

    def start(self) -> None:
        """Make the files of a new segment; leftovers of the same name are overwritten."""
        file = self.files.open(self, create=True)
        if file.size():
            file.truncate(0)
        self.size = 0
        self.index.start()
        self.times.start()
        self.txns.clear()
        self._forget_recent(self.base_offset - 1)

    def resume(self) -> int:
        """Open for writing after a clean stop and return the next offset: only what follows the index is walked."""
        self.look()
        self.roomy_size = -1
        self.index.load(writable=True)
        self.times.load(writable=True)
        if not self._indexes_sound() or not self._fits_time():
            return self.rebuild()
        if self.size:
            self.first_timestamp = next(self.headers())[1].max_timestamp
        last = self.index.last()
        position = last[1] if last else 0
        stamp = self.times.last()
        if stamp:
            self.max_timestamp, self.max_timestamp_offset = stamp[0], self.base_offset + stamp[1]
        self._forget_recent(self.base_offset - 1)
        self.unindexed = 0
        if last:  # the batch there has its entry already
            first = self.batch_at(position)
            self.recent_after = first.base_offset - 1
            if first.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = first.max_timestamp, first.last_offset
            self.recent_last.append(first.last_offset)
            self.recent_position.append(position)
            self.unindexed = first.size
            position += first.size
        return self._note_rest(position, self.recent_last[-1] + 1 if last else self.base_offset)

    def start_over(self) -> None:
        """Forget the batches, so that each of them can be noted anew."""
        self.look()
        self.index.start()
        self.times.start()
        self.unindexed = 0
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset
        self._forget_recent(self.base_offset - 1)

    def rebuild(self) -> int:
        """Make offset and time index anew from the batches, and return the next offset."""
        self.start_over()
        return self._note_rest(0, self.base_offset)

    def _note_rest(self, position: int, next_offset: int) -> int:
        for at, batch in self.headers(position):
            if batch.base_offset < next_offset or not 0 <= batch.count <= batch.last_offset_delta + 1:
                raise Damaged(f"{self.path} holds no batch with offset {next_offset} or a later one at position {at}")
            self.note(at, batch.size, batch.last_offset, batch.max_timestamp)
            next_offset = batch.next_offset
        return next_offset

    def look(self) -> int:
        """Return the size in bytes; the file must be there."""
        if self.size < 0:
            self.size = self.file.size() if self.file else self.files.disk.size(self.path)
        return self.size

    def look_into_indexes(self) -> None:
        """Make the indexes of a segment that is only read usable: rebuilt if they are missing or cannot be right."""
        if self.index.count < 0:
            self.look()
            self.index.load(writable=False)
            self.times.load(writable=False)
            if not self._indexes_sound() or (not self.index.count and self.size > 4 * self.interval):
                self.rebuild()
                self.seal()

    def _indexes_sound(self) -> bool:
        last, stamp = self.index.last(), self.times.last()
        return (last is None or (last[0] >= 0 and 0 < last[1] < self.size)) and (
            stamp is None or (stamp[0] > 0 and stamp[1] >= 0)
        )

    def open_file(self) -> File:
        return self.file or self.files.open(self)

    def reopen(self) -> None:
        """Write again to a segment that was sealed."""
        if self.index.data is None:
            self.resume()

    def append(self, data: Data, last_offset: int, max_timestamp: int) -> None:
        """Write one batch with a single call to the disk."""
        position = self.size
        (self.file or self.files.open(self)).append(data)
        size = len(data)
        self.size = position + size
        self.note(position, size, last_offset, max_timestamp)

    def write(self, data: Data) -> int:
        """Write several batches at once and return where; each of them must be noted."""
        position = self.size
        self.open_file().append(data)
        self.size = position + len(data)
        return position

    def note(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """A batch stands at `position`: remember it, and index it when enough bytes have gone by."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position == 0:
            self.first_timestamp = max_timestamp
        if self.unindexed > self.interval:
            self.index.append(last_offset - self.base_offset, position)
            self._index_time()
            self.unindexed = size
        else:
            self.unindexed += size
        recent = self.recent_last
        recent.append(last_offset)
        self.recent_position.append(position)
        if len(recent) > RECENT:
            self._drop_older_half()

    def _index_time(self) -> None:
        last = self.times.last()
        if self.max_timestamp > (last[0] if last else -1):
            self.times.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)

    def _drop_older_half(self) -> None:
        half = RECENT // 2
        self.recent_after = self.recent_last[half - 1]
        del self.recent_last[:half]
        del self.recent_position[:half]

    def _forget_recent(self, after: int) -> None:
        self.recent_after, self.recent_last, self.recent_position = after, [], []

    def seal(self) -> None:
        """No more will be appended: the largest timestamp goes into the time index, the index files are complete."""
        if self.index.data is not None:
            self._index_time()
            self.index.write()
            self.times.write()
            self.index.data = self.times.data = None
        self._forget_recent(NOTHING_REMEMBERED)

    def truncate(self, offset: int) -> None:
        """Drop the batches from the one that holds `offset` on. The segment must be open for writing."""
        place = self.locate(offset)
        position = place[0] if place else self.size
        kept = self.index.floor(position - 1, 1) + 1
        last = self.index.at(kept - 1)[0] if kept else -1
        self.index.truncate(kept)
        self.times.truncate(self.times.floor(last, 1) + 1)
        self.txns.truncate(offset)
        self.cut(position)
        self._recall_after_truncation()

    def cut(self, position: int) -> None:
        """End the file here, for good: what stood behind must not come back behind later batches after a crash."""
        file = self.open_file()
        file.truncate(position)
        file.sync()
        self.size = position

    def _recall_after_truncation(self) -> None:
        self.max_timestamp, self.max_timestamp_offset, self.first_timestamp = -1, self.base_offset, -1
        self.resume()

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch whose last offset is at least `offset`."""
        if offset > self.recent_after:
            at = bisect_left(self.recent_last, offset)
            positions = self.recent_position
            if at == len(positions):
                return None
            start = positions[at]
            return start, (positions[at + 1] if at + 1 < len(positions) else self.size) - start
        self.look_into_indexes()
        slot = self.index.floor(offset - self.base_offset)
        if slot >= 0 and not self._fits(slot):
            self._replace_indexes()
            slot = self.index.floor(offset - self.base_offset)
        return self._find(offset, self.index.at(slot)[1] if slot >= 0 else 0)

    def _fits(self, slot: int) -> bool:
        """Return whether an index entry leads to a batch that ends there: if not, a search could miss records."""
        last, position = self.index.at(slot)
        data = self.open_file().pread(_offsets.size, position) if 0 <= position < self.size else b""
        if len(data) < _offsets.size:
            return False
        base, length, delta, _ = _offsets.unpack(data)
        whole = HEADER_SIZE - LENGTH_START <= length <= self.size - position - LENGTH_START
        return whole and self.base_offset <= base <= base + delta <= self.base_offset + last

    def _fits_time(self) -> bool:
        """Return whether the index ends with its batch's timestamp: if not, the segment could seem older than it is."""
        last = self.times.last()
        if last is None:
            return True
        place = self.locate(self.base_offset + last[1])
        return place is not None and next(self.headers(place[0]))[1].max_timestamp == last[0]

    def _replace_indexes(self) -> None:
        """They have been damaged; the batches know better."""
        logger.warning("%s is damaged, and made anew", self.index.path)
        writable = self.index.data is not None
        self.rebuild()
        if not writable:
            self.seal()

    def _find(self, offset: int, position: int) -> tuple[int, int] | None:
        file, end = self.open_file(), self.size
        data, start = b"", position
        while position < end:
            at = position - start
            if at + _offsets.size > len(data):
                data, start, at = file.pread(LOOK_BYTES, position), position, 0
                if len(data) < _offsets.size:
                    break
            base, length, delta, count = _offsets.unpack_from(data, at)
            size = length + LENGTH_START
            if size < HEADER_SIZE or not 0 <= count <= delta + 1:  # a smaller delta would hide records
                raise Damaged(f"{self.path} holds no batch at position {position}")
            if base + delta >= offset:
                return position, size
            position += size
        if position != end:  # a damaged length would lead past the records that follow
            raise Damaged(f"{self.path} ends within a batch, before position {position}")
        return None

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[tuple[int, Batch]]:
        """Position and header of each batch; what follows the header may not have been read. Damaged if none parses."""
        return self._walk(position, end, LOOK_BYTES, whole=False)

    def batches(self, position: int = 0, end: int | None = None) -> Iterator[tuple[int, Batch]]:
        """Position and batch, each whole in memory, read in large chunks. Damaged where there is no whole batch."""
        return self._walk(position, end, CHUNK_BYTES, whole=True)

    def _walk(self, position: int, end: int | None, chunk: int, *, whole: bool) -> Iterator[tuple[int, Batch]]:
        file, end = self.open_file(), self.look() if end is None else end
        data, start = b"", position
        while position < end:
            if position - start + HEADER_SIZE > len(data):
                data, start = file.pread(chunk, position), position
            batch = self._parse(data, position - start, position)
            if whole and not batch.is_whole:
                data, start = file.pread(max(chunk, min(batch.size, end - position)), position), position
                batch = self._parse(data, 0, position)
                if not batch.is_whole:
                    raise Damaged(f"{self.path} ends within the batch at position {position}")
            yield position, batch
            position += batch.size

    def batch_at(self, position: int) -> Batch:
        return next(self.batches(position))[1]

    def _parse(self, data: bytes, at: int, position: int) -> Batch:
        try:
            return Batch(data, at)
        except WireError as error:
            raise Damaged(f"{self.path} holds no batch at position {position}: {error}") from None

    def offset_behind(self, position: int) -> int | None:
        """Return the last offset of the first indexed batch from `position` on: a bound that needs no walk."""
        if position >= self.look():
            return None
        self.look_into_indexes()
        slot = self.index.floor(position - 1, 1) + 1
        return self.base_offset + self.index.at(slot)[0] if slot < self.index.count else None

    def look_at_times(self) -> None:
        """Learn the largest timestamp of a segment that is only read."""
        self.look_into_indexes()
        if self.max_timestamp < 0 and (last := self.times.last()):
            if self._fits_time():
                self.max_timestamp, self.max_timestamp_offset = last[0], self.base_offset + last[1]
            else:
                self._replace_indexes()

    @property
    def largest_timestamp(self) -> int:
        """Of its records; of the file, if the records have none."""
        self.look_at_times()
        return self.max_timestamp if self.max_timestamp >= 0 else self.files.disk.modified_ms(self.path)

    def position_for_time(self, timestamp: int, start_offset: int) -> int:
        """Return where to begin looking for the first record that is not older than `timestamp`."""
        self.look_at_times()
        slot = self.times.floor(timestamp)
        offset = max(self.base_offset + self.times.at(slot)[1] if slot >= 0 else self.base_offset, start_offset)
        at = self.index.floor(offset - self.base_offset)
        return self.index.at(at)[1] if at >= 0 else 0

    def rename(self, suffix: str) -> None:
        """Give all files another suffix; the transaction index, at least, may be missing."""
        for part, kind in ((self, LOG), (self.index, INDEX), (self.times, TIMES), (self.txns, TXNS)):
            target = f"{self.folder}/{name_of(self.base_offset, kind, suffix)}"
            if kind == LOG or self.files.disk.exists(part.path):
                self.files.disk.rename(part.path, target)
            part.path = target
        self.suffix = suffix

    def remove(self) -> None:
        self.release()
        for part in (self, self.index, self.times, self.txns):
            remove_if_there(self.files.disk, part.path)

    def release(self) -> None:
        """Let go of the open files; whoever reads from them keeps them."""
        for part in (self, self.index, self.times, self.txns):
            self.files.release(part)

    def dirty_files(self) -> list[File]:
        """Return what must be synced while the segment is written: recovery makes its other indexes anew."""
        txns = self.txns.written_file()
        return [self.open_file(), txns] if txns else [self.open_file()]

    def written_files(self) -> list[File]:
        """Return what must be synced so that a sealed segment survives the machine."""
        return [*self.dirty_files(), self.index.write(), self.times.write()]
