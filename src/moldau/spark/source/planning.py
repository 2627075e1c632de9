"""Decides what a micro-batch reads: offsets, limits, lost data, and the cut into tasks. No I/O, no clock.

A position is what Spark writes into the checkpoint as the end of a batch: the JSON of Spark's own Kafka source,
`{"orders": {"0": 23}}`, so that checkpoints of that source can be continued. Under names that no topic can have it also
has the ids of topics, which reveal a topic that was deleted and created again, and how the batch was cut into tasks, so
that a replay cuts it the same way, whatever the options are by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

TopicPartition = tuple[str, int]
Numbers = Mapping[TopicPartition, int]

IDS, CUT = "@ids", "@cut"
# What a conveyor adds: the partitions with more to read, the time, the ends of global topics, and the offsets up to
# which changelogs are read first.
MORE, NOW, VIEWS, RESTORE = "@more", "@now", "@views", "@restore"
OF_CONVEYORS = frozenset({MORE, NOW, VIEWS, RESTORE})
LANE = "@lane"  # in the position of a lane, which has those of many flows (`moldau.plan.lane`)
FEW = 200  # records that are read faster than a task starts
OF_ANOTHER = "is not an offset that is known here: give the query a checkpointLocation of its own."


class ForeignOffset(ValueError):
    """An offset in a checkpoint that is not ours."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How ranges become tasks: at least so many, none with more records than so many, at most so many."""

    min_partitions: int | None = None
    max_records: int | None = None
    max_partitions: int | None = None

    @classmethod
    def of_json(cls, document: Any) -> Cut:
        return cls(*document) if document else cls()

    def to_json(self) -> list[int | None] | None:
        return [self.min_partitions, self.max_records, self.max_partitions] if self != Cut() else None


@dataclass(frozen=True, slots=True)
class Position:
    """The next offset of each partition, and the ids of topics as far as they are known."""

    offsets: Numbers
    ids: Mapping[str, str] = field(default_factory=dict)
    cut: Cut = Cut()

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Position:
        """Read a position of a checkpoint; ForeignOffset if somebody else wrote it."""
        try:
            topics = {name: numbers for name, numbers in document.items() if not name.startswith("@")}
            offsets = {(topic, int(one)): int(offset) for topic, some in topics.items() for one, offset in some.items()}
        except (AttributeError, TypeError, ValueError):
            raise ForeignOffset(f"The checkpoint is of another source, for {document} {OF_ANOTHER}") from None
        if document.keys() - topics.keys() - {IDS, CUT} - OF_CONVEYORS:
            raise ForeignOffset(f"The checkpoint is of a later version, for {document} {OF_ANOTHER}")
        return cls(offsets, document.get(IDS, {}), Cut.of_json(document.get(CUT)))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON, always in the same order: Spark takes a different text for new data."""
        out: dict[str, Any] = {}
        for (topic, partition), offset in sorted(self.offsets.items()):
            out.setdefault(topic, {})[str(partition)] = offset
        if self.ids:
            out[IDS] = {topic: self.ids[topic] for topic in sorted(self.ids)}
        if (cut := self.cut.to_json()) is not None:
            out[CUT] = cut
        return out

    def start_of(self, partition: TopicPartition, now: Position) -> int:
        """Return where reading continues: at 0 for a new partition, or in a topic that was created again."""
        return 0 if self.is_anew(partition[0], now) else self.offsets.get(partition, 0)

    def is_anew(self, topic: str, now: Position) -> bool:
        before, after = self.ids.get(topic), now.ids.get(topic)
        return before is not None and after is not None and before != after


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets from `start` to before `end` of a partition."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str | None = None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def size(self) -> int:
        return self.end - self.start

    def pieces(self, count: int) -> Iterator[Range]:
        """Split into so many ranges of nearly the same size, in order."""
        bounds = [self.start + self.size * number // count for number in range(count + 1)]
        for start, end in pairwise(bounds):
            if start < end:
                yield Range(self.topic, self.partition, start, end, self.topic_id)


def losses(start: Position, latest: Position) -> list[str]:
    """Describe what should have been read and is gone, a sentence each."""
    sentences = []
    topics = {topic for topic, _ in latest.offsets}
    for topic in sorted({topic for topic, _ in start.offsets}):
        if topic not in topics:
            sentences.append(f"The topic {topic} is gone, or not subscribed to any more.")
        elif start.is_anew(topic, latest):
            sentences.append(f"The topic {topic} was deleted and made anew: what was not read of the old one is lost.")
    for (topic, partition), offset in sorted(start.offsets.items()):
        if topic not in topics or start.is_anew(topic, latest):
            continue
        end = latest.offsets.get((topic, partition))
        if end is None:
            sentences.append(f"Partition {topic}-{partition} is gone, and with it what was not read yet.")
        elif end < offset:
            sentences.append(f"Partition {topic}-{partition} was read up to {offset} and now ends at {end}.")
    return sentences


def carried(start: Position, latest: Position) -> Position:
    """Add positions of topics that are gone at the moment: if one comes back, reading continues there."""
    topics = {topic for topic, _ in latest.offsets}
    kept = {one: offset for one, offset in start.offsets.items() if one not in latest.offsets and one[0] not in topics}
    ids = {topic: start.ids[topic] for topic, _ in kept if topic in start.ids}
    return Position({**kept, **latest.offsets}, {**ids, **latest.ids}, latest.cut)


def waiting(start: Position, latest: Position) -> dict[TopicPartition, int]:
    """Return how many offsets of each partition wait to be read."""
    sizes = {one: end - start.start_of(one, latest) for one, end in latest.offsets.items()}
    return {one: size for one, size in sizes.items() if size > 0}


def limited(start: Position, latest: Position, most: int) -> Position:
    """Limit the offsets: one for each partition that has any, the rest in proportion to what waits."""
    sizes = waiting(start, latest)
    total, rest = sum(sizes.values()), max(0, most - len(sizes))
    if total <= most:
        return latest
    offsets = dict(latest.offsets)
    for one, size in sizes.items():
        offsets[one] = start.start_of(one, latest) + 1 + rest * (size - 1) // max(1, total - len(sizes))
    return Position(offsets, latest.ids, latest.cut)


def evenly(start: Position, latest: Position, most: int) -> Position:
    """Limit the offsets evenly, so that small partitions are read to their ends.

    A stream that is joined with a table then does not wait long for the end of the table's topic.
    """
    sizes = waiting(start, latest)
    if sum(sizes.values()) <= most:
        return latest
    offsets, left = dict(latest.offsets), max(most, len(sizes))
    for done, (one, size) in enumerate(sorted(sizes.items(), key=lambda item: (item[1], item[0]))):
        share = min(size, left // (len(sizes) - done))
        offsets[one] = start.start_of(one, latest) + share
        left -= share
    return Position(offsets, latest.ids, latest.cut)


def at_most(position: Position, target: Position) -> Position:
    """Cut a position at an earlier target, without partitions that are newer."""
    offsets = {
        one: min(end, target.offsets[one])
        for one, end in position.offsets.items()
        if one in target.offsets and not target.is_anew(one[0], position)
    }
    return Position(offsets, position.ids, position.cut)


def gathered(start: Position, end: Position) -> Position:
    """Use fewer tasks than partitions for a batch of few records, unless options say how many.

    Most of the cost of a small batch is that of its tasks, in Spark, in the sink and in the broker.
    """
    if end.cut != Cut():
        return end
    sizes = waiting(start, end)
    enough = -(-sum(sizes.values()) // FEW)
    return end if enough >= len(sizes) else replace(end, cut=Cut(max_partitions=enough))


def ranges(start: Position, end: Position) -> list[Range]:
    """Return what a batch reads, ordered by topic and partition."""
    found = (
        Range(topic, partition, start.start_of((topic, partition), end), offset, end.ids.get(topic))
        for (topic, partition), offset in sorted(end.offsets.items())
    )
    return [one for one in found if one.size > 0]


def tasks(whole: Sequence[Range], cut: Cut) -> list[tuple[Range, ...]]:
    """Return what each task reads. It depends on nothing else, so a replay has the same tasks."""
    parts = split(whole, cut)
    if cut.max_partitions is None or len(parts) <= cut.max_partitions:
        return [(part,) for part in parts]
    loads = dealt([part.size for part in parts], cut.max_partitions)
    return [
        tuple(sorted((parts[number] for number in load), key=lambda one: (one.topic, one.partition, one.start)))
        for load in loads
    ]


def dealt(sizes: Sequence[int], tasks: int) -> list[list[int]]:
    """Deal parts of these sizes out to tasks: the largest first, each to the task with the least. Returns the numbers
    of the parts of each task.
    """
    loads: list[list[int]] = [[] for _ in range(tasks)]
    totals = [0] * tasks
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        least = totals.index(min(totals))
        loads[least].append(number)
        totals[least] += sizes[number]
    return [sorted(load) for load in loads]


def split(whole: Sequence[Range], cut: Cut) -> list[Range]:
    """Cut ranges that are too large."""
    parts = list(whole)
    if cut.max_records is not None:
        parts = _cut(parts, [-(-one.size // cut.max_records) for one in parts])
    if cut.min_partitions is not None and len(parts) < cut.min_partitions:
        ideal = sum(one.size for one in parts) / cut.min_partitions
        parts = _cut(parts, [max(1, round(one.size / ideal)) for one in parts])
    return parts


def _cut(parts: Iterable[Range], counts: Iterable[int]) -> list[Range]:
    return [piece for one, count in zip(parts, counts, strict=True) for piece in one.pieces(count)]
