"""PostgreSQL: a table with a column of every type, changes, and the differences from Debezium that are meant."""

from __future__ import annotations

import json
from typing import Any

from moldau.testing import eventually
from moldau.testing.ports import free_port
from tests.connect.debezium.hosting import as_json, debezium
from tests.connect.test_cdc_postgres import Database, capturing
from tests.connect.test_cdc_postgres_types import ROWS
from tests.spark.postgres import postgres

PATIENCE_S = 240
ROUNDS: list[dict[str, str]] = [
    {},
    {
        "provide.transaction.metadata": "true",
        "skipped.operations": "none",
        "decimal.handling.mode": "string",
        "binary.handling.mode": "base64",
        "interval.handling.mode": "string",
        "time.precision.mode": "isostring",
    },
    {"decimal.handling.mode": "double", "binary.handling.mode": "hex", "time.precision.mode": "connect"},
]
MORE = [
    *(("box", "'((1,1),(0,0))'"), ("pg_lsn", "'0/1'"), ("int4multirange", "'{[1,2)}'"), ('"char"', "'x'")),
    *(("timestamptz", "'infinity'"), ("timestamp(0)", "'2026-01-02 03:04:05'"), ("time[]", "'{01:02:03}'")),
    *(("timestamptz[]", "'{2026-01-02 03:04:05.5+00}'"), ("date[]", "'{2026-01-02}'"), ("bool[]", "'{t,f}'")),
    *(("timestamp[]", "'{2026-01-02 03:04:05}'"), ("char(3)[]", "'{a}'"), ("real[]", "'{1.5}'")),
    *(("money[]", "'{1.5}'"), ("interval[]", "'{1 day}'"), ("positive[]", "'{1}'"), ("numeric[]", "'{1.50}'")),
    *(("bit varying", "B'101'"), ("bit varying(1)", "B'1'"), ("macaddr8", "'08:00:2b:01:02:03:04:05'")),
    *(("cidr", "'10.0.0.0/8'"), ("numrange", "'[1,2)'"), ("interval", "'1 mon'"), ("numeric(10,0)", "5")),
    *(("text NOT NULL DEFAULT 'x'", "'y'"), ("int NOT NULL", "3"), ("numeric(5,2) NOT NULL", "3")),
    *(("numeric NOT NULL", "3.10"), ("timestamptz NOT NULL DEFAULT now()", "'2026-01-02 03:04:05+00'")),
    *(("uuid NOT NULL", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"), ("point NOT NULL", "'(1,2)'")),
    *(("json NOT NULL", "'{}'"), ("date NOT NULL DEFAULT '2026-01-02'", "'2026-01-02'"), ("bytea NOT NULL", "'\\x01'")),
    *(("interval NOT NULL", "'1 day'"), ("mood NOT NULL DEFAULT 'sad'", "'sad'"), ("int[] NOT NULL", "'{1}'")),
    *(("bit(4) NOT NULL", "B'1010'"), ("bool NOT NULL DEFAULT true", "true"), ("timetz NOT NULL", "'01:02:03+00'")),
    *(("money NOT NULL", "1"), ("numeric(6,3) DEFAULT 1.5", "1"), ("bigint DEFAULT 5", "1")),
    *(("timestamp DEFAULT '2026-01-02 03:04:05'", "'2026-01-02 03:04:05'"), ("jsonb DEFAULT '{}'", "'{}'")),
]
COLUMNS = [row[:2] for row in ROWS] + MORE
CHANGES = (
    "UPDATE t SET c2 = 1 WHERE id = 2",
    "DELETE FROM t WHERE id = 2",
    "UPDATE t SET id = 99 WHERE id = 1",
    "INSERT INTO nokey VALUES (3, 'z')",
    "ALTER TABLE nokey REPLICA IDENTITY FULL",
    "UPDATE nokey SET b = 'q' WHERE a = 3",
    "DELETE FROM nokey WHERE a = 3",
    "INSERT INTO pk2 VALUES (2, 'y', 'd')",
    "UPDATE pk2 SET a = 'z' WHERE a = 'y'",
    "DELETE FROM pk2 WHERE a = 'z'",
    "TRUNCATE pk2",
    "SELECT pg_logical_emit_message(true, 'hello', 'world')",
    "ALTER TABLE nokey ADD c int DEFAULT 4",
    "INSERT INTO nokey VALUES (4, 'n', 5)",
    "INSERT INTO nokey VALUES (100, 'end', 5)",
)


def _column(kind: str) -> str:
    """The columns of a type, as an expression that matches their names."""
    return "(" + "|".join(f"c{n}" for n, row in enumerate(COLUMNS) if row[0] == kind or row[1] == kind) + ")"


# Paths of differences that are meant, and why.
EXPECTED: dict[str, str] = {
    r"/value/payload/ts_(ms|us|ns)": "each has its own clock",
    r"/value/payload/source/(lsn|ts_ms|ts_us|ts_ns|txId|sequence) of snapshot": "each has its own snapshot",
    r"/headers/__debezium\.context\..*": "ours has no headers that only name the connector",
    r"/(key|value)/payload/id of transaction": "Debezium's END has another id than its BEGIN",
    r"/value/payload/data_collections.* of transaction": "Debezium counts messages under the name of a Java object",
    rf".*/{_column('money[]')}(/.*)?": "Debezium leaves the column out",
    rf".*/{_column('interval[]')}(/.*)?": "Debezium leaves the column out",
    rf".*/{_column('positive[]')}(/.*)?": "Debezium leaves the column out",
    r"/value/schema/(before|after) fields": "as above",
    rf".*/{_column('numeric(3,-2)')}(/.*)?": "Debezium reads a negative scale as a large one",
    ".*/" + _column("'0044-03-15 BC'"): "Debezium does not know years BC",
    ".*/" + _column("'infinity'"): "Debezium has several values for infinity",
    ".*/" + _column("'24:00:00'"): "Debezium writes 24:00 as 00:00 where a text or Connect's type is wanted",
    ".*/" + _column("'n'"): "Debezium's stream has null for the type name",
}


def capture(config: dict[str, str]) -> tuple[list[Any], list[Any]]:
    """Return what ours and Debezium make of the same database."""
    port = free_port()
    with postgres(wal_level="logical", listen_addresses="127.0.0.1", port=str(port)) as dsn:
        database = Database(f"{dsn} port={port}")
        database.config["database.port"] = str(port)
        sql = database.sql
        sql("CREATE TYPE mood AS ENUM ('sad', 'happy')")
        sql("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
        sql("CREATE TABLE t (id serial PRIMARY KEY, " + ", ".join(f"c{n} {r[0]}" for n, r in enumerate(COLUMNS)) + ")")
        insert = f"INSERT INTO t VALUES (DEFAULT, {', '.join(row[1] for row in COLUMNS)})"
        sql("CREATE TABLE nokey (a int, b text); CREATE TABLE pk2 (b int, a text, c text, PRIMARY KEY (a, b))")
        sql(f"{insert}; INSERT INTO nokey VALUES (1, 'x'), (2, 'y'); INSERT INTO pk2 VALUES (1, 'x', 'c')")
        theirs_config = {**database.config, "slot.name": "debezium", "publication.name": "debezium", "task.id": "0"}
        theirs_config |= {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "database.hostname": "127.0.0.1",
            "database.password": "-",
        } | config
        ours: list[Any] = []
        more = {name.replace(".", "_"): value for name, value in config.items()}
        with debezium("postgres", theirs_config) as theirs, capturing(database, **more) as task:

            def streams() -> bool:
                ours.extend(map(as_json, task.task.poll()))
                active = sql("SELECT count(*) FROM pg_replication_slots WHERE active")[0][0]
                return len(ours) == len(theirs) == 4 and active == 2

            eventually(streams, PATIENCE_S, "both snapshots")
            for change in (insert, *CHANGES):
                sql(change)

            def over() -> bool:
                ours.extend(map(as_json, task.task.poll()))
                return all('"end"' in json.dumps(one[-4:]) for one in (ours, theirs))

            eventually(over, PATIENCE_S, "the last change")
        database.close()
        return ours, theirs
