# pyright: basic
"""What a shard has written, as blobs: by topic, and for topics that other shards read by the partition of each record.

Which partition a key belongs to is decided by compiled code, for many keys at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from moldau.operators.errors import StreamsError
from moldau.operators.record import Produced
from moldau.serdes.arrow.batch import Slices
from moldau.serdes.arrow.kernel import memory
from moldau.spark.sink_kernel import place

from . import blobs
from .blobs import EMPTY, KEY_DECIDES, MAX_RECORDS, Blob
from .levels import Schedule, ShardId

BY_KEY = -1  # in place of a partition that a record names


def routed(schedule: Schedule, shard: ShardId, written: Iterable[Produced], incomplete: bool) -> Iterator[Blob]:
    """What was written, by topic; what goes to another shard by its partition, and to the topic itself where that is
    shown. Who reads from a shard that has more to come is told so.
    """
    groups: dict[tuple[str, int], list[Produced]] = {}
    if incomplete:
        for topic in schedule.writes(shard.group):
            groups |= {(topic, partition): [] for partition in range(schedule.counts[topic])}
    for topic, records in by_topic(written).items():
        if topic not in schedule.internal:
            groups[topic, KEY_DECIDES] = records
            continue
        partitions = targets(schedule.counts[topic], shard, records)
        for partition in np.unique(partitions).tolist():
            groups[topic, partition] = [records[at] for at in np.flatnonzero(partitions == partition).tolist()]
        if topic in schedule.shown:
            placed = zip(records, partitions.tolist(), strict=True)
            groups[topic, KEY_DECIDES] = [record._replace(partition=partition) for record, partition in placed]
    number = schedule.numbers[shard]
    for (topic, partition), records in groups.items():
        for part, data in enumerate(list(blobs.of_produced(records)) or [EMPTY]):
            yield Blob(topic, partition, number, 0, data, incomplete, part)


def by_topic(written: Iterable[Produced]) -> dict[str, list[Produced]]:
    found: dict[str, list[Produced]] = {}
    for record in written:
        topic = record[0]
        if topic in found:
            found[topic].append(record)
        else:
            found[topic] = [record]
    return found


def targets(count: int, shard: ShardId, records: list[Produced]) -> np.ndarray:
    """The partition of an internal topic for each record: the one that it names, else that of its key. Records without
    a key stay where they are.
    """
    found = np.empty(len(records), np.int32)
    for at in range(0, len(records), MAX_RECORDS):
        some = records[at : at + MAX_RECORDS]
        keys = Slices.of(pa.array([record.key for record in some], pa.binary()))
        named = np.array([BY_KEY if record.partition is None else record.partition for record in some], np.int32)
        column = memory(keys.data), memory(keys.starts), memory(keys.ends), memory(keys.present)
        out = found[at : at + MAX_RECORDS]
        wrong = place(*column, memory(named), count, shard.partition % count, memory(out))
        if wrong >= 0:
            one = some[wrong]
            raise StreamsError(
                f"a partitioner has chosen partition {one.partition} of {one.topic}, which has {count}: it must "
                f"return a number from 0 to {count - 1}, or None"
            )
    return found
