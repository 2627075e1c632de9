"""PostgreSQL's types in events, read from a real server: the same by snapshot and by stream, in every mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.connectors.cdc.postgres import times
from moldau.connect.connectors.cdc.postgres.position import Position, Visible
from moldau.connect.connectors.cdc.postgres.reading import unescaped
from moldau.connect.connectors.cdc.postgres.server import Slot
from moldau.connect.connectors.cdc.postgres.types import Kind, default_text, parse_array, parse_hstore
from moldau.connect.data import Instant, Record, Struct, Type
from tests.connect.test_cdc_postgres import Database, capturing, failure

# A column's type, a literal, the name or type of its schema, and its value in an event.
ROWS: list[tuple[str, str, str, Any]] = [
    ("boolean", "true", "boolean", True),
    ("smallint", "-32768", "int16", -32768),
    ("int", "2147483647", "int32", 2147483647),
    ("bigint", "-9223372036854775808", "int64", -(2**63)),
    ("oid", "4294967295", "int64", 4294967295),
    ("real", "3.4028235e38", "float32", 3.4028234663852886e38),
    ("double precision", "'-Infinity'", "float64", float("-inf")),
    ("numeric(10,3)", "-1.5", "org.apache.kafka.connect.data.Decimal", Decimal("-1.500")),
    ("numeric(3,-2)", "12345", "org.apache.kafka.connect.data.Decimal", Decimal("123E+2")),
    ("numeric(60,0)", "9" * 60, "org.apache.kafka.connect.data.Decimal", Decimal("9" * 60)),
    ("numeric", "120.50", "io.debezium.data.VariableScaleDecimal", (1, b"\x04\xb5")),
    ("money", "'-1234.5'", "org.apache.kafka.connect.data.Decimal", Decimal("-1234.50")),
    ("char(5)", "'ab'", "string", "ab   "),
    ("varchar(9)", "'ä€'", "string", "ä€"),
    ("text", "E'a\\tb\\\\\\n'", "string", "a\tb\\\n"),
    ("name", "'n'", "string", "n"),
    ("bytea", "'\\x00ff'", "bytes", b"\x00\xff"),
    ("bit(1)", "B'1'", "boolean", True),
    ("bit(10)", "B'1000000001'", "io.debezium.data.Bits", b"\x01\x02"),
    ("bit varying(6)", "B'000'", "io.debezium.data.Bits", b""),
    ("date", "'2026-01-02'", "io.debezium.time.Date", 20455),
    ("date", "'0044-03-15 BC'", "io.debezium.time.Date", -735160),
    ("date", "'infinity'", "io.debezium.time.Date", 2147483647),
    ("time", "'24:00:00'", "io.debezium.time.MicroTime", 86_400_000_000),
    ("time(3)", "'01:02:03.456'", "io.debezium.time.Time", 3_723_456),
    ("timetz", "'01:02:03.5+02'", "io.debezium.time.ZonedTime", "23:02:03.5Z"),
    ("timestamp", "'2026-01-02 03:04:05.000006'", "io.debezium.time.MicroTimestamp", 1_767_323_045_000_006),
    ("timestamp(3)", "'2026-01-02 03:04:05.006'", "io.debezium.time.Timestamp", 1_767_323_045_006),
    ("timestamp", "'infinity'", "io.debezium.time.MicroTimestamp", 9_223_372_036_825_200_000),
    ("timestamptz", "'2026-01-02 03:04:05.5+02'", "io.debezium.time.ZonedTimestamp", "2026-01-02T01:04:05.500000Z"),
    ("timestamptz(0)", "'2026-01-02 03:04:05+00'", "io.debezium.time.ZonedTimestamp", "2026-01-02T03:04:05Z"),
    ("interval", "'1 year 2 mons 3 days -04:05:06.7'", "io.debezium.time.MicroDuration", 37_061_693_300_000),
    ("json", "'{\"a\": 1}'", "io.debezium.data.Json", '{"a": 1}'),
    ("jsonb", "'{\"a\":1}'", "io.debezium.data.Json", '{"a": 1}'),
    ("xml", "'<a/>'", "io.debezium.data.Xml", "<a/>"),
    (
        "uuid",
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "io.debezium.data.Uuid",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    ("inet", "'10.0.0.1/8'", "string", "10.0.0.1/8"),
    ("macaddr", "'08:00:2b:01:02:03'", "string", "08:00:2b:01:02:03"),
    ("int4range", "'[1,5]'", "string", "[1,6)"),
    ("tsvector", "'a b'", "io.debezium.data.Tsvector", "'a' 'b'"),
    (
        "point",
        "'(1,2)'",
        "io.debezium.data.geometry.Point",
        (1.0, 2.0, bytes.fromhex("0101000000000000000000f03f0000000000000040"), None),
    ),
    ("mood", "'happy'", "io.debezium.data.Enum", "happy"),
    ("positive", "7", "int32", 7),
    ("int[]", "'{1,NULL,3}'", "array", [1, None, 3]),
    ("text[]", "ARRAY['a,\"b', 'NULL', NULL]", "array", ['a,"b', "NULL", None]),
    ("numeric(4,1)[]", "'{1.5}'", "array", [Decimal("1.5")]),
    ("uuid[]", "'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'", "array", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("mood[]", "'{sad}'", "array", ["sad"]),
]
OTHERWISE: list[tuple[str, str, dict[str, str], str, Any]] = [
    ("numeric", "'NaN'", {"decimal_handling_mode": "string"}, "string", "NaN"),
    ("numeric(5,2)", "1.5", {"decimal_handling_mode": "double"}, "float64", 1.5),
    ("money", "'1234.5'", {"decimal_handling_mode": "string"}, "string", "1234.50"),
    ("bytea", "'\\x00ff'", {"binary_handling_mode": "base64"}, "string", "AP8="),
    ("bytea", "'\\x00ff'", {"binary_handling_mode": "base64-url-safe"}, "string", "AP8="),
    ("bytea", "'\\x00ff'", {"binary_handling_mode": "hex"}, "string", "00ff"),
    ("date", "'1970-01-03'", {"time_precision_mode": "connect"}, "org.apache.kafka.connect.data.Date", 172_800_000),
    ("time", "'00:00:01.5'", {"time_precision_mode": "connect"}, "org.apache.kafka.connect.data.Time", 1500),
    (
        "timestamp",
        "'1970-01-01 00:00:01.5'",
        {"time_precision_mode": "connect"},
        "org.apache.kafka.connect.data.Timestamp",
        1500,
    ),
    ("date", "'2026-01-02'", {"time_precision_mode": "isostring"}, "io.debezium.time.IsoDate", "2026-01-02Z"),
    ("time", "'01:02:03.50'", {"time_precision_mode": "isostring"}, "io.debezium.time.IsoTime", "01:02:03.5Z"),
    (
        "timestamp",
        "'2026-01-02 03:04:05.5'",
        {"time_precision_mode": "isostring"},
        "io.debezium.time.IsoTimestamp",
        "2026-01-02T03:04:05.5Z",
    ),
    ("time(3)", "'00:00:01'", {"time_precision_mode": "microseconds"}, "io.debezium.time.MicroTime", 1_000_000),
    (
        "timestamp(3)",
        "'1970-01-01 00:00:01'",
        {"time_precision_mode": "nanoseconds"},
        "io.debezium.time.NanoTimestamp",
        1_000_000_000,
    ),
    (
        "interval",
        "'1 year 3 days 04:05:06.70'",
        {"interval_handling_mode": "string"},
        "io.debezium.time.Interval",
        "P1Y0M3DT4H5M6.7S",
    ),
    ("box", "'((1,1),(0,0))'", {"include_unknown_datatypes": "true"}, "bytes", b"(1,1),(0,0)"),
    (
        "box",
        "'((1,1),(0,0))'",
        {"include_unknown_datatypes": "true", "unknown_datatypes_handling_mode": "text"},
        "string",
        "(1,1),(0,0)",
    ),
]
pytestmark = pytest.mark.needs("postgres")


@pytest.fixture
def database(cdc_postgres: str) -> Iterator[Database]:
    found = Database(cdc_postgres)
    found.sql("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    found.sql("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    yield found
    found.close()


def shown(value: Any) -> Any:
    return value.values if isinstance(value, Struct) else int(value) if isinstance(value, Instant) else value


def columns_of(one: Record) -> dict[str, tuple[str, Any]]:
    row = one.value["after"]
    row.validate()
    return {field.name: (field.schema.name or field.schema.type.value, shown(value)) for field, value in row}


def create(database: Database, rows: list[Any]) -> str:
    database.sql(
        "CREATE TABLE t (id serial PRIMARY KEY, " + ", ".join(f"c{n} {r[0]}" for n, r in enumerate(rows)) + ")"
    )
    insert = f"INSERT INTO t VALUES (DEFAULT, {', '.join(row[1] for row in rows)})"
    database.sql(insert)
    return insert


def test_every_type_is_the_same_by_snapshot_and_by_stream(database: Database) -> None:
    insert = create(database, ROWS)
    wanted = {f"c{n}": (row[2], row[3]) for n, row in enumerate(ROWS)}
    with capturing(database) as task:
        [snapshot] = task.poll(1)
        database.sql(insert)
        [stream] = task.poll(1)
    for one in (snapshot, stream):
        found = columns_of(one)
        del found["id"]
        assert found == wanted
    assert snapshot.value_schema == stream.value_schema
    parameters = {name: stream.value["after"].schema.field(name).schema.parameters for name in ("c7", "c18", "c41")}
    assert parameters == {
        "c7": {"scale": "3", "connect.decimal.precision": "10"},
        "c18": {"length": "10"},
        "c41": {"allowed": "sad,happy"},
    }


@pytest.mark.parametrize("mode", sorted({str(sorted(row[2].items())) for row in OTHERWISE}))
def test_settings_choose_other_types(database: Database, mode: str) -> None:
    rows = [row for row in OTHERWISE if str(sorted(row[2].items())) == mode]
    create(database, rows)
    with capturing(database, snapshot_mode="initial_only", **rows[0][2]) as task:
        [one] = task.poll(1)
    found = columns_of(one)
    assert [found[f"c{n}"] for n in range(len(rows))] == [(row[3], row[4]) for row in rows]


def test_an_unknown_type_is_left_out_and_told(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    create(database, [("box", "'((1,1),(0,0))'"), ("int", "1")])
    with capturing(database, snapshot_mode="initial_only") as task:
        [one] = task.poll(1)
    assert columns_of(one).keys() == {"id", "c1"}
    assert "the type box of the column public.t.c0" in caplog.text


def test_an_array_of_several_dimensions_is_refused(database: Database) -> None:
    create(database, [("int[]", "'{{1,2},{3,4}}'")])
    assert "several dimensions" in failure(database, snapshot_mode="initial_only")
    with capturing(database, snapshot_mode="initial_only", column_exclude_list="public.t.c0") as task:
        assert columns_of(task.poll(1)[0]).keys() == {"id"}


def test_defaults_stand_in_the_schema(database: Database) -> None:
    database.sql(
        "CREATE TABLE t (id bigserial PRIMARY KEY, a int NOT NULL DEFAULT 5, b text DEFAULT 'it''s', "
        "c timestamp NOT NULL DEFAULT now(), d bool DEFAULT true, e numeric(5,2) DEFAULT 1.5, "
        "f date DEFAULT '2026-01-02', g text, h mood DEFAULT 'sad')"
    )
    database.sql("INSERT INTO t (b, d) VALUES (NULL, NULL)")
    with capturing(database, snapshot_mode="initial_only") as task:
        [one] = task.poll(1)
    row = one.value["after"]
    defaults = {field.name: field.schema.default for field in row.schema.fields}
    assert list(defaults.values()) == [0, 5, "it's", 0, True, Decimal("1.50"), 20455, None, "sad"]
    assert row.get_without_default("b") is None and row.get_without_default("a") == 5
    assert row.schema.field("a").schema.optional is False and one.key.schema.field("id").schema.type is Type.INT64


def test_texts_of_the_server_are_read() -> None:
    assert parse_array("[0:1]={1,2}") == ["1", "2"] and parse_array("{}") == []
    assert parse_hstore('"a"=>"1, \\"x", "b"=>NULL') == {"a": '1, "x', "b": None}
    assert unescaped(b"a\t\\N\t\\\\N\tx\\ty") == ["a", None, "\\N", "x\ty"]
    assert unescaped(b"") == [""]
    assert default_text(Kind(1, "int4"), "nextval('t_id_seq'::regclass)") == "0"
    assert default_text(Kind(1, "int4"), "NULL::integer") is None
    assert default_text(Kind(1, "box"), "'(1,1),(0,0)'::box") is None


@pytest.mark.parametrize("day", ["1970-01-01", "2000-02-29", "1600-03-01", "9999-12-31", "0001-01-01"])
def test_days_are_counted_as_python_does(day: str) -> None:
    from datetime import date

    assert times.day_number(day) == date.fromisoformat(day).toordinal() - 719_163


def test_positions_within_a_transaction() -> None:
    first = Position(100).at(7, 110)
    second, third = first.at(7, 110), first.at(7, 120)
    assert (first.count, second.count, third.count) == (1, 2, 1)
    assert second.has(first) and second.has(second) and not second.has(third)
    assert not second.has(Position(100).at(8, 105))
    assert Position.of(second.offset(1, "x")) == second


def test_snapshots_see_transactions() -> None:
    wrapped = Visible.of(f"{(1 << 32) + 5}:{(1 << 32) + 10}:{(1 << 32) + 7}")
    assert [wrapped.sees(xid) for xid in (4, 7, 9, 10, 11, (1 << 32) - 1)] == [True, False, True, False, False, True]


def test_a_slot_that_fills_the_disk_is_told_of() -> None:
    slot = Slot("s", "pgoutput", "d", True, 1, 2, "reserved", 10, 5, None)
    assert slot.warning is None
    assert "keeps 10 bytes" in (replace(slot, status="extended").warning or "")
    assert "loses it after 7 more" in (replace(slot, status="unreserved", safe=7).warning or "")
    assert "is lost" in (replace(slot, status="lost").warning or "")
