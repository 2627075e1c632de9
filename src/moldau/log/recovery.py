"""Opening a partition: what its folder holds, and what a crash has left of it.

After a clean stop nothing is read. After any other, every segment from the recovery point on is read batch by batch:
its indexes are made anew, its leader epochs and producers are replayed, and the CRC of each batch is checked. What is
found broken is one of two things.

*A torn tail*: the broken bytes are behind the recovery point, and no valid batch follows them. The process or the
machine died while they were written. They are cut off; nobody was promised more.

*Damage*: something that was whole is not. It lies before the recovery point, so it was synced once; or valid batches
follow it although the machine has not been restarted, so no write can have been lost. The partition is taken offline
with a sentence that names the file and the place; it is never shortened. After a restart of the machine, writes behind
the recovery point may be missing in any order, so there the log is cut at the first gap and later segments go with it.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moldau.log.checkpoints import Damaged
from moldau.log.config import LogConfig
from moldau.log.disk import Files, remove_if_there
from moldau.log.epochs import LeaderEpochs
from moldau.log.index import Aborted
from moldau.log.producers import SNAPSHOT, Producers
from moldau.log.segment import CHUNK_BYTES, CLEANED, DELETED, INDEX, LOG, MAX_DELTA, SWAP, TIMES, TXNS, Segment
from moldau.wire.errors import WireError
from moldau.wire.records import HEADER_SIZE, Batch

logger = logging.getLogger(__name__)

MAGIC_AT = 16
TEMPORARY = ".tmp"
UNSETTLED = (DELETED, CLEANED, SWAP, TEMPORARY)
SEGMENT_FILES = (LOG, INDEX, TIMES, TXNS)


@dataclass(slots=True)
class Loading:
    """A partition on its way to be opened, and what has been found."""

    config: LogConfig
    epochs: LeaderEpochs
    producers: Producers
    segments: list[Segment]
    start_offset: int
    recovery_point: int
    now_ms: int
    lost_writes: bool  # whether the machine may have lost un-synced writes since
    end_offset: int = 0


def offset_of(name: str) -> int | None:
    """Return the offset at the beginning of a file's name."""
    head = name.partition(".")[0]
    return int(head) if len(head) == 20 and head.isdigit() else None


def base_offsets(names: Iterable[str]) -> list[int]:
    return sorted(offset for name in names if name.endswith(LOG) and (offset := offset_of(name)) is not None)


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    return sorted(offset for name in names if name.endswith(SNAPSHOT) and (offset := offset_of(name)) is not None)


def finish_interrupted_work(files: Files, folder: str, names: list[str]) -> None:
    """Complete or undo what a crash has interrupted.

    `.deleted` and `.tmp` files go (a `.tmp` that is written anew could come back with old bytes under its new name).
    A `.cleaned` file means that compaction was not done: it goes, and so do the `.swap` files from its offset on. The
    other `.swap` files are complete: the segments that they replace go, and they take their place.
    """
    disk = files.disk
    cleaned = [offset_of(name) or 0 for name in names if name.endswith(CLEANED)]
    undone = min(cleaned, default=2**63)
    swaps = [name for name in names if name.endswith(SWAP)]
    stale = [name for name in swaps if (offset_of(name) or 0) >= undone]
    for name in [name for name in names if name.endswith((DELETED, CLEANED, TEMPORARY))] + stale:
        remove_if_there(disk, f"{folder}/{name}")
    swaps = [name for name in swaps if name not in stale]
    for base in sorted(
        offset for name in swaps if name.endswith(LOG + SWAP) and (offset := offset_of(name)) is not None
    ):
        end = Segment(files, folder, base, suffix=SWAP).rebuild()
        for name in names:
            offset = offset_of(name)
            if name.endswith(SEGMENT_FILES) and offset is not None and base <= offset < end:
                remove_if_there(disk, f"{folder}/{name}")
    for name in swaps:
        disk.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(SWAP)}")


def recover(loading: Loading) -> None:
    """Bring the partition to a state in which every batch of it is known to be whole."""
    _recover(loading)
    if loading.lost_writes:
        # An earlier start may have died after it had cut something and before that was synced: what it took away must
        # not come back behind what is written now.
        last = loading.segments[-1]
        last.open_file().sync()
        last.files.disk.sync_dir(last.folder)


def _recover(loading: Loading) -> None:
    segments = loading.segments
    first = max((i for i, s in enumerate(segments) if s.base_offset <= loading.recovery_point), default=0)
    if loading.lost_writes and first and segments[first].base_offset == loading.recovery_point:
        segments[first - 1].rebuild()  # its records are synced, but it may have been sealed later
        segments[first - 1].seal()
    if first == len(segments) - 1 and _nothing_unsynced(loading, segments[first]):
        return
    _replay_to(loading, segments[:first], segments[first].base_offset)
    for at, segment in enumerate(segments[first:], first):
        if at > first and segment.base_offset < loading.end_offset:
            _drop_overlapping(loading, at)
            break
        if segment.base_offset > loading.start_offset:
            loading.producers.take_snapshot()
        cut = _scan(loading, segment)
        if cut < segment.size or _gap_behind(loading, at):
            _cut(loading, at, cut)
            break
        if at < len(segments) - 1:
            segment.seal()
    if loading.end_offset < loading.recovery_point:
        raise Damaged(_synced_but_gone(loading, f"{segments[-1].path} ends at offset {loading.end_offset}"))
    loading.epochs.truncate_end(loading.end_offset)


def _nothing_unsynced(loading: Loading, segment: Segment) -> bool:
    """Return whether the last segment ends exactly at the recovery point: then all of it was synced."""
    try:
        end = segment.rebuild() if loading.lost_writes else segment.resume()
    except Damaged:
        return False
    if end != loading.recovery_point:
        return False
    position = segment.recent_position[-1] if segment.recent_position else 0
    if segment.size and position + segment.batch_at(position).size != segment.size:
        return False
    loading.end_offset = end
    segment.txns.set([entry for entry in segment.txns if entry.last_offset < end])  # not one that lost its marker
    replay_producers(loading)
    return True


def replay_producers(loading: Loading) -> None:
    """Producers from the newest snapshot and the batches that follow it."""
    _replay_to(loading, loading.segments, loading.end_offset)


def _replay_to(loading: Loading, segments: list[Segment], end_offset: int) -> None:
    """The transactions in these segments are indexed already; only the producers' state is wanted."""
    producers, expiration_ms = loading.producers, loading.config.producer_id_expiration_ms
    start = producers.reload(loading.start_offset, end_offset, loading.now_ms, expiration_ms)
    for batch in _batches_between(segments, start, end_offset):
        producers.apply_batch(batch)
    producers.end_offset = end_offset


def _batches_between(segments: list[Segment], start: int, end: int) -> Iterator[Batch]:
    for at, segment in enumerate(segments):
        following = segments[at + 1].base_offset if at + 1 < len(segments) else end
        if following <= start or segment.base_offset >= end:
            continue
        place = segment.locate(max(start, segment.base_offset))
        for _, batch in segment.batches(place[0] if place else segment.look()):
            if batch.base_offset >= end:
                return
            yield batch
            if batch.next_offset >= following:
                break


def _scan(loading: Loading, segment: Segment) -> int:
    """Check and index a segment; return the position where it stops being sound, which is its size if it never does."""
    segment.start_over()
    txns: list[Aborted] = []
    next_offset = segment.base_offset
    position = 0
    try:
        for at, batch in segment.batches():
            if not batch.is_valid() or batch.base_offset < next_offset:
                break
            segment.note(at, batch.size, batch.last_offset, batch.max_timestamp)
            loading.epochs.assign_if_newer(batch.partition_leader_epoch, batch.base_offset)
            if aborted := loading.producers.apply_batch(batch):
                txns.append(aborted)
            next_offset = batch.next_offset
            position = at + batch.size
    except Damaged as error:
        logger.debug("%s", error)
    segment.txns.set(txns)
    loading.end_offset = loading.producers.end_offset = next_offset
    return position


def _gap_behind(loading: Loading, at: int) -> bool:
    """Return whether the end of this segment was never written, although the next one was.

    Only a machine that lost writes does that, and only behind the recovery point. Compaction leaves such gaps too.
    """
    following = [segment.base_offset for segment in loading.segments[at + 1 : at + 2]]
    gap = any(base > max(loading.end_offset, loading.recovery_point) for base in following)
    return gap and loading.lost_writes and not loading.config.compacted


def _drop_overlapping(loading: Loading, at: int) -> None:
    """A segment that begins before the end of the one before it was removed, but a crash has brought it back."""
    later = loading.segments[at:]
    if not loading.lost_writes and any(segment.look() for segment in later):
        raise Damaged(f"{later[0].path} begins before the end of the segment before it, {loading.end_offset}")
    logger.warning("%s comes from an earlier life of this log: removed with %d others", later[0].path, len(later) - 1)
    for dropped in reversed(later):
        dropped.remove()
    later[0].files.disk.sync_dir(later[0].folder)
    del loading.segments[at:]
    loading.segments[-1].reopen()


def _synced_but_gone(loading: Loading, where: str) -> str:
    return (
        f"{where}, but was synced up to offset {loading.recovery_point}. Restore the file from a replica or a copy, "
        "or take the partition's line out of recovery-point-offset-checkpoint to go on with what is left."
    )


def _cut(loading: Loading, at: int, position: int) -> None:
    """The log ends at `position` of this segment, if it may."""
    segment, later = loading.segments[at], loading.segments[at + 1 :]
    where = f"{segment.path} is damaged at position {position} (offset {loading.end_offset})"
    if loading.end_offset < loading.recovery_point:
        raise Damaged(_synced_but_gone(loading, where))
    if not loading.lost_writes and (any(s.look() for s in later) or _valid_batch_from(segment, position)):
        raise Damaged(
            f"{where}, and valid records follow. To give up all records from offset {loading.end_offset} on, "
            f"cut the file to {position} bytes and remove the later segments of this partition."
        )
    logger.warning(
        "%s: cutting %d bytes behind offset %d that were not written completely%s",
        segment.path,
        segment.size - position,
        loading.end_offset,
        f", and {len(later)} later segments" if later else "",
    )
    for dropped in reversed(later):
        dropped.remove()
    segment.cut(position)
    segment.files.disk.sync_dir(segment.folder)
    loading.producers.drop_snapshots([o for o in loading.producers.snapshots if o > loading.end_offset])
    del loading.segments[at + 1 :]


def _valid_batch_from(segment: Segment, position: int) -> bool:
    """Return whether a batch with a right CRC begins anywhere from `position` on."""
    file = segment.open_file()
    while position < segment.size:
        data = file.pread(CHUNK_BYTES, position)
        at = data.find(b"\x02", MAGIC_AT)
        while at >= 0:
            if _is_valid_at(segment, position + at - MAGIC_AT):
                return True
            at = data.find(b"\x02", at + 1)
        position += len(data) - MAGIC_AT if len(data) == CHUNK_BYTES else len(data)
    return False


def _is_valid_at(segment: Segment, position: int) -> bool:
    """Return whether a plausible header and a right CRC stand here: other bytes have next to no chance of both."""
    file = segment.open_file()
    try:
        head = Batch(file.pread(HEADER_SIZE, position))
        plausible = (
            head.size <= segment.size - position
            and segment.base_offset <= head.base_offset <= segment.base_offset + MAX_DELTA
            and 0 <= head.attributes < 128
            and 0 <= head.count <= head.last_offset_delta + 1
        )
        return plausible and Batch(file.pread(head.size, position)).is_valid()
    except WireError:
        return False
