"""Random change events, and random settings of Debezium's transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.connect import data
from moldau.connect.data import INT32, INT64, STRING, Header, Record, Schema, Struct, Type
from tests.connect.judge.inputs import Inputs

Config = dict[str, str]
OPTIONAL = data.OPTIONAL
TIME = "io.debezium.time."
SOURCE = data.struct(
    {
        "connector": STRING,
        "db": STRING,
        "table": STRING,
        "ts_ms": INT64,
        "snapshot": OPTIONAL[Type.STRING].but(default="false"),
        "lsn": OPTIONAL[Type.INT64],
    },
    name="io.debezium.connector.mysql.Source",
)
TRANSACTION = data.struct(
    {"id": STRING, "total_order": INT64, "data_collection_order": INT64}, name="event.block", version=1, optional=True
)
JSONS = (
    *('{"a":1,"b":"x"}', '{"a":1.5,"b":null,"c":true}', '{"a":[1,2,3]}', '{"a":[]}', '{"a":[{"b":1},{"b":2}]}'),
    *('{"a":[{"b":null},{"b":2}]}', '{"a":{"b":{"c":"d"}}}', '{"a":5000000000}', '{"a":[1,5000000000]}', "{}"),
    *('{"a":["x",null]}', '{"a":[null]}', '{"a":[[1],[2]]}', '{"a-b":1,"1c":2}', '{"a":1} more', "plain", ""),
    *(" ", '{"a":', '{"a":[1,"x"]}', '{"a":NaN}', '{"a":1,"a":"x"}'),
)


def row_schema(table: str) -> Schema:
    fields = {
        "id": INT32,
        "name": OPTIONAL[Type.STRING],
        "kind": STRING.but(default="plain"),
        "note": OPTIONAL[Type.STRING].but(default="none"),
        "price": OPTIONAL[Type.FLOAT64],
    }
    return data.struct(fields, name=f"s.db.{table}.Value", optional=True)


OUTBOX = data.struct(
    {
        "id": STRING,
        "aggregatetype": STRING,
        "aggregateid": STRING,
        "type": STRING,
        "payload": OPTIONAL[Type.STRING],
        "at": Schema(Type.INT64, optional=True, name=TIME + "MicroTimestamp", version=1),
        "at_ns": Schema(Type.INT64, name=TIME + "NanoTimestamp", version=1),
        "plain_at": INT64,
        "part": INT32,
        "version": INT32,
    },
    name="s.db.outbox.Value",
    optional=True,
)


def envelope(row: Schema, name: str) -> Schema:
    fields = {"before": row, "after": row, "source": SOURCE, "transaction": TRANSACTION}
    more = {"op": STRING, "ts_ms": OPTIONAL[Type.INT64], "ts_us": OPTIONAL[Type.INT64]}
    return data.struct({**fields, **more}, name=f"{name}.Envelope", version=2)


def change(inputs: Inputs, row: Schema, make: Callable[[Inputs, Schema], Struct], topic: str, op: str) -> Record:
    """Make the event of a change, with a key; now and then something that is not one."""
    key_schema = data.struct({"id": INT32}, name=f"{topic}.Key")
    key = None if inputs.chance(0.1) else Struct.of(key_schema, id=inputs.random.randint(0, 5))
    schema = envelope(row, topic)
    source = {
        "connector": "mysql",
        "db": "db",
        "table": topic.rpartition(".")[2],
        "ts_ms": inputs.random.randint(0, 99),
    }
    block = Struct.of(TRANSACTION, id="t1", total_order=1, data_collection_order=2) if inputs.chance(0.5) else None
    value = Struct.of(
        schema,
        before=make(inputs, row) if op in "ud" else None,
        after=make(inputs, row) if op in "cur" else None,
        source=Struct.of(SOURCE, source),
        transaction=block,
        op=op,
        ts_ms=inputs.random.randint(1, 10**12),
    )
    names = data.array(STRING)
    dropped = Header("gone", names, inputs.random.sample(["id", "name", "note", "nope"], 2))
    return Record(
        topic,
        inputs.one((None, 3)),
        key_schema if key else None,
        key,
        schema,
        value,
        inputs.random.randint(1, 10**12),
        (dropped,) if inputs.chance(0.5) else (),
    )


def other(inputs: Inputs, record: Record) -> Record:
    """Turn some records into tombstones, and a few into what is no change event at all."""
    if inputs.chance(0.15):
        return record.but(value_schema=None, value=None)
    return inputs.record() if inputs.chance(0.05) else record


def _row(inputs: Inputs, schema: Schema) -> Struct:
    return Struct.of(
        schema,
        id=inputs.random.randint(0, 9),
        name=inputs.one((None, "ann", "bob", " ")),
        kind=inputs.one(("plain", "odd")),
        note=inputs.one((None, "x")),
        price=inputs.one((None, 1.5)),
    )


def table_change(inputs: Inputs) -> Record:
    table = inputs.one(("orders", "orders_1", "orders_2", "x-y"))
    return other(inputs, change(inputs, row_schema(table), _row, f"s.db.{table}", inputs.one("cudrt")))


def _outbox_row(inputs: Inputs, schema: Schema) -> Struct:
    return Struct.of(
        schema,
        id=f"e{inputs.random.randint(0, 9)}",
        aggregatetype=inputs.one(("Order", "User", "a.b")),
        aggregateid=inputs.one(("7", "8")),
        type="Created",
        payload=inputs.one((None, *JSONS)),
        at=inputs.one((None, -1_500, 1_700_000_000_000_123)),
        at_ns=1_700_000_000_000_123_456,
        plain_at=5,
        part=inputs.random.randint(0, 3),
        version=1,
    )


def outbox_change(inputs: Inputs) -> Record:
    return other(inputs, change(inputs, OUTBOX, _outbox_row, "s.db.outbox", inputs.one("cccccrudt")))


FIELDS = ("op", "table", "db:base", "source.ts_ms", "ts_ms", "id", "transaction.total_order", "nope", "lsn", "snapshot")


def _some(inputs: Inputs, of: Config, chance: float = 0.4) -> Config:
    return {name: value for name, value in of.items() if inputs.chance(chance)}


def extract_config(inputs: Inputs) -> Config:
    modes = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone", "REWRITE", "nope")
    found = _some(
        inputs,
        {
            "delete.tombstone.handling.mode": inputs.one(modes),
            "route.by.field": inputs.one(("name", "kind", "id", "nope")),
            "add.fields": ",".join(inputs.random.sample(FIELDS, 3)),
            "add.fields.prefix": inputs.one(("_", "")),
            "add.headers": ", ".join(inputs.random.sample(FIELDS, 3)),
            "add.headers.prefix": "h.",
            "drop.fields.header.name": inputs.one(("gone", "other")),
            "drop.fields.from.key": inputs.one(("true", "false")),
            "drop.fields.keep.schema.compatible": inputs.one(("true", "false")),
            "replace.null.with.default": inputs.one(("true", "false")),
        },
    )
    if found.get("delete.tombstone.handling.mode") == "delete-to-tombstone":
        found.pop("drop.fields.header.name", None)  # Debezium fails with NullPointerException
    return found


def router_config(inputs: Inputs) -> Config:
    topics = inputs.one((("(.*)orders(_.)?(.*)", "$1all$3"), ("(.*)", "one"), ("s.db.(.*)", "$1-x"), ("(", "x")))
    found = {"topic.regex": topics[0], "topic.replacement": topics[1]} | _some(
        inputs,
        {
            "key.enforce.uniqueness": inputs.one(("true", "false")),
            "key.field.name": "which",
            "schema.name.adjustment.mode": inputs.one(("none", "avro", "avro_unicode")),
            "logical.table.cache.size": "2",
        },
    )
    if inputs.chance(0.5):
        found |= {"key.field.regex": inputs.one(("s\\.(.*)\\.(.*)", "nope")), "key.field.replacement": "$2"}
        if inputs.chance(0.1):
            del found["key.field.replacement"]
    return found


PLACES = ("type:header", "type:header:kind", "aggregateid:envelope", "version:envelope:v", "part:partition")


def outbox_config(inputs: Inputs) -> Config:
    wrong = ("nope:header", "nope:envelope", "type:partition")
    chosen = inputs.random.sample(PLACES, 2) + ([inputs.one(wrong)] if inputs.chance(0.2) else [])
    return _some(
        inputs,
        {
            "table.fields.additional.placement": inputs.one((",".join(chosen), "type")),
            "table.field.additional.missing": inputs.one(("error", "ignore")),
            "table.field.event.timestamp": inputs.one(("at", "at_ns", "plain_at", "nope", "id")),
            "table.field.event.schema.version": "version",
            "table.field.event.key": inputs.one(("id", "type")),
            "table.field.event.id": inputs.one(("aggregateid", "id", "nope")),
            "table.field.event.payload": inputs.one(("payload", "type", "version", "nope")),
            "table.op.invalid.behavior": inputs.one(("warn", "error", "fatal")),
            "table.expand.json.payload": "true",
            "table.json.payload.null.behavior": inputs.one(("ignore", "optional_bytes")),
            "route.by.field": inputs.one(("type", "aggregatetype", "part")),
            "route.topic.replacement": inputs.one(("x.${routedByValue}", "all")),
            "route.tombstone.on.empty.payload": inputs.one(("true", "false")),
        },
        0.3,
    )


TRANSFORMS: dict[str, tuple[Callable[[Inputs], Config], Callable[[Inputs], Any]]] = {
    "ByLogicalTableRouter": (router_config, table_change),
    "ExtractNewRecordState": (extract_config, table_change),
    "outbox.EventRouter": (outbox_config, outbox_change),
}
