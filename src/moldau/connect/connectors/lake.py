"""Sinks of lake tables: what Delta and Iceberg have in common.

Records are kept until a commit is due, and then a table gets all of them in one commit, which also holds how far each
partition was written. A task looks there before it commits: what is in already is not written again, also when nobody
knows whether the last commit was taken, and of two tasks that both think they have a partition the second one stops.
The group's offsets follow: they are committed when everything before them is in the tables.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol

from moldau.connect.config_def import ConfigDef
from moldau.connect.connector import SINK, Config, Offsets, SinkContext, TopicPartition
from moldau.connect.connectors import file_formats
from moldau.connect.connectors.lake_rows import (
    Key,
    arrow_schema,
    arrow_table,
    key_of,
    key_of_row,
    key_schema,
    key_table,
    parts_of,
)
from moldau.connect.connectors.positions import place_of
from moldau.connect.data import Record, Schema, Struct
from moldau.connect.errors import ConfigError, ConnectError, DataError, RetriableError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import Shape, merged

log = logging.getLogger(__name__)
RETRY_S = 1.0
PLACES = attrgetter("topic", "partition", "original_topic", "original_partition")


@dataclass(frozen=True, slots=True)
class Options:
    """What both kinds of tables are told by their settings."""

    table: str
    id_columns: tuple[str, ...]
    partition_by: tuple[str, ...]
    creates: bool
    evolves: bool
    upserts: bool
    interval_s: float
    most: int
    hint_files: int

    def __post_init__(self) -> None:
        if self.upserts and not self.id_columns:
            raise ConfigError("Writing rows by key needs the columns of the key (id-columns).")


class Table(Protocol):
    """A table of a lake. What may pass is a RetriableError."""

    def load(self) -> bool:
        """Read the table anew; return False if there is none."""
        ...

    @property
    def schema(self) -> Any:
        """The columns, as Arrow's schema."""
        ...

    def create(self, schema: Any) -> None: ...

    def extend(self, schema: Any) -> None:
        """Add the columns that the table lacks."""
        ...

    def ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """How far partitions are in the table, 0 for one of which nothing is."""
        ...

    def write(self, rows: Any, deleted: Any, ends: Mapping[TopicPartition, int]) -> None:
        """Commit rows, keys to delete (None where rows are appended only) and offsets, all or nothing."""
        ...

    def files(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LakeSink:
    """A connector. `options` reads the settings, `table` makes a table of the settings and its name."""

    task_class: str
    config: ConfigDef
    options: Callable[[Mapping[str, Any]], Options]
    table: Callable[[Config, Options, str], Table]
    kind: str = SINK
    exactly_once: bool = False

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        self.options(self.config.parse(config))
        return [dict(config) for _ in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> Writing:
        options = self.options(self.config.parse(context.config))
        return Writing(context, options, lambda name: self.table(context.config, options, name))


@dataclass(slots=True)
class Batch:
    """What of one table is not committed yet: rows, or the last row of each key, and the end of each partition."""

    table: Table
    is_there: bool
    stored: dict[TopicPartition, int] = field(default_factory=dict)
    shape: Shape = field(default_factory=Shape)
    columns: frozenset[str] | None = None  # the only ones that values may have
    checked: Schema | None = None  # has no others
    rows: list[Struct] = field(default_factory=list)
    keyed: dict[Key, Struct | None] = field(default_factory=dict)  # None: it is deleted
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    since: float = 0.0

    def count(self) -> int:
        return len(self.rows) + len(self.keyed)

    def look(self, *, evolves: bool) -> None:
        """Note which columns the table has."""
        self.columns = None if evolves or not self.is_there else frozenset(self.table.schema.names)
        self.checked = None

    def clear(self) -> None:
        self.stored |= self.ends
        self.rows, self.keyed, self.ends, self.since = [], {}, {}, 0.0


class Writing:
    """The task."""

    wants_empty = True  # a commit becomes due though nothing comes any more

    def __init__(self, context: SinkContext, options: Options, table: Callable[[str], Table]) -> None:
        self._context, self._options, self._table = context, options, table
        self._batches: dict[str, Batch] = {}
        self._not_before = 0.0

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        self._batches = {}
        return {}

    def put(self, records: Sequence[Record]) -> None:
        for place, found in groupby(records, PLACES):
            self._take(place[0], list(found))
        self._commit_due()

    def _take(self, topic: str, records: list[Record]) -> None:
        """Take records of one partition, which come in its order."""
        name = self._options.table.replace("${topic}", topic)
        batch = self._batches.get(name) or self._begun(name)
        place, first = place_of(records[0])
        if place not in batch.stored:
            batch.stored |= table_ends(batch.table, [place], batch.is_there)
        done = max(batch.stored[place], batch.ends.get(place, 0))
        if first < done:  # those before are in the table, or put again after a failure
            records = [one for one in records if place_of(one)[1] >= done]
        last = self._rows(records, batch)
        if last is not None:
            batch.ends[place] = place_of(last)[1] + 1
            batch.since = batch.since or time.monotonic()

    def _rows(self, records: Sequence[Record], batch: Batch) -> Record | None:
        """Take the rows of records; return the last one that could be taken."""
        if not self._options.upserts:
            values = [one.value for one in records]
            if all(one.__class__ is Struct and one.schema is batch.checked for one in values):
                batch.rows += values
                return records[-1] if records else None
        last: Record | None = None
        for record in records:
            try:
                self._take_one(record, batch)
                last = record
            except ConnectError as error:
                self._context.report(record, error)
        return last

    def _take_one(self, record: Record, batch: Batch) -> None:
        names = self._options.id_columns
        row = None if record.value is None else self._row(record, batch)
        if self._options.upserts:
            batch.keyed[key_of(record, names) if row is None else key_of_row(row, names)] = row
        elif row is None:
            raise ConnectError("The record has no value, and rows are appended only; upsert mode deletes by key.")
        else:
            batch.rows.append(row)

    def _begun(self, name: str) -> Batch:
        table = self._table(name)
        batch = self._batches[name] = Batch(table, table.load())
        batch.look(evolves=self._options.evolves)
        return batch

    def _row(self, record: Record, batch: Batch) -> Struct:
        """Return a value as a row; ConnectError if it cannot be written."""
        columns, schema = batch.columns, record.value_schema
        if schema is None or schema is not batch.checked:
            if columns is not None and (
                more := next((one for one in _names(record.value) if one not in columns), None)
            ):
                raise DataError(f"The table has no column {more}, and evolve-schema-enabled is false.")
            batch.checked = schema
        made = file_formats.typed(record, batch.shape)
        if made.value_schema is None or not isinstance(made.value, Struct):
            raise DataError("The value is neither a struct nor a JSON object.")
        return made.value

    def _commit_due(self) -> None:
        now = time.monotonic()
        for name, batch in self._batches.items():
            is_due = batch.count() >= self._options.most or now - batch.since >= self._options.interval_s
            if batch.count() and is_due and now >= self._not_before:
                try:
                    self._commit(name, batch)
                except RetriableError:
                    self._not_before = time.monotonic() + RETRY_S
                    raise

    def _commit(self, name: str, batch: Batch) -> None:
        table, options = batch.table, self._options
        is_there = table.load()
        stored = table_ends(table, batch.ends, is_there)
        if all(stored[place] == end for place, end in batch.ends.items()):
            log.info("%s has the batch already; only the answer was lost.", name)
        else:
            if other := next((place for place in batch.ends if stored[place] != batch.stored[place]), None):
                raise ConnectError(
                    f"Another task has written {other[0]}-{other[1]} to {name} meanwhile; this one stops."
                )
            parts = parts_of(batch.rows or [one for one in batch.keyed.values() if one is not None])
            schema = self._schema(name, [part[0] for part in parts], table, is_there)
            if schema is not None:
                keys = key_table(batch.keyed, key_schema(schema, options.id_columns)) if options.upserts else None
                table.write(arrow_table(parts, schema), keys, batch.ends)
                self._hint(name, table)
            batch.is_there = schema is not None
        batch.clear()
        batch.look(evolves=options.evolves)
        self._context.request_commit()

    def _schema(self, name: str, schemas: Iterable[Schema], table: Table, is_there: bool) -> Any:
        """Create or extend the table; return its columns, or None if there is no table and nothing to write."""
        wanted: Schema | None = None
        for one in schemas:
            wanted = merged(wanted, one)
        if wanted is None:
            return table.schema if is_there else None
        schema = arrow_schema(wanted)
        if not is_there:
            if not self._options.creates:
                raise ConnectError(f"There is no table {name}, and auto-create-enabled is false.")
            table.create(schema)
        elif self._options.evolves and set(schema.names) - set(table.schema.names):
            table.extend(schema)
        return table.schema

    def _hint(self, name: str, table: Table) -> None:
        if self._options.hint_files and (count := table.files()) > self._options.hint_files:
            log.warning("%s has %d data files; compact it, or commit less often.", name, count)

    def flush(self, offsets: Offsets) -> Offsets:
        """Return how far everything is in the tables."""
        try:
            self._commit_due()
        except RetriableError as error:
            log.warning("nothing is committed for now: %s", error)
        open_places = {place for batch in self._batches.values() for place in batch.ends}
        return {place: end for place, end in offsets.items() if place not in open_places}

    def close(self) -> None:
        """What is not in a table yet is read again by the next task."""


def _names(value: Any) -> Iterable[str]:
    if isinstance(value, Struct):
        return (one.name for one in value.schema.fields)
    return (str(name) for name in value) if isinstance(value, dict) else ()


def table_ends(table: Table, places: Iterable[TopicPartition], is_there: bool) -> dict[TopicPartition, int]:
    return table.ends(places) if is_there else dict.fromkeys(places, 0)
