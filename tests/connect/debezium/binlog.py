"""MariaDB and MySQL: a table with a column of every type, changes, and the differences from Debezium that are meant."""

from __future__ import annotations

import json
import re
from typing import Any

from moldau.testing import eventually
from moldau.testing.ports import free_port
from tests.connect.databases import MARIADB, server_of
from tests.connect.debezium.hosting import as_json, debezium
from tests.connect.mysql_types import types_of
from tests.connect.test_cdc_mysql import MODERN, Database, capturing

PATIENCE_S = 240
ROUNDS: list[dict[str, str]] = [
    {},
    {
        "provide.transaction.metadata": "true",
        "skipped.operations": "none",
        "decimal.handling.mode": "string",
        "binary.handling.mode": "base64",
        "bigint.unsigned.handling.mode": "precise",
        "tombstones.on.delete": "false",
    },
    {
        "decimal.handling.mode": "double",
        "binary.handling.mode": "hex",
        "time.precision.mode": "connect",
        "schema.name.adjustment.mode": "avro",
        "field.name.adjustment.mode": "avro",
        "message.key.columns": "(.*).nokey:b",
        "column.exclude.list": r"(.*)\.pk2\.c",
        "table.exclude.list": r"(.*)\.hidden",
    },
]
MORE = [
    *(("BOOL", "FALSE"), ("BIT", "b'0'"), ("BIT(64)", "b'1'"), ("SMALLINT(5)", "-7"), ("MEDIUMINT UNSIGNED", "9")),
    *(("INT(11) ZEROFILL", "12"), ("REAL", "1.25"), ("REAL(7,2)", "1.25"), ("FLOAT(20)", "0.1"), ("FLOAT(30)", "0.1")),
    *(
        ("FLOAT(10,2)", "3.14"),
        ("DOUBLE(8,3)", "2.5"),
        ("DOUBLE UNSIGNED", "2.5"),
        ("NUMERIC(5)", "42"),
        ("DEC(6,1)", "4"),
    ),
    *(("FIXED(4,2)", "1.25"), ("DECIMAL", "7"), ("DECIMAL(65,30)", "1.5"), ("CHAR", "'a'"), ("NCHAR(3)", "'ü'")),
    *(("NVARCHAR(3)", "'ü'"), ("TINYTEXT", "'t'"), ("MEDIUMTEXT", "'m'"), ("LONGTEXT", "'l'"), ("TINYBLOB", "x'00'")),
    *(("MEDIUMBLOB", "x'01'"), ("LONGBLOB", "x'02'"), ("BINARY", "x'03'"), ("CHAR(3) BINARY", "'b'")),
    *(("TEXT CHARACTER SET latin1", "'é'"), ("VARCHAR(9) COLLATE utf8mb4_bin", "'x'"), ("JSON", "'[1, null]'")),
    *(("TIME(1)", "'838:59:59.9'"), ("TIME(6)", "'-838:59:59.999999'"), ("DATETIME(1)", "'2020-01-01 00:00:01.1'")),
    *(("DATETIME(4)", "'1000-01-01 00:00:00.1234'"), ("DATETIME(6)", "'9999-12-31 23:59:59.999999'")),
    *(("TIMESTAMP(6) NULL", "'2020-01-01 00:00:01.000002'"), ("TIMESTAMP(1) NULL", "'2038-01-19 03:14:07'")),
    *(("TIMESTAMP(2) NULL", "'2020-01-01 00:00:01.50'"), ("DATE", "'1000-01-01'"), ("DATE", "'1582-10-10'")),
    *(("DATE", "'9999-12-31'"), ("YEAR", "1901"), ("YEAR(4)", "2155"), ("POINT", "ST_GeomFromText('POINT(1 2)')")),
    *(("GEOMETRY", "ST_GeomFromText('POINT(1 2)', 4326)"), ("LINESTRING", "ST_GeomFromText('LINESTRING(0 0, 1 1)')")),
    *(("POLYGON", "ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))')"), ("UUID", "UUID()")),
    *(("MULTIPOINT", "ST_GeomFromText('MULTIPOINT(0 0, 1 1)')"), ("INET4", "'127.0.0.1'")),
    *(("GEOMETRYCOLLECTION", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))')"), ("INET6", "'1::'")),
    *(("INT NOT NULL DEFAULT 5", "6"), ("INT DEFAULT NULL", "6"), ("BIGINT UNSIGNED NOT NULL DEFAULT 7", "8")),
    *(("DECIMAL(6,2) NOT NULL DEFAULT 1.5", "2"), ("DOUBLE DEFAULT 1.5", "2"), ("FLOAT NOT NULL DEFAULT -2", "2")),
    *(("VARCHAR(9) NOT NULL DEFAULT 'it''s'", "'v'"), ("VARCHAR(9) NOT NULL DEFAULT ''", "'v'")),
    *(
        ("CHAR(2) DEFAULT 'x'", "'y'"),
        ("ENUM('a','b') NOT NULL DEFAULT 'b'", "'a'"),
        ("SET('a','b') DEFAULT 'a,b'", "'b'"),
    ),
    *(
        ("BIT(1) NOT NULL DEFAULT b'1'", "b'0'"),
        ("BIT(9) DEFAULT b'101'", "b'11'"),
        ("BOOLEAN NOT NULL DEFAULT TRUE", "0"),
    ),
    *(("DATE NOT NULL DEFAULT '2020-02-03'", "'2021-01-01'"), ("TIME DEFAULT '01:02:03'", "'02:00:00'")),
    *(("TIME(6) DEFAULT '-01:02:03.5'", "'02:00:00'"), ("DATETIME NOT NULL DEFAULT '2020-01-01 00:00:01'", "NOW()")),
    *(("DATETIME(6) DEFAULT '2020-01-01 00:00:01.5'", "NOW(6)"), ("DATETIME DEFAULT CURRENT_TIMESTAMP", "NOW()")),
    *(("TIMESTAMP NOT NULL DEFAULT '2020-01-01 00:00:01'", "NOW()"), ("YEAR DEFAULT 2020", "2021")),
    ("TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "'2020-01-01 00:00:00'"),
    *(("TIMESTAMP(3) NULL DEFAULT '2020-01-01 00:00:01.5'", "NULL"), ("VARCHAR(36) DEFAULT (UUID())", "'u'")),
    *(("DATE NOT NULL DEFAULT '0000-00-00'", "'2021-01-01'"), ("BINARY(3) NOT NULL DEFAULT 'ab'", "'abc'")),
    *(("VARBINARY(3) DEFAULT 'ab'", "'abc'"), ("TEXT DEFAULT 'long'", "'t'"), ("BLOB DEFAULT 'ab'", "'abc'")),
    *(("UUID NOT NULL DEFAULT '6ccd780c-baba-4026-9564-5b8c65602400'", "UUID()"), ("INET6 DEFAULT '::1'", "'::2'")),
    *(("TINYINT(1) DEFAULT 1", "1"), ("TINYINT(1) UNSIGNED DEFAULT 1", "1"), ("BIGINT DEFAULT (1 + 1)", "1")),
    *(("INT GENERATED ALWAYS AS (1) VIRTUAL", "DEFAULT"), ("INT AS (c0 + 1) STORED", "DEFAULT")),
    *(("DATE NOT NULL", "'0000-00-00'"), ("VARCHAR(5) COMMENT 'said'", "NULL"), ("INT INVISIBLE DEFAULT 3", "4")),
]
# Debezium does not parse tables with INET4 and INET6, and does not read the year 0.
UNREADABLE = (("INET4", "*"), ("INET6", "*"), ("YEAR", "0"))
NOT_OF_MYSQL = (("UUID", "*"), ("TEXT DEFAULT", "*"), ("BLOB DEFAULT", "*"), ("TIME(6)", "'-838:59:59.999999'"))
DDL = ("ALTER", "CREATE", "DROP", "RENAME")
CHANGES = (
    "UPDATE t SET c0 = 1 WHERE id = 2",
    "DELETE FROM t WHERE id = 2",
    "UPDATE t SET id = 99 WHERE id = 1",
    "INSERT INTO nokey VALUES (3, 'z')",
    "UPDATE nokey SET b = 'q' WHERE a = 3",
    "DELETE FROM nokey WHERE a = 3",
    "INSERT INTO pk2 VALUES (2, 'y', 'd')",
    "UPDATE pk2 SET a = 'z' WHERE a = 'y'",
    "DELETE FROM pk2 WHERE a = 'z'",
    "TRUNCATE TABLE pk2",
    "BEGIN",
    "INSERT INTO pk2 VALUES (3, 'p', 'd'), (4, 'q', 'd')",
    "INSERT INTO nokey VALUES (5, 'p')",
    "UPDATE pk2 SET b = b + 10",
    "COMMIT",
    "ALTER TABLE nokey ADD c INT DEFAULT 4",
    "INSERT INTO nokey VALUES (4, 'n', 5)",
    "ALTER TABLE nokey CHANGE c d DECIMAL(9,2) NOT NULL DEFAULT 1, COMMENT 'said'",
    "INSERT INTO nokey VALUES (4, 'n', 5)",
    "CREATE TABLE born (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3))",
    "INSERT INTO born VALUES (7, '2020-01-01 00:00:00')",
    "RENAME TABLE born TO reborn",
    "INSERT INTO reborn VALUES (8, '2020-01-01 00:00:00')",
    "DROP TABLE reborn",
    "UPDATE uq SET a = 5 WHERE a = 4",
    "ALTER TABLE hidden ADD b INT",
    "CREATE INDEX by_b ON nokey (a)",
    "INSERT INTO nokey VALUES (100, 'end', 5)",
)


def columns_of(kind: str) -> list[tuple[str, str]]:
    """The types of a server's columns, and a value of each."""
    left_out = UNREADABLE if kind == MARIADB else (*UNREADABLE, *NOT_OF_MYSQL)
    return [
        row
        for row in (*(one[:2] for one in types_of(kind).values()), *MORE)
        if not any(row[0].startswith(type_) and value in (row[1], "*") for type_, value in left_out)
    ]


def expected(kind: str) -> dict[str, str]:
    """Paths of differences that are meant, and why."""

    def column(word: str) -> str:
        """The columns whose definition has a word, as an expression that matches their names."""
        found = [f"c{n}" for n, row in enumerate(columns_of(kind)) if re.search(rf"\b{word}\b", row[0])]
        return f"({'|'.join(found)})"

    return {
        r"/value/payload/ts_(ms|us|ns)": "each has its own clock",
        r"/value/payload/source/(ts_ms|ts_us|ts_ns) of snapshot": "each has its own snapshot",
        r"/value/payload/source/version": "the connector for MariaDB is of an older release than that for PostgreSQL",
        r"/headers/__debezium\.context\..*": "ours has no headers that only name the connector",
        r"/value/payload/source/row of schema change": "Debezium's is that of the change before",
        r"/value/payload/tableChanges/0/table/columns/\d+/(length|defaultValueExpression) of schema change": (
            "ours describes a table by the catalogue, which has the length that a type has by itself"
        ),
        r"/value/payload/transaction of truncation": "a statement that is a transaction by itself is none of ours",
        rf"/value/payload/after/{column('TIMESTAMP')} of snapshot": "ours has the digits of the column",
        rf"/value/payload/(before|after)/{column('TIMESTAMP NULL')}": "0000-00-00 is null for ours, as in the snapshot",
        r"/value/payload/tableChanges/0/table/columns/\d+/(generated|autoIncremented) of snapshot": (
            "Debezium takes ON UPDATE for AUTO_INCREMENT"
        ),
        r"/value/payload/tableChanges/0/table/columns/\d+/defaultValueExpression of snapshot": (
            "Debezium leaves a quote doubled, and zeros of BINARY escaped"
        ),
        rf"/value/schema/(before|after)/{column('BINARY')}/default": "Debezium leaves the zeros at its end escaped",
        rf"/value/payload/(before|after)/{column('UUID')}": "Debezium's bytes are shifted in the stream",
        rf"/value/schema/(before|after)/{column('UUID')}/default": "Debezium has no default for it",
        rf"/value/payload/(before|after)/{column('b,c')}": "Debezium leaves the comma escaped in the stream",
        rf"/value/schema/(before|after)/{column('it')}/default": "Debezium leaves the quote doubled",
    }


def prepare(database: Database, columns: list[tuple[str, str]]) -> str:
    """Make the tables, with a row of every type; return the statement that inserts another one."""
    sql = database.sql
    sql("CREATE USER judge IDENTIFIED BY 'judge'")
    sql("GRANT ALL ON *.* TO judge")
    defined = ", ".join(f"c{n} {row[0]}" for n, row in enumerate(columns))
    sql(f"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, {defined})")
    names = ", ".join(f"c{n}" for n in range(len(columns)))
    insert = f"INSERT INTO t ({names}) VALUES ({', '.join(row[1] for row in columns)})"
    sql("CREATE TABLE nokey (a INT, b TEXT)")
    sql("CREATE TABLE pk2 (b INT, a VARCHAR(9), c TEXT, PRIMARY KEY (a, b)) COMMENT 'two'")
    sql("CREATE TABLE uq (a INT NOT NULL, b INT, UNIQUE KEY (a))")
    sql("CREATE TABLE hidden (a INT PRIMARY KEY)")
    sql("INSERT INTO uq VALUES (4, 4)")
    for statement in (
        insert,
        "INSERT INTO nokey VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO pk2 VALUES (1, 'x', 'c')",
    ):
        sql(statement)
    return insert


def capture(kind: str, config: dict[str, str]) -> tuple[list[Any], list[Any]]:
    """Return what ours and Debezium make of the same database."""
    port = free_port()
    reached = ("--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}")
    with server_of(kind, *MODERN, *reached) as server:
        database = Database(kind, server.socket)
        del database.config["include.schema.changes"]
        sql, insert = database.sql, prepare(database, columns_of(kind))
        theirs_config = database.config | {
            "connector.class": database.source.task_class.removesuffix("Task"),
            "database.hostname": "127.0.0.1",
            "database.port": str(port),
            "database.user": "judge",
            "database.password": "judge",
            "database.server.id": "4343",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "task.id": "0",
        }
        ours: list[Any] = []
        more = {name.replace(".", "_"): value for name, value in config.items()}
        with debezium(kind, theirs_config | config) as theirs, capturing(database, **more) as task:

            def take() -> bool:
                ours.extend(map(as_json, task.task.poll()))
                return True

            def streams() -> bool:
                take()
                followers = sum(row[4].startswith("Binlog Dump") for row in sql("SHOW PROCESSLIST"))
                return followers == 2 and len(of_tables(ours)) == len(of_tables(theirs)) == 5

            eventually(streams, PATIENCE_S, "both snapshots")
            for change in (insert, *CHANGES):
                before = statements(ours)
                sql(change)
                if change.split()[0] in DDL:  # ours describes a table as it is when the statement is read
                    eventually(lambda: take() and statements(ours) > before, PATIENCE_S, change)  # noqa: B023

            def over() -> bool:
                take()
                return all('"end"' in json.dumps(one[-4:]) for one in (ours, theirs))

            eventually(over, PATIENCE_S, "the last change")
        database.close()
        return ours, without_open(theirs)


def without_open(records: list[Any]) -> list[Any]:
    """Leave out transactions that begin and never end: those that Debezium makes of statements that change schemas."""
    told = [one["value"]["payload"] for one in records if one["topic"] == "s.transaction"]
    ended = {one["id"] for one in told if one["status"] == "END"}
    return [one for one in records if one["topic"] != "s.transaction" or one["value"]["payload"]["id"] in ended]


def of_tables(records: list[Any]) -> list[Any]:
    return [one for one in records if one["topic"].count(".") > 1]


def statements(records: list[Any]) -> int:
    return sum(one["topic"] == "s" for one in records)
