"""Types of MariaDB without a server: defaults of columns, and what the binlog's reader returns otherwise."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.connectors.cdc.mysql.schema_changes import Affected, affected
from moldau.connect.connectors.cdc.mysql.types import ColumnInfo, default_of, reader, value_of
from moldau.connect.data import Instant

CONFIG = {
    "decimal.handling.mode": "precise",
    "binary.handling.mode": "bytes",
    "time.precision.mode": "adaptive_time_microseconds",
    "bigint.unsigned.handling.mode": "long",
}
EPOCH = "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("kind", "text", "required", "wanted"),
    [
        *[
            ("int", "5", False, 5),
            ("int", "NULL", False, None),
            ("int", None, True, None),
            ("int", "1 + 1", True, None),
        ],
        *[("float", "-2", True, -2.0), ("double", "1.5", False, 1.5), ("decimal", "1.50", True, Decimal("1.50"))],
        *[("varchar", "'it''s'", True, "it's"), ("text", "''", True, ""), ("varchar", "uuid()", False, None)],
        *[("varbinary", "0x00ff", True, b"\x00\xff"), ("binary", "0x", False, b"\0" * 4)],
        *[("enum", "'b'", True, "b"), ("bit", "b'1'", True, True), ("year", "2020", False, 2020)],
        *[("date", "'1970-01-03'", True, 2), ("date", "'0000-00-00'", True, 0), ("date", "'0000-00-00'", False, None)],
        *[("time", "'01:00:00'", False, 3_600_000_000), ("time", "'-01:00:00.5'", False, -3_600_500_000)],
        *[("datetime", "'1970-01-01 00:00:01'", True, 1000), ("datetime", "current_timestamp()", False, 0)],
        *[("timestamp", "'2020-01-01 00:00:01'", True, "2020-01-01T00:00:01Z")],
        *[("timestamp", "current_timestamp()", True, EPOCH), ("timestamp", "current_timestamp()", False, None)],
    ],
)
def test_a_default_is_a_value_of_the_columns_type(kind: str, text: str | None, required: bool, wanted: Any) -> None:
    sizes = {"bit": 1, "decimal": 6, "binary": 4}
    scale = 2 if kind == "decimal" else 0
    column = ColumnInfo("c", kind, required, False, sizes.get(kind, 0), scale, ("a", "b"), text)
    assert default_of(column, value_of(column, CONFIG, "t.c")) == wanted


@pytest.mark.parametrize("text", ["1.5", "-99999999999999999999999999999999999.999999999999999999999999999999"])
def test_a_decimal_keeps_all_of_its_digits(text: str) -> None:
    column = ColumnInfo("c", "decimal", size=65, scale=30)
    assert value_of(column, CONFIG, "t.c").read(Decimal(text)) == Decimal(text)


@pytest.mark.parametrize(
    ("read", "true"),
    [
        (timedelta(seconds=-3600, microseconds=-1), timedelta(seconds=-3600, microseconds=-999_999)),
        (timedelta(microseconds=-750_000), timedelta(microseconds=-250_000)),
        (timedelta(seconds=-5), timedelta(seconds=-5)),
        (timedelta(seconds=5, microseconds=250_000), timedelta(seconds=5, microseconds=250_000)),
    ],
)
def test_the_fraction_of_a_negative_time_is_mended(read: timedelta, true: timedelta) -> None:
    """The reader of the binlog returns for -1.25 s what is -1.75 s."""
    for is_of_binlog, wanted in ((True, true), (False, read)):
        column = ColumnInfo("c", "time", size=6, is_of_binlog=is_of_binlog)
        value = value_of(column, CONFIG, "t.c")
        assert reader(column, value, value.schema)(read) == wanted // timedelta(microseconds=1)


@pytest.mark.parametrize(("hours", "shown"), [(0, 0), (23, 82_800_000), (24, None), (-1, None)])
def test_a_time_of_no_day_is_null_for_connect_or_0_where_that_is_not_allowed(hours: int, shown: int | None) -> None:
    for is_required in (False, True):
        column = ColumnInfo("c", "time", is_required)
        value = value_of(column, CONFIG | {"time.precision.mode": "connect"}, "t.c")
        found = reader(column, value, value.schema)(timedelta(hours=hours))
        assert found == (None if shown is None and not is_required else Instant(shown or 0))


def test_commas_in_labels_of_an_enumeration_are_escaped_in_its_schema_alone() -> None:
    value = value_of(ColumnInfo("c", "enum", allowed=("a", "b,c")), CONFIG, "t.c")
    assert (value.schema.parameters, value.read(2)) == ({"allowed": r"a,b\,c"}, "b,c")


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("create or replace table `a``b`.`t x` (id INT)", [("CREATE", "a`b", "t x")]),
        ("CREATE TABLE IF NOT EXISTS t LIKE u", [("CREATE", "d", "t")]),
        ("/* by hand */ ALTER ONLINE TABLE shop . t ADD x INT", [("ALTER", "shop", "t")]),
        ("ALTER TABLE t RENAME COLUMN a TO b", [("ALTER", "d", "t")]),
        ("ALTER TABLE t RENAME TO u", [("ALTER", "d", "u")]),
        ("ALTER TABLE t COMMENT 'it''s, RENAME TO u, '", [("ALTER", "d", "t")]),
        ("CREATE UNIQUE INDEX i ON t (a)", [("ALTER", "d", "t")]),
        ("CREATE FULLTEXT INDEX i ON e.t (a)", [("", "e", "")]),
        ("DROP INDEX i ON t", [("", "d", "")]),
        (
            "DROP TABLE IF EXISTS a, `e`.`b` /* generated by server */",
            [
                ("DROP", "d", "a", "DROP TABLE IF EXISTS `d`.`a`"),
                ("DROP", "e", "b", "DROP TABLE IF EXISTS `e`.`b`"),
            ],
        ),
        ("RENAME TABLE a TO b, c TO e.f", [("ALTER", "d", "b"), ("ALTER", "e", "f")]),
        ("CREATE DATABASE IF NOT EXISTS other", [("", "other", "")]),
        *[(text, []) for text in ("DROP TEMPORARY TABLE t", "CREATE VIEW v AS SELECT 1", "GRANT ALL ON t TO u", "")],
    ],
)
def test_a_statement_names_what_it_changes(statement: str, wanted: list[tuple[str, ...]]) -> None:
    assert affected(statement, "d") == [Affected(*one) for one in wanted]
