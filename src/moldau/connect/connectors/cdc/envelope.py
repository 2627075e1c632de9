"""Debezium's change events: names of topics and schemas, the envelope, tombstones, heartbeats, transactions.

A change of a table is a record whose key is the row's primary key and whose value is an envelope: the row before and
after, where the change comes from (`source`, whose fields differ between databases), the operation and the time. A
delete is followed by a tombstone, so that a compacted topic forgets the row. A change of the key itself is a delete of
the old key and a create of the new one; a header of each names the other.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moldau.connect.data import INT64, OPTIONAL, STRING, Header, Record, Schema, Struct, Type, array, struct

CREATE, UPDATE, DELETE, READ, TRUNCATE, MESSAGE = "c", "u", "d", "r", "t", "m"  # `op` of an envelope
TRUE, FIRST, FIRST_OF_TABLE = "true", "first", "first_in_data_collection"  # `source.snapshot`
LAST_OF_TABLE, LAST, FALSE, INCREMENTAL = "last_in_data_collection", "last", "false", "incremental"
SNAPSHOT_MARKS = (TRUE, FIRST, FIRST_OF_TABLE, LAST_OF_TABLE, LAST, FALSE, INCREMENTAL)
VERSION = "3.6.2.Final"  # of the Debezium whose events these are
ENVELOPE_VERSION = 2
OLD_KEY, NEW_KEY = "__debezium.oldkey", "__debezium.newkey"
COMMON = "io.debezium.connector.common."
OPTIONAL_INT64, OPTIONAL_STRING = OPTIONAL[Type.INT64], OPTIONAL[Type.STRING]


def enumeration(values: Iterable[str], **parts: Any) -> Schema:
    return Schema(
        Type.STRING, name="io.debezium.data.Enum", version=1, parameters={"allowed": ",".join(values)}, **parts
    )


def source_schema(name: str, more: Mapping[str, Schema]) -> Schema:
    """Make the schema of `source` for a database; `more` are the fields that only it has."""
    return struct(
        {
            "version": STRING,
            "connector": STRING,
            "name": STRING,
            "ts_ms": INT64,
            "snapshot": enumeration(SNAPSHOT_MARKS, optional=True, default=FALSE),
            "db": STRING,
            "sequence": OPTIONAL_STRING,
            "ts_us": OPTIONAL_INT64,
            "ts_ns": OPTIONAL_INT64,
            **more,
        },
        name=name,
        version=1,
    )


TRANSACTION_BLOCK = struct(
    {"id": STRING, "total_order": INT64, "data_collection_order": INT64},
    name="event.block",
    version=1,
    optional=True,
)
TRANSACTION_KEY = struct({"id": STRING}, name=COMMON + "TransactionMetadataKey", version=1)
_COUNTED = struct({"data_collection": STRING, "event_count": INT64}, name="event.collection", version=1, optional=True)
TRANSACTION_VALUE = struct(
    {
        "status": STRING,
        "id": STRING,
        "event_count": OPTIONAL_INT64,
        "data_collections": array(_COUNTED, optional=True),
        "ts_ms": INT64,
    },
    name=COMMON + "TransactionMetadataValue",
    version=1,
)
HEARTBEAT_KEY = struct({"serverName": STRING}, name=COMMON + "ServerNameKey", version=1)
HEARTBEAT_VALUE = struct({"ts_ms": INT64}, name=COMMON + "Heartbeat", version=1)

Adjust = Callable[[str], str]
_NOT_TOPIC = re.compile(r"[^A-Za-z0-9._\-]")


def topic_name(*parts: str, delimiter: str = ".") -> str:
    """Join the parts of a name; what no topic may have is replaced by an underscore."""
    return _NOT_TOPIC.sub("_", delimiter.join(part for part in parts if part))


@dataclass(frozen=True, slots=True)
class Column:
    """A column as events have it: `schema` says whether it may be null, `convert` takes the value of a driver."""

    name: str
    schema: Schema
    convert: Callable[[Any], Any]


class TableEvents:
    """The events of one table, in the form that it has at the moment; another form is another object."""

    def __init__(
        self,
        topic: str,
        columns: Sequence[Column],
        key: Sequence[str],
        source: Schema,
        adjust: Adjust = lambda name: name,
    ) -> None:
        self.topic = topic
        self.columns = tuple(columns)
        by_name = {one.name: at for at, one in enumerate(columns)}
        self.key_places = tuple(by_name[name] for name in key)
        self.row_schema = struct(
            {one.name: one.schema for one in columns}, name=adjust(f"{topic}.Value"), optional=True
        )
        keys = {columns[at].name: columns[at].schema for at in self.key_places}
        self.key_schema = struct(keys, name=adjust(f"{topic}.Key")) if keys else None
        self.envelope = envelope_schema(adjust(f"{topic}.Envelope"), self.row_schema, source)

    def row(self, values: Sequence[Any]) -> Struct:
        """Make a row of values that were converted."""
        return Struct(self.row_schema, tuple(values))

    def key(self, row: Struct) -> Struct | None:
        if self.key_schema is None:
            return None
        values = row.values
        return Struct(self.key_schema, tuple([values[at] for at in self.key_places]))


def envelope_schema(name: str, row: Schema, source: Schema) -> Schema:
    times = dict.fromkeys(("ts_ms", "ts_us", "ts_ns"), OPTIONAL_INT64)
    parts = {"before": row, "after": row, "source": source, "transaction": TRANSACTION_BLOCK, "op": STRING}
    return struct({**parts, **times}, name=name, version=ENVELOPE_VERSION)


@dataclass(frozen=True, slots=True)
class At:
    """Where a change comes from: `source` of its envelope, and what the worker keeps as the offset after it."""

    source: Struct
    partition: Mapping[str, Any]
    offset: Mapping[str, Any]
    transaction: Struct | None = None
    moved: Struct | None = None  # the transaction's block of the create that follows the delete of an old key


def change(
    table: TableEvents, op: str, before: Struct | None, after: Struct | None, at: At, *, tombstones: bool = True
) -> list[Record]:
    """Return the records of a change: one, and more for a delete or for another key."""
    if op == UPDATE and before is not None and after is not None and table.key_schema is not None:
        old, new = table.key(before), table.key(after)
        if old is not None and new is not None and old.values != new.values:
            return _moved(table, before, after, (old, new), at, tombstones)
    row = before if after is None else after
    key = None if row is None else table.key(row)
    found = [_event(table, op, before, after, key, at)]
    if op == DELETE and tombstones:
        found.append(_tombstone(table, key, at))
    return found


def _moved(
    table: TableEvents, before: Struct, after: Struct, keys: tuple[Struct, Struct], at: At, tombstones: bool
) -> list[Record]:
    old, new = keys
    moved = (Header(NEW_KEY, table.key_schema, new),)
    found = [_event(table, DELETE, before, None, old, at, moved)]
    if tombstones:
        found.append(_tombstone(table, old, at, moved))
    again = replace(at, transaction=at.moved or at.transaction)
    found.append(_event(table, CREATE, None, after, new, again, (Header(OLD_KEY, table.key_schema, old),)))
    return found


def _event(
    table: TableEvents,
    op: str,
    before: Struct | None,
    after: Struct | None,
    key: Struct | None,
    at: At,
    headers: tuple[Header, ...] = (),
) -> Record:
    now = time.time_ns()
    values = (before, after, at.source, at.transaction, op, now // 1_000_000, now // 1_000, now)
    value = Struct(table.envelope, values)
    schema = table.key_schema if key is not None else None
    return Record(table.topic, None, schema, key, table.envelope, value, None, headers, at.partition, at.offset)


def _tombstone(table: TableEvents, key: Struct | None, at: At, headers: tuple[Header, ...] = ()) -> Record:
    schema = table.key_schema if key is not None else None
    return Record(table.topic, None, schema, key, None, None, None, headers, at.partition, at.offset)


def heartbeat(topic: str, server: str, partition: Mapping[str, Any], offset: Mapping[str, Any]) -> Record:
    """Return a record that carries nothing but an offset, for a time in which no captured table changes."""
    key, value = Struct(HEARTBEAT_KEY, (server,)), Struct(HEARTBEAT_VALUE, (time.time_ns() // 1_000_000,))
    return Record(topic, 0, HEARTBEAT_KEY, key, HEARTBEAT_VALUE, value, None, (), partition, offset)


@dataclass(slots=True)
class Transaction:
    """The changes of one transaction, counted in all and by table: `provide.transaction.metadata`."""

    id: str
    ts_ms: int
    counts: dict[str, int] = field(default_factory=dict)

    def block(self, table: str) -> Struct:
        """Count a change; return the block of its envelope."""
        self.counts[table] = self.counts.get(table, 0) + 1
        return Struct(TRANSACTION_BLOCK, (self.id, sum(self.counts.values()), self.counts[table]))

    def boundary(self, topic: str, status: str, partition: Mapping[str, Any], offset: Mapping[str, Any]) -> Record:
        """Return the record of the beginning (BEGIN) or the end (END) of the transaction."""
        total, tables = None, None
        if status == "END":
            total = sum(self.counts.values())
            tables = [Struct(_COUNTED, pair) for pair in self.counts.items()]
        value = Struct(TRANSACTION_VALUE, (status, self.id, total, tables, self.ts_ms))
        key = Struct(TRANSACTION_KEY, (self.id,))
        return Record(topic, None, TRANSACTION_KEY, key, TRANSACTION_VALUE, value, None, (), partition, offset)
