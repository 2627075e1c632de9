"""Taking records back: a follower drops what its leader does not have, or begins anew somewhere else.

The recovery point retreats first, and is written: a log that ends before the point that its directory remembers is
taken for one that has lost synced records. If the disk is full the truncation is refused at that point, with nothing
changed; what follows needs no room.
"""

from typing import TYPE_CHECKING

from moldau.log.answers import no_room
from moldau.log.recovery import Loading, replay_producers

if TYPE_CHECKING:
    from moldau.log.log import Log


def truncate_to(log: "Log", offset: int, now_ms: int) -> None:
    """Drop all batches that hold `offset` or a later one. A batch goes as a whole: the log may end before `offset`."""
    segment = log.segments.items[log.segments.slot_of(offset)]
    place = segment.locate(offset)
    end_offset = segment.batch_at(place[0]).base_offset if place else offset
    _retreat(log, end_offset)
    log.cuts += 1
    log.active = log.segments.cut(offset)
    log.end_offset = end_offset
    log.written = True
    log.epochs.truncate_end(end_offset)
    log.start_offset = min(log.start_offset, end_offset)
    log.high_watermark = min(log.high_watermark, end_offset)
    _restore_producers(log, now_ms)


def _retreat(log: "Log", offset: int) -> None:
    point = log.recovery_point
    if point > offset:
        log.recovery_point = offset
        if not log.checkpoint():
            log.recovery_point = point
            raise no_room(log.path)


def _restore_producers(log: "Log", now_ms: int) -> None:
    state, items, end_offset = log.producer_state, log.segments.items, log.end_offset
    loading = Loading(log.config, log.epochs, state, items, log.start_offset, end_offset, now_ms, False, end_offset)
    replay_producers(loading)


def truncate_fully(log: "Log", offset: int) -> None:
    """Drop everything; a segment must be started at `offset`, and the log is asleep until then."""
    _retreat(log, 0)
    log.active = None
    log.cuts += 1
    log.segments.clear()
    log.start_offset = log.end_offset = log.recovery_point = log.high_watermark = offset
    log.epochs.clear()
    state = log.producer_state
    state.clear()
    state.drop_snapshots(list(state.snapshots))
    state.end_offset = offset
    log.files.disk.sync_dir(log.path)  # what has gone must not come back before the recovery point
