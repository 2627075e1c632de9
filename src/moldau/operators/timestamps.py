"""Timestamp extractors: functions of a record and of the highest time of its partition that return its time."""

from __future__ import annotations

from collections.abc import Callable

from .errors import StreamsError
from .record import Record

Extractor = Callable[[Record, int], int]
HINT = "set another timestamp extractor (timestamp=, or default.timestamp.extractor) to read such records"


def fail_on_invalid_timestamp(record: Record, partition_time: int) -> int:
    """Return the record's own time; a negative one ends the application."""
    if record.timestamp < 0:
        raise StreamsError(f"a record has the negative timestamp {record.timestamp}: {HINT}")
    return record.timestamp


def log_and_skip_on_invalid_timestamp(record: Record, partition_time: int) -> int:
    """Return the record's own time; records with a negative one are dropped."""
    return record.timestamp


def use_partition_time_on_invalid_timestamp(record: Record, partition_time: int) -> int:
    """Return the record's own time, or the highest time of its partition so far."""
    if record.timestamp >= 0:
        return record.timestamp
    if partition_time < 0:
        raise StreamsError(f"the first record of a partition has the timestamp {record.timestamp}: {HINT}")
    return partition_time


def wallclock_timestamp(record: Record, partition_time: int) -> int:
    """Stand for the time at which the record is read, which TopicReader knows."""
    raise AssertionError("answered by the reader")


BY_NAME: dict[str, Extractor] = {
    "FailOnInvalidTimestamp": fail_on_invalid_timestamp,
    "LogAndSkipOnInvalidTimestamp": log_and_skip_on_invalid_timestamp,
    "UsePartitionTimeOnInvalidTimestamp": use_partition_time_on_invalid_timestamp,
    "WallclockTimestampExtractor": wallclock_timestamp,
}
