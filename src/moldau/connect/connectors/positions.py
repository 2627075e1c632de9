"""Where the records of a sink were read, whatever transforms have made of topic, partition and number.

A transform may make several records of one, which have its offset in common and come one after the other. Either all
of them are written by the time that the offset after them is noted, or they are written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from moldau.connect.connector import TopicPartition
from moldau.connect.data import Record


def place_of(record: Record) -> tuple[TopicPartition, int]:
    topic = record.original_topic or record.topic
    partition = record.original_partition if record.original_partition is not None else record.partition
    offset = record.original_offset if record.original_offset is not None else record.offset
    return (topic, partition or 0), offset or 0


def numbered(records: Iterable[Record]) -> Iterator[tuple[Record, int]]:
    """Number the records that were made of one: nearly always there is only number 0."""
    last, number = None, 0
    for one in records:
        place = place_of(one)
        number = number + 1 if place == last else 0
        last = place
        yield one, number


def name_of(record: Record, number: int, between: str) -> str:
    """Name a record by where it was read, and by its number if it is not the first that was made of one."""
    (topic, partition), offset = place_of(record)
    return between.join(map(str, (topic, partition, offset, *([number] if number else []))))


def batches(records: Sequence[Record], most: int) -> Iterator[Sequence[Record]]:
    """Divide records into batches, larger ones only where more were made of one."""
    start = 0
    while start < len(records):
        end = min(start + most, len(records))
        while end < len(records) and place_of(records[end]) == place_of(records[end - 1]):
            end += 1
        yield records[start:end]
        start = end
