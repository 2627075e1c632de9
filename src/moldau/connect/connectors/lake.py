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
from datetime import time as clock
from typing import Any, Protocol

from moldau.connect.config_def import ConfigDef
from moldau.connect.connector import SINK, Config, Offsets, SinkContext, TopicPartition
from moldau.connect.connectors import file_formats
from moldau.connect.connectors.jdbc_sink import place_of
from moldau.connect.connectors.packages import needed
from moldau.connect.data import BITS, DATE, DECIMAL, TIME, TIMESTAMP, Record, Schema, Struct, Type, scale
from moldau.connect.errors import ConfigError, ConnectError, DataError, RetriableError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import Shape, merged, plain

log = logging.getLogger(__name__)
RETRY_S = 1.0


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
    """Records of one table that are not committed yet, and the end of each partition in them."""

    table: Table
    is_there: bool
    stored: dict[TopicPartition, int] = field(default_factory=dict)
    shape: Shape = field(default_factory=Shape)
    records: list[Record] = field(default_factory=list)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    since: float = 0.0


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
        for record in records:
            try:
                self._take(record)
            except RetriableError:
                raise
            except ConnectError as error:
                self._context.report(record, error)
        self._commit_due()

    def _take(self, record: Record) -> None:
        name = self._options.table.replace("${topic}", record.topic)
        batch = self._batches.get(name)
        if batch is None:
            table = self._table(name)
            batch = self._batches[name] = Batch(table, table.load())
        place, offset = place_of(record)
        if place not in batch.stored:
            batch.stored |= table_ends(batch.table, [place], batch.is_there)
        if offset < max(batch.stored.get(place, 0), batch.ends.get(place, 0)):
            return  # it is in the table, or put again after a failure
        made = self._prepared(record, batch)
        batch.ends[place] = offset + 1
        batch.since = batch.since or time.monotonic()
        batch.records.append(made)

    def _prepared(self, record: Record, batch: Batch) -> Record:
        """Return a record as a row with a schema, or with its key alone; ConnectError if it cannot be written."""
        options = self._options
        if record.value is None:
            if not options.upserts:
                raise ConnectError("The record has no value, and rows are appended only; upsert mode deletes by key.")
            return record.but(value=None, key=key_of(record, options.id_columns))
        if batch.is_there and not options.evolves:
            known = set(batch.table.schema.names)
            if more := next((name for name in _names(record.value) if name not in known), None):
                raise DataError(f"The table has no column {more}, and evolve-schema-enabled is false.")
        made = file_formats.typed(record, batch.shape)
        if made.value_schema is None or not isinstance(made.value, Struct):
            raise DataError("The value is neither a struct nor a JSON object.")
        for name in options.id_columns if options.upserts else ():
            if name not in made.value.schema.by_name or made.value.get(name) is None:
                raise DataError(f"The value has no {name}, which is a column of the key.")
        return made

    def _commit_due(self) -> None:
        now = time.monotonic()
        for name, batch in self._batches.items():
            is_due = len(batch.records) >= self._options.most or now - batch.since >= self._options.interval_s
            if batch.records and is_due and now >= self._not_before:
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
            rows, deleted = self._rows(batch.records)
            schema = self._schema(name, rows, table, is_there)
            if schema is not None:
                keys = None if not options.upserts else arrow_table(deleted, key_schema(schema, options.id_columns))
                values = arrow_table([plain(one.value_schema, one.value) for one in rows], schema)
                table.write(values, keys, batch.ends)
                self._hint(name, table)
            batch.is_there = schema is not None
        batch.stored |= batch.ends
        batch.records, batch.ends, batch.since = [], {}, 0.0
        self._context.request_commit()

    def _rows(self, records: Iterable[Record]) -> tuple[list[Record], list[Mapping[str, Any]]]:
        """Return the rows to write and the keys to delete before: with keys, the last record of each counts."""
        if not self._options.upserts:
            return list(records), []
        last: dict[Any, Record] = {}
        names = self._options.id_columns
        keys: dict[Any, Mapping[str, Any]] = {}
        for one in records:
            key = one.key if one.value is None else {name: plain_field(one.value, name) for name in names}
            last[tuple(key.values())] = one
            keys[tuple(key.values())] = key
        return [one for one in last.values() if one.value is not None], list(keys.values())

    def _schema(self, name: str, rows: Sequence[Record], table: Table, is_there: bool) -> Any:
        """Create or extend the table; return its columns, or None if there is no table and nothing to write."""
        wanted: Schema | None = None
        for one in {id(row.value_schema): row.value_schema for row in rows}.values():
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


def key_of(record: Record, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a key; a key that is not a struct is the value of the only one."""
    found = plain(record.key_schema, record.key)
    if not isinstance(found, dict):
        found = {names[0]: found} if len(names) == 1 else {}
    if missing := next((name for name in names if found.get(name) is None), None):
        raise DataError(f"The record has no value, and its key has no {missing}.")
    return {name: found[name] for name in names}


def plain_field(value: Struct, name: str) -> Any:
    return plain(value.schema.by_name[name].schema, value.get(name))


# Arrow.


def arrow() -> Any:
    return needed("pyarrow", "A lake table", "delta")


def arrow_schema(schema: Schema) -> Any:
    """Return Arrow's schema of a struct."""
    pa = arrow()
    return pa.schema([pa.field(one.name, arrow_type(one.schema)) for one in schema.fields])


def arrow_type(schema: Schema) -> Any:
    """Return Arrow's type, of those that both Delta and Iceberg have: times of day are texts."""
    pa = arrow()
    named = {DATE: pa.date32, TIME: pa.string, TIMESTAMP: lambda: pa.timestamp("us", "UTC")}
    if schema.name in named:
        return named[schema.name]()
    if schema.name == DECIMAL:
        return pa.decimal128(38, scale(schema))
    match schema.type:
        case Type.STRUCT:
            return pa.struct([pa.field(one.name, arrow_type(one.schema)) for one in schema.fields])
        case Type.ARRAY:
            return pa.list_(arrow_type(_known(schema.value_schema)))
        case Type.MAP:
            return pa.map_(arrow_type(_known(schema.key_schema)), arrow_type(_known(schema.value_schema)))
        case Type.INT64:
            return pa.int64()
        case kind if kind in BITS:
            return pa.int32()
        case kind:
            simple = {Type.FLOAT32: pa.float32, Type.FLOAT64: pa.float64, Type.BOOLEAN: pa.bool_}
            return simple[kind]() if kind in simple else pa.binary() if kind is Type.BYTES else pa.string()


def _known(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("An array or a map has no schema for what is in it.")
    return schema


def key_schema(schema: Any, names: Sequence[str]) -> Any:
    if missing := next((name for name in names if name not in schema.names), None):
        raise ConnectError(f"The table has no column {missing}, which is one of its key.")
    return arrow().schema([schema.field(name) for name in names])


def arrow_table(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """Make a table of rows; ConnectError if a value does not fit its column."""
    pa = arrow()
    columns: list[Any] = []
    for one in schema:
        try:
            columns.append(pa.array([_shown(one.type, row.get(one.name)) for row in rows], one.type))
        except (pa.ArrowException, OverflowError) as error:
            raise DataError(f"A value does not fit the column {one.name} ({one.type}): {error}") from error
    return pa.Table.from_arrays(columns, schema=pa.schema([pa.field(one.name, one.type) for one in schema]))


def _shown(kind: Any, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and arrow().types.is_floating(kind):
        return float(value)
    return value.isoformat() if isinstance(value, clock) else value
