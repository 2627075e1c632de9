"""When a segment is full or old enough that the next batch begins another one."""

from typing import TYPE_CHECKING

from moldau.log.index import OFFSET_ENTRY, TIME_ENTRY
from moldau.log.segment import MAX_DELTA, Segment
from moldau.log.validation import too_large_for_segment

if TYPE_CHECKING:
    from moldau.log.log import Log


def must_roll(log: "Log", active: Segment, size: int, timestamp: int, last_offset: int, now_ms: int) -> bool:
    """Return whether the active segment is too full or too old for a batch of this size, timestamp and last offset.

    If it is not, it is told its bounds: within them there is no need to ask again.
    """
    config = log.config
    if size > config.segment_bytes:
        raise too_large_for_segment(size, config)
    if active.size == 0:
        return last_offset - active.base_offset > MAX_DELTA
    first, age = active.first_timestamp, config.segment_ms - log.jitter_ms
    waited = timestamp - first if first >= 0 else now_ms - log.rolled_ms
    entries = config.segment_index_bytes // OFFSET_ENTRY.size - active.index.count
    stamps = config.segment_index_bytes // TIME_ENTRY.size - 1 - active.times.count
    if (
        active.size + size > config.segment_bytes
        or waited > age
        or last_offset - active.base_offset > MAX_DELTA
        or entries <= 0
        or stamps <= 0
    ):
        return True
    if first >= 0:
        # An index entry may come at once, each further one only after so many bytes.
        active.roomy_size = min(config.segment_bytes, active.size + (min(entries, stamps) - 1) * active.interval)
        active.roomy_timestamp = first + age
        active.roomy_offset = active.base_offset + MAX_DELTA
    return False
