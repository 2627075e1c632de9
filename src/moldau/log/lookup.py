"""Look-ups by time: the first record that is not older than a timestamp, and the newest record of all."""

from collections.abc import Sequence

from moldau.log.answers import NOT_FOUND, Found
from moldau.log.segment import Segment
from moldau.wire.errors import WireError
from moldau.wire.records import Batch, Record, records

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


def first_at_or_after(segments: Sequence[Segment], timestamp: int, start_offset: int) -> Found:
    """Return the first record, from `start_offset` on, whose timestamp is at least `timestamp`."""
    for segment in segments:
        if segment.largest_timestamp >= timestamp:
            match = _first_in(segment, timestamp, start_offset)
            if match is not NOT_FOUND:
                return match
    return NOT_FOUND


def _first_in(segment: Segment, timestamp: int, start_offset: int) -> Found:
    for _, batch in segment.batches(segment.position_for_time(timestamp, start_offset)):
        if batch.max_timestamp >= timestamp and batch.last_offset >= start_offset:
            for record in _readable(batch):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return Found(record.offset, record.timestamp, batch.partition_leader_epoch)
    return NOT_FOUND


def newest(segments: Sequence[Segment]) -> Found:
    """Return the first record with the largest timestamp of all."""
    for segment in segments:
        segment.look_at_times()
    segment = max(segments, key=lambda s: s.max_timestamp)
    if segment.max_timestamp < 0:
        return NOT_FOUND
    place = segment.locate(segment.max_timestamp_offset)
    for _, batch in segment.batches(place[0] if place else 0):
        if batch.max_timestamp == segment.max_timestamp:
            offsets = (record.offset for record in _readable(batch) if record.timestamp == batch.max_timestamp)
            return Found(next(offsets, batch.base_offset), batch.max_timestamp, batch.partition_leader_epoch)
    return NOT_FOUND


def _readable(batch: Batch) -> list[Record]:
    """Return the records; for a batch that does not parse, one record with the batch's newest timestamp."""
    try:
        return list(records(batch))
    except WireError:
        return [Record(offset=batch.base_offset, timestamp=batch.max_timestamp)]
