# pyright: basic
"""Records from Arrow to the columns of a task, and back to Arrow: see `operators/columns.py`.

A lane is the path of a topic's records through a task, if it never forks. A task whose topics all have a lane processes
a batch in columns. If that fails, the batch is processed again record by record from the written state; only what fails
then is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moldau.operators.coders import Field, plain_reader, short_writer, topic_reader, topic_writer
from moldau.operators.columns import Columns, InRows, KeepsTable, TakesColumns
from moldau.operators.context import UNKNOWN_TIME
from moldau.operators.record import Headers, Raw
from moldau.operators.timestamps import fail_on_invalid_timestamp
from moldau.operators.topics import Sink, TopicReader
from moldau.operators.windowed import Windowed
from moldau.operators.windowed_serdes import TimeWindowedSerde
from moldau.plan.input_order import Run, runs
from moldau.serdes.context import Serde
from moldau.serdes.primitive import BYTES, LONG, STRING, Plain

from .blobs import HEADERS, NUMBER, SCHEMA, TIMES, Blob, Several, raws, read_headers, unpacked, written_headers
from .task import Task

Partitions = Sequence[int | None] | int | None  # of each record, of all, or by their keys
NOTHING = type(None)
NONE: Mapping[str, int] = {}
MANY_TURNS = 100
NEGATIVE_TIME = "a record has no timestamp"
SHORT_TURN = 8  # records: with fewer in a turn, columns are slower
SUFFIX = np.dtype([("start", ">i8")])  # of time windows' keys, as `operators/windowed_serdes.py` writes them
CHANGELOG_SUFFIX = np.dtype([("start", ">i8"), ("sequence", ">i4")])


@dataclass(slots=True)
class Lane:
    reader: TopicReader
    operators: Sequence[TakesColumns]
    sink: Sink | None  # None: the last operator is the end


def lanes_of(task: Task) -> dict[str, Lane] | None:
    """Return the lanes by topic; None if a topic has none."""
    if task.execution.guarded or task.shard.by_stream_time.count:
        return None
    found = {topic: lane_of(task, reader) for topic, reader in task.readers.items()}
    lanes = {topic: lane for topic, lane in found.items() if lane is not None}
    return lanes if len(lanes) == len(found) else None


def lane_of(task: Task, reader: TopicReader) -> Lane | None:
    if reader.extract is not fail_on_invalid_timestamp:
        return None
    operators: list[TakesColumns] = []
    name = reader.node
    while True:
        below = [node.name for node in task.nodes if name in node.parents]
        if not below:
            return Lane(reader, operators, None) if operators else None
        operator: Any = task.operators[below[0]]
        if len(below) > 1:
            return None
        if isinstance(operator, Sink):
            return Lane(reader, operators, operator) if isinstance(operator.topic, str) else None
        if not getattr(operator, "in_columns", False):
            return None
        operators.append(operator)
        name = below[0]


@dataclass(slots=True)
class Writer:
    """Writes columns into arrays of bytes. What was written or read once is reused while it is the same list."""

    known: list[tuple[list[Any], Serde, pa.Array]] = field(default_factory=list)

    def remember(self, items: list[Any], serde: Serde, array: pa.Array) -> None:
        self.known.append((items, serde, array))

    def array(self, items: list[Any], serde: Serde, write: Callable[[list[Any]], pa.Array]) -> pa.Array:
        for one, by, array in self.known:
            if one is items and by is serde:
                return array
        made = write(items)
        self.remember(items, serde, made)
        return made

    def batch(
        self, columns: Columns, topic: str, key: Serde, value: Serde, partitions: Partitions = None
    ) -> pa.RecordBatch:
        """Return the records as a topic has them. Serdes with a schema may add headers."""
        headers, count = columns.headers, len(columns)
        if count and min(columns.timestamps) < 0:
            raise InRows(NEGATIVE_TIME)
        arrays: list[pa.Array] = []
        sides: tuple[tuple[list[Any], Serde, Field], ...] = (
            (columns.keys, key, "key"),
            (columns.values, value, "value"),
        )
        for items, serde, side in sides:
            short = short_writer(serde)
            if short is not None:
                arrays.append(self.array(items, serde, lambda items, s=serde, w=short: written(items, s, w)))
                continue
            write = topic_writer(serde, topic, side)
            made = [write(item, carried) for item, carried in zip(items, headers or [()] * count, strict=True)]
            arrays.append(pa.array([data for data, _ in made], pa.binary()))
            headers = [carried for _, carried in made]
        carried = pa.nulls(count, HEADERS)
        if headers is not None and any(headers):
            carried = pa.array(map(written_headers, headers), HEADERS)
        times = pa.array(np.array(columns.timestamps, np.int64))
        numbers = pa.nulls(count, pa.int64())
        if partitions is not None:
            numbers = pa.array(np.full(count, partitions) if isinstance(partitions, int) else partitions, pa.int64())
        return pa.RecordBatch.from_arrays([*arrays, times, carried, numbers], schema=SCHEMA)


def partitions_of(sink: Sink, topic: str, columns: Columns) -> list[int | None] | None:
    """Return the partitions that a partitioner chooses. One with `parts` needs only a part of the key, and is called
    once for each part.
    """
    partitioner, count = sink.partitioner, sink.partitions(topic)
    if partitioner is None:
        return None
    found: list[Any]
    parts = getattr(partitioner, "parts", None)
    if parts is not None:
        decisive = parts(columns.keys)
        keys = dict(zip(decisive, columns.keys, strict=True))
        known = {part: partitioner(topic, key, None, count) for part, key in keys.items()}
        found = [known[part] for part in decisive]
    else:
        pairs = zip(columns.keys, columns.values, strict=True)
        found = [partitioner(topic, key, value, count) for key, value in pairs]
    if not set(map(type, found)) <= {int, NOTHING}:
        raise InRows("a partitioner chose several partitions for a record, or none")
    return found


def written(items: list[Any], serde: Serde, write: Callable[[Any], bytes | None]) -> pa.Array:
    kinds = set(map(type, items))
    if serde is STRING and kinds <= {str, NOTHING}:
        return pa.array(items, pa.string()).cast(pa.binary())
    if serde is BYTES and kinds <= {bytes, NOTHING}:
        return pa.array(items, pa.binary())
    if serde is LONG and kinds == {int}:
        return of_one_length(np.array(items, ">i8"))
    inner = None if not isinstance(serde, TimeWindowedSerde) or serde.inner is None else short_writer(serde.inner)
    if kinds == {Windowed} and inner is not None:
        assert isinstance(serde, TimeWindowedSerde) and serde.inner is not None
        keys = written([item.key for item in items], serde.inner, inner)
        suffixes = np.zeros(len(items), CHANGELOG_SUFFIX if serde.changelog else SUFFIX)
        suffixes["start"] = [item.start for item in items]
        return pc.binary_join_element_wise(keys, of_one_length(suffixes), b"", null_handling="replace")  # pyright: ignore[reportAttributeAccessIssue]
    return pa.array([write(item) for item in items], pa.binary())


def of_one_length(items: np.ndarray) -> pa.Array:
    size = items.dtype.itemsize
    ends = np.arange(0, size * (len(items) + 1), size, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(items), [None, pa.py_buffer(ends), pa.py_buffer(items)])


def read(lane: Lane, batch: pa.RecordBatch, writer: Writer, partition: int) -> Columns:
    """Read the records of a topic; one that cannot be read is left to the way record by record."""
    reader = lane.reader
    key, value, times, headers, numbers = batch.columns
    carried = None
    if headers.null_count < len(headers):
        carried = [read_headers(some) for some in headers.to_pylist()]
    timestamps: list[int] = times.to_numpy().tolist()
    if timestamps and min(timestamps) < 0:
        raise InRows(NEGATIVE_TIME)
    keys = items_of(key, reader.key, reader.topic, "key", carried)
    values = items_of(value, reader.value, reader.topic, "value", carried)
    writer.remember(keys, reader.key, key)
    writer.remember(values, reader.value, value)
    offsets: list[int] = numbers.to_numpy(zero_copy_only=False).tolist()
    return Columns(keys, values, timestamps, carried, partition, offsets)


def items_of(array: pa.Array, serde: Serde, topic: str, side: Field, headers: list[Headers] | None) -> list[Any]:
    if serde is STRING:
        return objects(array.cast(pa.string()))
    found = objects(array)
    if serde is BYTES:
        return found
    if isinstance(serde, Plain):
        return list(map(plain_reader(serde), found))
    alone: Callable[[bytes | None], Any] | None = getattr(serde, "read_alone", None)
    if alone is not None:
        return list(map(alone, found))
    read_one = topic_reader(serde, topic, side)
    return [read_one(data, carried) for data, carried in zip(found, headers or [()] * len(found), strict=True)]


def objects(array: pa.Array) -> list[Any]:
    return array.to_numpy(zero_copy_only=False).tolist()


class Taken(NamedTuple):
    """The result of a batch by topic: times of partitions, what is held back, and next offsets of internal topics."""

    times: dict[str, int]
    left: dict[str, list[Raw]]
    next: dict[str, int]


def numbered(batches: Iterable[pa.RecordBatch], first: int) -> tuple[list[pa.RecordBatch], int]:
    """Number the records from `first` on; return them and the next offset."""
    made: list[pa.RecordBatch] = []
    for batch in batches:
        offsets = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
        made.append(batch.set_column(NUMBER, SCHEMA.field(NUMBER), offsets))
        first += batch.num_rows
    return made, first


def turns(found: Iterable[Run]) -> list[Run] | None:
    """Return the turns as a list; None if they are many and short."""
    order: list[Run] = []
    taken = 0
    for run in found:
        order.append(run)
        taken += run.end - run.first
        if len(order) > MANY_TURNS and taken < SHORT_TURN * len(order):
            return None
    return order


def raws_of(table: pa.Table, topic: str, partition: int) -> list[Raw]:
    return [raw for batch in table.to_batches() for raw in raws(batch, topic, partition)]


class InColumns:
    """A task for a batch in columns. `tell` gets the output."""

    def __init__(self, task: Task, lanes: dict[str, Lane], partition: int, tell: Callable[[Several], None]) -> None:
        self.task, self.lanes, self.partition, self.tell, self.writer = task, lanes, partition, tell, Writer()
        self.owners = {
            id(operator.store): (lane, place)
            for lane in lanes.values()
            for place, operator in enumerate(lane.operators, 1)
            if isinstance(operator, KeepsTable) and operator.store is not None
        }

    def take(
        self,
        arrived: Iterable[Blob],
        held: Iterable[tuple[str, bytes]] = (),
        first: Mapping[str, int] = NONE,
        times: Mapping[str, int] = NONE,
    ) -> Taken | None:
        """Process a batch in the order of `input_order.py`; None if there are so many turns that columns are slower.
        `held` was held back before, `first` are the next offsets of internal topics.
        """
        found: dict[str, list[pa.RecordBatch]] = {topic: [] for topic in self.lanes}
        for topic, data in held:
            found[topic] += unpacked(data)
        came: dict[str, list[pa.RecordBatch]] = {}
        unread = set[str]()
        for blob in arrived:
            came.setdefault(blob.topic, []).extend(unpacked(blob.data))
            if blob.more:
                unread.add(blob.topic)
        after: dict[str, int] = {}
        for topic, batches in came.items():
            if topic in first:
                batches, after[topic] = numbered(batches, first[topic])
            found[topic] += batches
        whole = {topic: pa.Table.from_batches(batches, SCHEMA).combine_chunks() for topic, batches in found.items()}
        return self._take(whole, unread, after, times)

    def _take(
        self, whole: dict[str, pa.Table], unread: set[str], after: dict[str, int], before: Mapping[str, int]
    ) -> Taken | None:
        topics = list(whole)
        stamps = [table.column(TIMES).to_numpy() for table in whole.values()]
        latest = [before.get(topic, UNKNOWN_TIME) for topic in topics]
        order = turns(runs(stamps, latest, [topic in unread for topic in topics]))
        if order is None:
            return None
        ends = dict.fromkeys(topics, 0)
        for place, start, end in order:
            topic = topics[place]
            for batch in whole[topic].slice(start, end - start).to_batches():
                self.feed(topic, batch)
            ends[topic] = end
        self.commit()
        left = {topic: raws_of(whole[topic].slice(end), topic, self.partition) for topic, end in ends.items()}
        return Taken(dict(zip(topics, latest, strict=True)), left, after)

    def feed(self, topic: str, batch: pa.RecordBatch) -> None:
        lane, shard = self.lanes[topic], self.task.shard
        self.writer.known.clear()
        columns = read(lane, batch, self.writer, self.partition)
        latest = max(columns.timestamps, default=UNKNOWN_TIME)
        shard.stream_time = max(shard.stream_time, latest)
        self.go_on(lane, 0, columns)

    def commit(self) -> None:
        """Forward what stores have held back, in the order in which caches are flushed."""
        for store in self.task.stores.values():
            lane, place = self.owners[id(store)]
            self.go_on(lane, place, store.latest.end())

    def go_on(self, lane: Lane, place: int, columns: Columns) -> None:
        for operator in lane.operators[place:]:
            if not columns:
                return
            columns = operator.process_all(columns)
        sink = lane.sink
        if sink is not None and columns:
            assert isinstance(sink.topic, str)
            partitions = partitions_of(sink, sink.topic, columns)
            self.tell(Several(sink.topic, self.writer.batch(columns, sink.topic, sink.key, sink.value, partitions)))

    def log(self, topic: str, columns: Columns, key: Serde, value: Serde) -> None:
        """Log the changes of a store to the partition of its shard, without headers."""
        bare = Columns(columns.keys, columns.values, columns.timestamps)
        self.tell(Several(topic, self.writer.batch(bare, topic, key, value, self.partition)))
