# pyright: basic
"""The output of a shard as blobs: by topic, and by partition for topics that other shards read.

The partitions of keys are computed by compiled code, for many keys at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moldau.operators.errors import StreamsError
from moldau.operators.record import Produced
from moldau.serdes.arrow.batch import Slices

from . import blobs
from .blobs import EMPTY, KEY_DECIDES, MAX_RECORDS, NUMBER, SCHEMA, Blob, Several
from .levels import Schedule, ShardId

BY_KEY = -1  # in place of a partition that a record names


def routed(
    schedule: Schedule, shard: ShardId, written: Iterable[Produced | Several], incomplete: bool
) -> Iterator[Blob]:
    """Yield the output by topic; for other shards by partition, and also for the topic itself if it is shown. The blobs
    of a shard that has more to come say so.
    """
    groups: dict[tuple[str, int], list[pa.RecordBatch]] = {}
    if incomplete:
        for topic in schedule.writes(shard.group):
            groups |= {(topic, partition): [] for partition in range(schedule.counts[topic])}
    for topic, batches in by_topic(written).items():
        if topic not in schedule.internal:
            groups[topic, KEY_DECIDES] = batches
            continue
        for batch in batches:
            partitions = targets(schedule.counts[topic], shard, topic, batch)
            for partition in np.unique(partitions).tolist():
                mine = batch.take(pa.array(np.flatnonzero(partitions == partition)))
                groups.setdefault((topic, partition), []).append(mine)
            if topic in schedule.shown:
                placed = batch.set_column(NUMBER, SCHEMA.field(NUMBER), pa.array(partitions, pa.int64()))
                groups.setdefault((topic, KEY_DECIDES), []).append(placed)
    number = schedule.numbers[shard]
    for (topic, partition), batches in groups.items():
        for part, data in enumerate(list(blobs.of_batches(batches)) if batches else [EMPTY]):
            yield Blob(topic, partition, number, 0, data, incomplete, part)


def by_topic(written: Iterable[Produced | Several]) -> dict[str, list[pa.RecordBatch]]:
    """Return the batches of each topic in the order in which they were written."""
    rows: dict[str, list[Produced]] = {}
    found: dict[str, list[pa.RecordBatch]] = {}
    for record in written:
        topic = record[0]
        if isinstance(record, Several):
            settle(found, topic, rows.pop(topic, []))
            found.setdefault(topic, []).append(record.batch)
        elif topic in rows:
            rows[topic].append(record)
        else:
            rows[topic] = [record]
    for topic, records in rows.items():
        settle(found, topic, records)
    return found


def settle(found: dict[str, list[pa.RecordBatch]], topic: str, records: list[Produced]) -> None:
    batches = found.setdefault(topic, [])
    for at in range(0, len(records), MAX_RECORDS):
        batches.append(blobs.of_produced(records[at : at + MAX_RECORDS]))


def targets(count: int, shard: ShardId, topic: str, batch: pa.RecordBatch) -> np.ndarray:
    """Return the partition of an internal topic for each record: its own, otherwise that of its key. Records without a
    key stay where they are.
    """
    found = np.empty(batch.num_rows, np.int32)
    keys = Slices.of(batch.column(0))
    named = pc.fill_null(batch.column(NUMBER), BY_KEY).to_numpy().astype(np.int32)
    # Compiled code, which processes that only plan do without: it takes seconds to load.
    from moldau.wire.kernel import memory
    from moldau.wire.records.column_writer import place

    column = memory(keys.data), memory(keys.starts), memory(keys.ends), memory(keys.present)
    wrong = place(*column, memory(named), count, shard.partition % count, memory(found))
    if wrong >= 0:
        raise StreamsError(
            f"a partitioner has chosen partition {named[wrong]} of {topic}, which has {count}: it must "
            f"return a number from 0 to {count - 1}, or None"
        )
    return found
