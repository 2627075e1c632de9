# pyright: basic
"""Blobs as rows of Spark, with the columns that all steps of a conveyor share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..blobs import KEY_DECIDES, RESTORED, Blob
from ..hashing import SPARK_SEED, spread
from ..levels import Schedule
from ..restoring import log_of

COLUMNS = (
    "shard int, level int, topic string, partition int, source int, sequence bigint, part int, more boolean, "
    "tick bigint, views string, blob binary"
)
ARROW = pa.schema(
    [
        ("shard", pa.int32()),  # what Spark groups by
        ("level", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source", pa.int32()),
        ("sequence", pa.int64()),
        ("part", pa.int32()),
        ("more", pa.bool_()),
        ("tick", pa.int64()),  # wall-clock time for the shard, in a row without a blob
        ("views", pa.string()),  # up to which offsets this batch sees global tables; the same in all its rows
        ("blob", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Places:
    """Where blobs go. `keys` has Spark's key of each shard, by its number; `topics` the level and the first shard's
    number of each topic that is read; `changelogs` the first shard's number of each changelog, and of the log of
    shards, whose blobs have the number of their shard in place of a partition.
    """

    keys: tuple[int, ...]
    levels: tuple[int, ...]  # of each shard
    names: tuple[str, ...]  # of each shard
    topics: dict[str, tuple[int, int]]
    changelogs: dict[str, int]
    sink: int  # the level after the last

    @classmethod
    def of(cls, schedule: Schedule, shuffle_partitions: int, seed: int = SPARK_SEED) -> Places:
        level_of = {group: level for level, groups in enumerate(schedule.levels) for group in groups}
        first: dict[int, int] = {}
        for number, shard in enumerate(schedule.shards):
            first.setdefault(shard.group, number)
        topics = {topic: (level_of[group], first[group]) for topic, group in schedule.reader.items() if group in first}
        return cls(
            keys=tuple(spread(len(schedule.shards), shuffle_partitions, seed)),
            levels=tuple(level_of[shard.group] for shard in schedule.shards),
            names=tuple(map(str, schedule.shards)),
            topics=topics,
            changelogs={log_of(schedule.plan): 0} | {topic: first[group] for topic, group in schedule.changelogs()},
            sink=len(schedule.levels),
        )

    @classmethod
    def of_json(cls, document: dict[str, Any]) -> Places:
        topics = {topic: (level, first) for topic, (level, first) in document["topics"].items()}
        keys, levels, names = (tuple(document[name]) for name in ("keys", "levels", "names"))
        return cls(keys, levels, names, topics, document["changelogs"], document["sink"])

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def row(self, blob: Blob, views: str | None = None) -> dict[str, Any]:
        if blob.partition == KEY_DECIDES:
            level, shard = self.sink, self.keys[blob.source]
        elif blob.source == RESTORED:
            number = self.changelogs[blob.topic] + blob.partition
            level, shard = self.levels[number], self.keys[number]
        else:
            level, first = self.topics[blob.topic]
            shard = self.keys[first + blob.partition]
        return {
            "shard": shard,
            "level": level,
            "topic": blob.topic,
            "partition": blob.partition,
            "source": blob.source,
            "sequence": blob.sequence,
            "part": blob.part,
            "more": blob.more,
            "tick": None,
            "views": views,
            "blob": blob.data,
        }

    def batch(self, found: Iterable[Blob], views: str | None = None) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([self.row(blob, views) for blob in found], schema=ARROW)

    def ticks(self, now: int, views: str | None = None, levels: Collection[int] | None = None) -> pa.RecordBatch:
        """Return a row for every shard, or for every one of some levels."""
        shards = [one for one in zip(self.keys, self.levels, strict=True) if levels is None or one[1] in levels]
        rows = [{"shard": key, "level": level, "tick": now, "views": views} for key, level in shards]
        return pa.RecordBatch.from_pylist(rows, schema=ARROW)


def blob_of(row: dict[str, Any]) -> Blob:
    return Blob(
        row["topic"], row["partition"], row["source"], row["sequence"], row["blob"], bool(row["more"]), row["part"]
    )


def blobs_of(batch: pa.RecordBatch) -> Iterator[Blob]:
    return (blob_of(row) for row in batch.to_pylist())
