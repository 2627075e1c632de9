"""Columns of MariaDB and MySQL: their types, a value of each in SQL and in an event, and the schemas of Debezium."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.connect.databases import MARIADB

TYPES: dict[str, tuple[str, str, Any]] = {
    "ti": ("TINYINT", "-5", -5),
    "tu": ("TINYINT UNSIGNED", "200", 200),
    "si": ("SMALLINT UNSIGNED", "60000", 60000),
    "mi": ("MEDIUMINT", "-8000000", -8000000),
    "iu": ("INT UNSIGNED", "4000000000", 4000000000),
    "bi": ("BIGINT", "-9000000000000000000", -9000000000000000000),
    "f": ("FLOAT", "1.5", 1.5),
    "d": ("DOUBLE", "2.25", 2.25),
    "n": ("DECIMAL(10,3)", "-12.340", Decimal("-12.340")),
    "b1": ("BIT(1)", "b'1'", True),
    "b9": ("BIT(9)", "b'100000011'", b"\x03\x01"),
    "c": ("CHAR(4)", "'ab'", "ab"),
    "v": ("VARCHAR(300)", "'Zoë 日本'", "Zoë 日本"),
    "l": ("VARCHAR(9) CHARACTER SET latin1", "'Zoë'", "Zoë"),
    "x": ("TEXT", "'long'", "long"),
    "vb": ("VARBINARY(9)", "x'00ff01'", b"\x00\xff\x01"),
    "bl": ("BLOB", "x'ff00'", b"\xff\x00"),
    "e": ("ENUM('a','b,c')", "'b,c'", "b,c"),
    "s": ("SET('x','y','z')", "'z,x'", "x,z"),
    "y": ("YEAR", "2024", 2024),
    "dt": ("DATE", "'2024-02-29'", 19782),
    "t0": ("TIME", "'-01:00:01'", -3601_000_000),
    "t6": ("TIME(6)", "'12:00:00.000001'", 43200_000_001),
    "m0": ("DATETIME", "'2020-01-01 00:00:01'", 1577836801000),
    "m6": ("DATETIME(6)", "'2020-01-01 00:00:01.000002'", 1577836801000002),
    "ts": ("TIMESTAMP(3) NULL", "'2020-01-01 00:00:01.5'", "2020-01-01T00:00:01.500Z"),
    "j": ("JSON", "'{\"a\": 1}'", '{"a": 1}'),
    "u": ("UUID", "'6ccd780c-baba-4026-9564-5b8c65602400'", "6ccd780c-baba-4026-9564-5b8c65602400"),
    "i4": ("INET4", "'10.0.0.0'", "10.0.0.0"),
    "i6": ("INET6", "'2001:db8::ff00:42:8329'", "2001:db8::ff00:42:8329"),
    "i6s": ("INET6", "'1:0:2:3:4:5:6:7'", "1::2:3:4:5:6:7"),
    "i6m": ("INET6", "'::ffff:10.0.0.1'", "::ffff:10.0.0.1"),
    "i6z": ("INET6", "'::'", "::"),
    "fm": ("FLOAT(7,3)", "1.5", 1.5),
    "bu": ("BIGINT UNSIGNED", "18446744073709551615", -1),
    "bo": ("BOOLEAN", "TRUE", 1),
    "b": ("BINARY(4)", "x'0100'", b"\x01\0\0\0"),
    "bz": ("VARBINARY(4)", "x'0100'", b"\x01\0"),
    "cu": ("CHAR(5) CHARACTER SET ucs2", "'日本'", "日本"),
    "vu": ("VARCHAR(5) CHARACTER SET utf16", "'日本'", "日本"),
    "vl": ("TEXT CHARACTER SET utf16le", "'日本'", "日本"),
    "el": ("ENUM('é','à') CHARACTER SET latin1", "'à'", "à"),
    "sl": ("SET('é','à','z') CHARACTER SET latin1", "'z,é'", "é,z"),
    "se": ("SET('x','y')", "''", ""),
    "ee": ("ENUM('x','y')", "''", ""),
    "y0": ("YEAR", "0", 0),
    "tn": ("TIME(3)", "'-00:00:00.500'", -500_000),
    "tf": ("TIME(6)", "'-838:59:59.999999'", -3020399_999_999),
    "tq": ("TIME(2)", "'-01:00:01.25'", -3601_250_000),
    "m3": ("DATETIME(3)", "'2020-01-01 00:00:01.123'", 1577836801123),
    "tz": ("TIMESTAMP NULL", "'0000-00-00 00:00:00'", None),
    "tr": ("TIMESTAMP NOT NULL", "'0000-00-00 00:00:00'", "1970-01-01T00:00:00Z"),
    "zd": ("DATE", "'0000-00-00'", None),
    "zr": ("DATETIME NOT NULL", "'0000-00-00 00:00:00'", 0),
}

OF_MARIADB_ALONE = ("UUID", "INET4", "INET6")
OF_MYSQL: dict[str, tuple[str, str, Any]] = {
    "tf": ("TIME(6)", "'-838:59:58.999999'", -3020398_999_999),  # MariaDB has a second more
    "j": (
        "JSON",
        """'{"a": [true, null, "Zoë", -5], "b": 1.5, "c": {}, "long": 9000000000000000000, "n": -70000}'""",
        {"a": [True, None, "Zoë", -5], "b": 1.5, "c": {}, "long": 9000000000000000000, "n": -70000},
    ),
}

DEBEZIUM = "io.debezium."
SCHEMAS: dict[str, tuple[str, str | None]] = {  # of the table above: type and name, as Debezium documents them
    **dict.fromkeys(("ti", "tu", "bo"), ("INT16", None)),
    **dict.fromkeys(("si", "mi"), ("INT32", None)),
    **dict.fromkeys(("iu", "bi", "bu"), ("INT64", None)),
    **dict.fromkeys(("c", "v", "l", "x", "i4", "i6", "cu"), ("STRING", None)),
    **dict.fromkeys(("vb", "bl", "b"), ("BYTES", None)),
    **dict.fromkeys(("ts", "tz", "tr"), ("STRING", DEBEZIUM + "time.ZonedTimestamp")),
    **dict.fromkeys(("m0", "m3", "zr"), ("INT64", DEBEZIUM + "time.Timestamp")),
    **dict.fromkeys(("t0", "t6", "tn"), ("INT64", DEBEZIUM + "time.MicroTime")),
    **dict.fromkeys(("s", "se", "sl"), ("STRING", DEBEZIUM + "data.EnumSet")),
    **dict.fromkeys(("e", "ee", "el"), ("STRING", DEBEZIUM + "data.Enum")),
    "m6": ("INT64", DEBEZIUM + "time.MicroTimestamp"),
    "dt": ("INT32", DEBEZIUM + "time.Date"),
    "y0": ("INT32", DEBEZIUM + "time.Year"),
    "u": ("STRING", DEBEZIUM + "data.Uuid"),
    "b9": ("BYTES", DEBEZIUM + "data.Bits"),
    "b1": ("BOOLEAN", None),
    "f": ("FLOAT32", None),
    "fm": ("FLOAT64", None),
    "d": ("FLOAT64", None),
    "n": ("BYTES", "org.apache.kafka.connect.data.Decimal"),
    "p": ("STRUCT", DEBEZIUM + "data.geometry.Point"),
}

SCHEMAS_OF_MYSQL: dict[str, tuple[str, str | None]] = {"j": ("STRING", DEBEZIUM + "data.Json")}


def types_of(kind: str) -> dict[str, tuple[str, str, Any]]:
    """Return the columns that a server of this kind can have."""
    if kind == MARIADB:
        return TYPES
    return {name: row for name, row in TYPES.items() if row[0] not in OF_MARIADB_ALONE} | OF_MYSQL


def schemas_of(kind: str) -> dict[str, tuple[str, str | None]]:
    """Return type and name of those columns' schemas."""
    types = types_of(kind)
    found = {name: schema for name, schema in SCHEMAS.items() if name in types or name == "p"}
    return found if kind == MARIADB else found | SCHEMAS_OF_MYSQL
