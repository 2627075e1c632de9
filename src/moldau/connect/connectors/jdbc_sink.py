"""JDBC sink: records into tables, inserted, upserted, updated or deleted; tables are created and extended where wanted.

A batch is one transaction of the database. With `offsets.table` it also holds how far each partition was written: a
task begins there, so each record is written exactly once, and of two tasks that both think they have a partition the
later one to commit is refused. A row that the database refuses goes to the dead letters; the rest of its batch is
written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from moldau.connect.config_def import ConfigDef, Key, Kind, between, key, one_of
from moldau.connect.connector import SINK, Config, Offsets, SinkContext, TopicPartition
from moldau.connect.connectors.databases import KEYS, SQLITE, Column, Database, Dialect, Refused, Table, a_jdbc_url
from moldau.connect.connectors.positions import place_of
from moldau.connect.data import DATE, DECIMAL, INT32, INT64, STRING, TIME, TIMESTAMP, Record, Schema, Struct, Type
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import Shape, plain

NONE, KAFKA, RECORD_KEY, RECORD_VALUE = "none", "kafka", "record_key", "record_value"
OF_KAFKA = ("__connect_topic", "__connect_partition", "__connect_offset")


class JdbcSink:
    """Records of topics into tables."""

    kind = SINK
    task_class = "io.confluent.connect.jdbc.sink.JdbcSinkTask"
    exactly_once = False
    config = ConfigDef(
        [
            *(Key(k.name, k.kind, k.default, k.importance, k.doc, validator=a_jdbc_url) for k in KEYS[:1]),
            *KEYS[1:],
            key("insert.mode", "insert", "What to do with a record.", validator=one_of("insert", "upsert", "update")),
            key("pk.mode", NONE, "Where keys are.", validator=one_of(NONE, KAFKA, RECORD_KEY, RECORD_VALUE)),
            key("pk.fields", [], "Columns of the key.", Kind.LIST),
            key("delete.enabled", False, "Delete the row of a record without a value.", Kind.BOOLEAN),
            key("auto.create", False, "Create a table that is missing.", Kind.BOOLEAN),
            key("auto.evolve", False, "Add columns that are missing.", Kind.BOOLEAN),
            key("table.name.format", "${topic}", "The name of the table; ${topic} is replaced."),
            key("fields.whitelist", [], "Fields to write; by default all of them.", Kind.LIST),
            key("batch.size", 3000, "The most rows of a statement.", Kind.INT, validator=between(1)),
            key("max.retries", 10, "How often a batch is tried again.", Kind.INT, validator=between(0)),
            key("retry.backoff.ms", 3000, "How long to wait before that.", Kind.INT, validator=between(0)),
            key("db.timezone", "UTC", "The zone of the times that are written."),
            key("offsets.table", "", "A table for offsets, written with the data: each record exactly once."),
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        check(self.config.parse(config))
        return [dict(config) for _ in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> Writing:
        return Writing(context)


def check(parsed: dict[str, Any]) -> dict[str, Any]:
    """Refuse settings that do not go together; ConfigError."""
    mode, pk = parsed["insert.mode"], parsed["pk.mode"]
    if parsed["delete.enabled"] and pk != RECORD_KEY:
        raise ConfigError("Primary key mode must be 'record_key' when delete support is enabled")
    if mode != "insert" and pk == NONE:
        raise ConfigError(f"Write to a table in {mode.upper()} mode requires key field names to be known (pk.mode)")
    if pk == KAFKA and len(parsed["pk.fields"]) not in (0, 3):
        raise ConfigError("pk.mode=kafka needs three pk.fields, for topic, partition and offset, or none.")
    return parsed


@dataclass(frozen=True, slots=True)
class Line:
    """A row to write, or to delete: its columns with their values, of which `keys` are the key."""

    record: Record
    table: Table
    schemas: Mapping[str, Schema]
    values: Mapping[str, Any]
    keys: tuple[str, ...]
    is_deleted: bool

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.table, tuple(self.values), self.keys, self.is_deleted


class Writing:
    """The task."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._config = check(JdbcSink.config.parse(context.config))
        self._name = context.config.get("name", "")
        self._database = Database(self._config, context.wait)
        self._zone = ZoneInfo(self._config["db.timezone"])
        self._columns: dict[Table, dict[str, Column]] = {}
        self._shapes: dict[str, Shape] = {}
        self._stored: dict[TopicPartition, int] = {}
        self._left = self._config["max.retries"]

    @property
    def _dialect(self) -> Dialect:
        return self._database.dialect

    # Offsets.

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        if not self._config["offsets.table"]:
            return {}
        table = table_of(self._config["offsets.table"])
        if not self._database.columns(table):
            self._create(table, {"connector": STRING, "topic": STRING, "part": INT32, "next": INT64}, OFFSET_KEY)
        mark, d = self._dialect.mark, self._dialect
        where = f"{d.place(table)} WHERE {d.quoted('connector')} = {mark}"
        rows = self._database.rows(f"SELECT topic, part, {d.quoted('next')} FROM {where}", [self._name])
        self._stored = {(topic, part): end for topic, part, end in rows if (topic, part) in set(partitions)}
        return dict(self._stored)

    def _store(self, cursor: Any, records: Sequence[Record]) -> None:
        """Note how far partitions are written; ConnectError if somebody else has written them meanwhile."""
        ends: dict[TopicPartition, int] = {}
        for one in records:
            place, offset = place_of(one)
            ends[place] = max(ends.get(place, 0), offset + 1)
        table, d = table_of(self._config["offsets.table"]), self._dialect
        for (topic, part), end in ends.items():
            before = self._stored.get((topic, part))
            if before is None:
                cursor.execute(d.insert(table, (*OFFSET_KEY, "next")), (self._name, topic, part, end))
                continue
            change = f"UPDATE {d.place(table)} SET {d.quoted('next')} = {d.mark}"
            cursor.execute(f"{change} WHERE {d.where((*OFFSET_KEY, 'next'))}", (end, self._name, topic, part, before))
            if cursor.rowcount != 1:
                raise ConnectError(f"Another task has written {topic}-{part} meanwhile; this one stops.")
        self._ends = ends

    # Records.

    def put(self, records: Sequence[Record]) -> None:
        wanted = [one for one in records if (at := place_of(one))[1] >= self._stored.get(at[0], 0)]
        try:
            lines = list(self._lines(wanted))
            self._prepare(lines)
            self._ends: dict[TopicPartition, int] = {}
            try:
                with self._database.transaction() as cursor:
                    for _, run in groupby(lines, lambda line: line.shape):
                        self._write(cursor, list(run))
                    self._finish(cursor, wanted)
            except Refused:
                with self._database.transaction() as cursor:
                    self._one_by_one(cursor, lines)
                    self._finish(cursor, wanted)
        except RetriableError as error:
            self._again(error)
        self._stored |= self._ends
        self._left = self._config["max.retries"]

    def _finish(self, cursor: Any, records: Sequence[Record]) -> None:
        if self._config["offsets.table"] and records:
            self._store(cursor, records)

    def _again(self, error: RetriableError) -> None:
        """Have the batch put again, if that may be; otherwise the task fails."""
        self._database.drop()
        self._columns.clear()
        if self._left <= 0:
            raise ConnectError(f"The database does not answer, also after retries: {error}") from error
        self._left -= 1
        self._context.wait(self._config["retry.backoff.ms"] / 1000)
        raise error

    def _write(self, cursor: Any, lines: Sequence[Line]) -> None:
        """Write rows that have the same statement."""
        statement, order = self._statement(lines[0])
        size = self._config["batch.size"]
        for start in range(0, len(lines), size):
            rows = [tuple(line.values[name] for name in order) for line in lines[start : start + size]]
            cursor.executemany(statement, rows)

    def _one_by_one(self, cursor: Any, lines: Sequence[Line]) -> None:
        for line in lines:
            try:
                with self._database.savepoint(cursor):
                    statement, order = self._statement(line)
                    cursor.execute(statement, tuple(line.values[name] for name in order))
            except Refused as error:
                self._context.report(line.record, error)

    def _statement(self, line: Line) -> tuple[str, list[str]]:
        """Return the statement of a row, and the columns whose values it takes."""
        d, columns, keys = self._dialect, list(line.values), list(line.keys)
        if line.is_deleted:
            return f"DELETE FROM {d.place(line.table)} WHERE {d.where(keys)}", keys
        match self._config["insert.mode"]:
            case "insert":
                return d.insert(line.table, columns), columns
            case "upsert":
                return d.upsert(line.table, columns, keys), columns
            case _:
                others = [name for name in columns if name not in keys]
                changed = ", ".join(f"{d.quoted(name)} = {d.mark}" for name in others)
                return f"UPDATE {d.place(line.table)} SET {changed} WHERE {d.where(keys)}", [*others, *keys]

    def _lines(self, records: Sequence[Record]) -> Iterator[Line]:
        for record in records:
            try:
                yield self._line(record)
            except ConnectError as error:
                self._context.report(record, error)

    def _line(self, record: Record) -> Line:
        config, table = self._config, table_of(self._config["table.name.format"].replace("${topic}", record.topic))
        keys, key_schemas = self.key(record)
        if record.value is None:
            if not config["delete.enabled"]:
                raise ConnectError("The record has no value, and delete.enabled is false.")
            return Line(record, table, key_schemas, keys, tuple(keys), True)
        value = self._struct(record)
        fields = {one.name: one.schema for one in value.schema.fields}
        if config["fields.whitelist"]:
            fields = {name: schema for name, schema in fields.items() if name in config["fields.whitelist"]}
        schemas = {**key_schemas, **{name: one for name, one in fields.items() if name not in key_schemas}}
        made = {name: self._value(schema, value.get(name)) for name, schema in fields.items()}
        return Line(record, table, schemas, {**dict.fromkeys(schemas), **made, **keys}, tuple(keys), False)

    def _struct(self, record: Record) -> Struct:
        """Return the value as a struct; that of a value without a schema is inferred."""
        value = record.value
        if isinstance(value, dict):
            _, value = self._shapes.setdefault(record.topic, Shape()).take(value)
        if not isinstance(value, Struct):
            raise ConnectError("The value is neither a struct nor a JSON object.")
        return value

    def key(self, record: Record) -> tuple[dict[str, Any], dict[str, Schema]]:
        """Return the columns of the key with their values and schemas."""
        config, names = self._config, self._config["pk.fields"]
        match config["pk.mode"]:
            case "none":
                return {}, {}
            case "kafka":
                (topic, part), offset = place_of(record)
                given: dict[str, Any] = dict(zip(names or OF_KAFKA, (topic, part, offset), strict=True))
                return given, dict(zip(given, (STRING, INT32, INT64), strict=True))
            case "record_key" if not isinstance(record.key, Struct | dict):
                if record.key is None:
                    raise ConnectError("The record has no key, and pk.mode is record_key.")
                if len(names) != 1:
                    raise ConnectError("Name one field in pk.fields: the key is not a struct.")
                schema, key = (record.key_schema, record.key)
                if schema is None:
                    schema, key = Shape().take(key)
                assert schema is not None
                return {names[0]: self._value(schema, key)}, {names[0]: schema}
            case "record_key":
                key = record.key if isinstance(record.key, Struct) else Shape().take(record.key)[1]
                return self._chosen(key, names)
            case _:
                if record.value is None:
                    raise ConnectError("The record has no value, and pk.mode is record_value.")
                return self._chosen(self._struct(record), names)

    def _chosen(self, value: Struct, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Schema]]:
        wanted = list(names) or [one.name for one in value.schema.fields]
        for name in wanted:
            if name not in value.schema.by_name:
                raise ConnectError(f"The record has no field {name}, which pk.fields names.")
        schemas = {name: value.schema.by_name[name].schema for name in wanted}
        return {name: self._value(schema, value.get(name)) for name, schema in schemas.items()}, schemas

    def _value(self, schema: Schema, value: Any) -> Any:
        """Return a value as the driver takes it; ConnectError for one that no column holds."""
        if value is None:
            return None
        if schema.type in (Type.STRUCT, Type.MAP, Type.ARRAY):
            raise ConnectError(f"A column cannot hold a value of type {schema.type.name}; flatten or drop the field.")
        found = plain(schema, value)
        if schema.name == TIMESTAMP:
            found = found.astimezone(self._zone).replace(tzinfo=None)
        if self._dialect is SQLITE:
            if schema.name == TIMESTAMP:
                return found.isoformat(" ", "milliseconds")
            return str(found) if schema.name in (DATE, TIME, DECIMAL) else found
        return found

    # Tables.

    def _prepare(self, lines: Sequence[Line]) -> None:
        """Create and extend tables before anything is written: in MariaDB that ends a transaction."""
        seen: set[tuple[Any, ...]] = set()
        for line in lines:
            if line.is_deleted or line.shape in seen:
                continue
            seen.add(line.shape)
            columns = self._known(line.table)
            if not columns:
                self._missing(line)
                columns = self._known(line.table)
            lacking = {name: schema for name, schema in line.schemas.items() if name not in columns}
            if lacking:
                self._extend(line.table, lacking)

    def _known(self, table: Table) -> dict[str, Column]:
        if not self._columns.get(table):
            self._columns[table] = {one.name: one for one in self._database.columns(table)}
        return self._columns[table]

    def _missing(self, line: Line) -> None:
        if not self._config["auto.create"]:
            raise ConnectError(f"Table {line.table.full_name} is missing and auto-creation is disabled")
        self._create(line.table, line.schemas, line.keys)

    def _create(self, table: Table, schemas: Mapping[str, Schema], keys: Sequence[str]) -> None:
        d = self._dialect
        parts = [self._declared(name, schema, name in keys) for name, schema in schemas.items()]
        if keys:
            parts.append(f"PRIMARY KEY ({', '.join(map(d.quoted, keys))})")
        self._change(f"CREATE TABLE IF NOT EXISTS {d.place(table)} ({', '.join(parts)})")

    def _declared(self, name: str, schema: Schema, is_key: bool) -> str:
        is_required = is_key or not (schema.optional or schema.default is not None)
        return (
            f"{self._dialect.quoted(name)} {self._dialect.type_of(schema, is_key=is_key)}"
            f"{' NOT NULL' if is_required else ' NULL'}"
        )

    def _extend(self, table: Table, lacking: Mapping[str, Schema]) -> None:
        named = ", ".join(lacking)
        if not self._config["auto.evolve"]:
            raise ConnectError(f"Table {table.full_name} is missing fields ({named}) and auto-evolution is disabled")
        hard = [name for name, schema in lacking.items() if not schema.optional and schema.default is None]
        if hard:
            said = f"Cannot ALTER {table.full_name} to add missing field {hard[0]}"
            raise ConnectError(f"{said}, as the field is not optional and does not have a default value")
        for name, schema in lacking.items():
            self._change(f"ALTER TABLE {self._dialect.place(table)} ADD COLUMN {self._declared(name, schema, False)}")
        self._columns.pop(table, None)

    def _change(self, statement: str) -> None:
        with self._database.cursor() as cursor:
            cursor.execute(statement)

    def flush(self, offsets: Offsets) -> Offsets:
        return offsets

    def close(self) -> None:
        self._database.close()


OFFSET_KEY = ("connector", "topic", "part")


def table_of(name: str) -> Table:
    schema, _, last = name.rpartition(".")
    return Table(last, schema)
