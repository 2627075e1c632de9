"""Change data capture from a real MariaDB and a real MySQL: snapshot, binlog, types, restarts, and what is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from moldau.connect import plugins
from moldau.connect.connector import SourceContext
from moldau.connect.connectors.cdc.mysql import connector
from moldau.connect.connectors.cdc.mysql.capture import COMPLETED, Plan, plan
from moldau.connect.connectors.cdc.mysql.server import Place
from moldau.connect.connectors.cdc.mysql.types import ColumnInfo, value_of
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.testing import eventually
from moldau.testing.ports import free_port
from moldau.tls.issuing import issue, make_authority
from moldau.tls.stores import pem
from tests.connect.databases import MARIADB, MYSQL, server_of
from tests.connect.mysql_types import schemas_of, types_of
from tests.services import unique

PATIENCE_S = 120
BINLOG = ("--log-bin=bin", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL")
MODERN = (*BINLOG, "--server-id=7", "--sql-mode=", "--innodb-flush-log-at-trx-commit=0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of TLS: of an authority, of the server, and of another authority."""
    found = tmp_path_factory.mktemp("tls")
    authority = make_authority("one")
    server = issue(authority, "server", ["127.0.0.1"])
    (found / "authority.pem").write_bytes(pem(authority.chain))
    (found / "other.pem").write_bytes(pem(make_authority("other").chain))
    (found / "server.pem").write_bytes(pem(server.chain))
    (found / "server.key").write_bytes(server.key_pem())
    (found / "client.pem").write_bytes(server.key_pem() + pem(server.chain))
    return found


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


KINDS = [
    pytest.param(MARIADB, marks=pytest.mark.needs("mariadb")),
    pytest.param(MYSQL, marks=pytest.mark.needs("mysql")),
]
SOURCES = {MARIADB: connector.MARIADB, MYSQL: connector.MYSQL}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def server(kind: str, folder: Path, port: int) -> Iterator[str]:
    encrypted = (
        f"--ssl-cert={folder}/server.pem",
        f"--ssl-key={folder}/server.key",
        f"--ssl-ca={folder}/authority.pem",
    )
    reached = ("--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}")
    with server_of(kind, *MODERN, *encrypted, *reached) as server:
        yield server.socket


class Database:
    """A database of a test's own, and the config of a connector for it."""

    def __init__(self, kind: str, socket: str) -> None:
        import pymysql

        self.kind, self.source = kind, SOURCES[kind]
        self.name = unique("cdc").replace("-", "_")
        self._connection = pymysql.connect(unix_socket=socket, user="root", autocommit=True)
        self.sql(f"CREATE DATABASE {self.name}")
        self.sql(f"USE {self.name}")
        self.config = {
            "name": "cdc",
            "topic.prefix": "s",
            "database.hostname": socket,
            "database.user": "root",
            "database.server.id": "4242",
            "database.include.list": self.name,
            "retriable.restart.connector.wait.ms": "100",
            "include.schema.changes": "false",
        }

    def sql(self, statement: str, *values: Any) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def close(self) -> None:
        self.sql(f"DROP DATABASE {self.name}")
        self._connection.close()


@pytest.fixture
def database(kind: str, server: str) -> Iterator[Database]:
    found = Database(kind, server)
    yield found
    found.close()


class Task:
    """A task, with what a worker keeps of it."""

    def __init__(self, database: Database, offset: Any, **more: Any) -> None:
        config = database.config | {name.replace("_", "."): str(value) for name, value in more.items()}
        [given] = database.source.task_configs(config, 4)
        self.task = database.source.open(SourceContext(given, lambda _: offset, threading.Event().wait))

    def poll(self, count: int) -> list[Record]:
        """Poll until there are so many records."""
        found: list[Record] = []

        def enough() -> bool:
            with suppress(RetriableError):
                found.extend(self.task.poll())
            return len(found) >= count

        eventually(enough, PATIENCE_S, f"{count} records")
        return found


@contextmanager
def capturing(database: Database, offset: Any = None, **more: Any) -> Iterator[Task]:
    task = Task(database, offset, **more)
    try:
        yield task
    finally:
        task.task.close()


def seen(records: list[Record]) -> list[tuple[str, Any]]:
    """The operation and the id of each change; a tombstone is ('', id)."""
    found: list[tuple[str, Any]] = []
    for one in records:
        if one.value is None:
            found.append(("", one.key["id"]))
        else:
            found.append((one.value["op"], (one.value["after"] or one.value["before"])["id"]))
    return found


def test_the_stream_goes_on_where_the_snapshot_ends(database: Database) -> None:
    database.sql("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    database.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    with capturing(database) as task:
        records = task.poll(3)
        database.sql("INSERT INTO t VALUES (4, 'd')")
        database.sql("UPDATE t SET name = 'z' WHERE id = 1")
        database.sql("DELETE FROM t WHERE id = 2")
        database.sql("UPDATE t SET id = 9 WHERE id = 3")
        records += task.poll(7)
    assert seen(records) == [
        *(("r", 1), ("r", 2), ("r", 3), ("c", 4), ("u", 1), ("d", 2), ("", 2)),
        *(("d", 3), ("", 3), ("c", 9)),
    ]
    assert {one.topic for one in records} == {f"s.{database.name}.t"}
    assert [one.value["source"]["snapshot"] for one in records[:4]] == ["first", "true", "last", "false"]
    changed = records[4].value
    assert (changed["before"]["name"], changed["after"]["name"]) == ("a", "z")
    assert (changed["source"]["connector"], changed["source"]["server_id"]) == (database.kind, 7)
    for one in records:
        if one.value is not None:
            one.value.validate()


def test_a_task_goes_on_in_the_middle_of_a_transaction(database: Database) -> None:
    database.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    with capturing(database, snapshot_mode="no_data") as task:
        eventually(lambda: _is_followed(database), PATIENCE_S, "the reader of the binlog")
        database.sql("BEGIN")
        for start in (0, 10, 20):
            database.sql(f"INSERT INTO t VALUES {', '.join(f'({start + n})' for n in range(10))}")
        database.sql("COMMIT")
        records = task.poll(30)
    whole = seen(records)
    assert whole == [("c", n) for n in range(30)]
    sources = [one.value["source"] for one in records]
    events = database.sql(f"SHOW BINLOG EVENTS IN '{sources[0]['file']}'")
    written = [row[1] for row in events if row[2].startswith("Write_rows")][-3:]
    assert [(one["pos"], one["row"]) for one in sources] == [(pos, row) for pos in written for row in range(10)]
    for cut in (10, 15):
        offset = records[cut - 1].source_offset
        with capturing(database, offset) as task:
            assert seen(task.poll(30 - cut)) == whole[cut:]


def _is_followed(database: Database) -> bool:
    return any(row[4] == "Binlog Dump" for row in database.sql("SHOW PROCESSLIST"))


def test_a_lost_connection_loses_and_doubles_nothing(database: Database) -> None:
    database.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    with capturing(database, snapshot_mode="no_data") as task:
        eventually(lambda: _is_followed(database), PATIENCE_S, "the reader of the binlog")
        for round_ in range(2):
            _end_connections(database)
            database.sql("INSERT INTO t VALUES (%s)", round_)
            assert seen(task.poll(1)) == [("c", round_)]


def test_a_column_is_added_renamed_and_dropped_in_mid_stream(database: Database) -> None:
    database.sql("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    database.sql("INSERT INTO t VALUES (1, 'a')")
    with capturing(database) as task:
        records = task.poll(1)
    offset = records[-1].source_offset
    database.sql("INSERT INTO t VALUES (2, 'b')")
    database.sql("ALTER TABLE t ADD COLUMN price DECIMAL(6,2) NOT NULL DEFAULT 1.50")
    database.sql("INSERT INTO t VALUES (3, 'c', 2.25)")
    database.sql("ALTER TABLE t DROP COLUMN name, CHANGE price cost DOUBLE")
    database.sql("INSERT INTO t VALUES (4, 0.5)")
    with capturing(database, offset) as task:
        rows = [{place.name: value for place, value in one.value["after"]} for one in task.poll(3)]
    assert rows == [
        {"id": 2, "name": "b"},
        {"id": 3, "name": "c", "price": Decimal("2.25")},
        {"id": 4, "cost": 0.5},
    ]


def test_another_size_of_a_type_is_seen_in_mid_stream(database: Database) -> None:
    """Name and type of the column stay as they are, so only the statement tells that the form is another one."""
    database.sql("CREATE TABLE t (id INT PRIMARY KEY, price DECIMAL(6,2), mood ENUM('a'))")
    with capturing(database, snapshot_mode="no_data", heartbeat_interval_ms=1) as task:
        task.poll(1)
        database.sql("INSERT INTO t VALUES (1, 2.25, 'a')")
        database.sql("ALTER TABLE t MODIFY price DECIMAL(8,3), MODIFY mood ENUM('a', 'b')")
        database.sql("INSERT INTO t VALUES (2, 2.125, 'b')")
        changes: list[Record] = []
        while len(changes) < 2:
            changes += [one for one in task.poll(1) if one.topic.endswith(".t")]
    rows = [one.value["after"] for one in changes]
    assert [row["price"] for row in rows] == [Decimal("2.25"), Decimal("2.125")]
    found = [{one.name: one.schema.parameters for one in row.schema.fields} for row in rows]
    assert [one["price"]["scale"] for one in found] == ["2", "3"]
    assert [one["mood"]["allowed"] for one in found] == ["a", "a,b"]


def test_a_server_that_is_another_one_after_a_lost_connection_is_refused(database: Database) -> None:
    """The library would connect again by itself and go on, wherever it is."""
    database.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    try:
        with capturing(database, snapshot_mode="no_data") as task:
            eventually(lambda: _is_followed(database), PATIENCE_S, "the reader of the binlog")
            database.sql("SET GLOBAL server_id = 8")
            _end_connections(database)
            database.sql("INSERT INTO t VALUES (1)")
            with pytest.raises(ConnectError, match="of server 7, and this is server 8"):
                task.poll(1)
    finally:
        database.sql("SET GLOBAL server_id = 7")


def _end_connections(database: Database) -> None:
    for row in database.sql("SHOW PROCESSLIST"):
        if row[4] == "Binlog Dump":
            database.sql(f"KILL {row[0]}")


def test_a_truncate_is_an_event_if_it_is_wanted_and_comes_once(database: Database) -> None:
    database.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    database.sql("INSERT INTO t VALUES (1)")
    with capturing(database, skipped_operations="none") as task:
        task.poll(1)
        database.sql("TRUNCATE TABLE t")
        [truncated] = task.poll(1)
    assert (truncated.value["op"], truncated.key, truncated.topic) == ("t", None, f"s.{database.name}.t")
    database.sql("INSERT INTO t VALUES (2)")
    with capturing(database, truncated.source_offset, skipped_operations="none") as task:
        assert seen(task.poll(1)) == [("c", 2)]


def test_every_type_is_the_same_in_snapshot_and_stream(database: Database) -> None:
    types = types_of(database.kind)
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in types.items())
    values = ", ".join(text for _, text, _ in types.values())
    database.sql("SET time_zone = '+00:00'")
    database.sql("SET NAMES utf8mb4")
    database.sql(f"CREATE TABLE t (id INT PRIMARY KEY, {columns}, p POINT) CHARACTER SET utf8mb4")
    database.sql(f"INSERT INTO t VALUES (1, {values}, POINT(1, 2))")
    with capturing(database) as task:
        [first] = task.poll(1)
        database.sql(f"INSERT INTO t VALUES (2, {values}, POINT(1, 2))")
        [second] = task.poll(1)
    assert first.value_schema == second.value_schema
    for record in (first, second):
        record.value.validate()
        row = record.value["after"]
        found = {name: row.get_without_default(name) for name in types}
        if database.kind == MYSQL:  # the server's text has spaces, and the binlog no text
            found["j"] = json.loads(found["j"])
        assert found == {name: wanted for name, (_, _, wanted) in types.items()}
        assert (row["p"]["x"], row["p"]["y"]) == (1.0, 2.0)
    named = {one.name: (one.schema.type.name, one.schema.name) for one in first.value["after"].schema.fields}
    for column, wanted in schemas_of(database.kind).items():
        assert named[column] == wanted, column


def test_a_unique_key_is_the_key_and_columns_come_in_its_order(database: Database) -> None:
    database.sql("CREATE TABLE u (a INT UNIQUE, b INT NOT NULL UNIQUE, id INT)")
    database.sql("CREATE TABLE v (b INT, a INT, id INT, PRIMARY KEY (id, a, b))")
    for name in "uv":
        database.sql(f"INSERT INTO {name} VALUES (1, 2, 3)")
    with capturing(database) as task:
        records = task.poll(2)
        for name in "uv":
            database.sql(f"INSERT INTO {name} VALUES (4, 5, 6)")
        records += task.poll(2)
    keys = [[(place.name, value) for place, value in one.key] for one in records]
    assert keys == [
        *([("b", 2)], [("id", 3), ("a", 2), ("b", 1)]),
        *([("b", 5)], [("id", 6), ("a", 5), ("b", 4)]),
    ]


def test_changes_of_schemas_are_told_once_and_a_table_as_it_is(database: Database) -> None:
    database.sql("CREATE TABLE t (id INT PRIMARY KEY, mood ENUM('a','b') NOT NULL DEFAULT 'b') CHARACTER SET utf8mb4")
    database.config["include.schema.changes"] = "true"
    with capturing(database) as task:
        told = task.poll(6)
        database.sql("ALTER TABLE t ADD price DECIMAL(6,2) UNSIGNED, ADD at TIMESTAMP(3) NULL")
        told += task.poll(1)
        database.sql("CREATE TABLE a (id INT)")
        database.sql("CREATE TABLE b (id INT)")
        told += task.poll(2)
        database.sql("RENAME TABLE a TO c, b TO d")
        renamed = task.poll(2)
    assert {(one.topic, one.key["databaseName"]) for one in told[1:]} == {("s", database.name)}
    assert [(one.value["ddl"].split()[0], one.value["source"]["snapshot"]) for one in told] == [
        *(("SET", "true"), ("DROP", "true"), ("DROP", "true"), ("CREATE", "true"), ("USE", "true"), ("CREATE", "true")),
        *(("ALTER", "false"), ("CREATE", "false"), ("CREATE", "false")),
    ]
    for one in (*told, *renamed):
        one.value.validate()
    [change] = told[6].value["tableChanges"]
    assert (change["type"], change["id"]) == ("ALTER", f'"{database.name}"."t"')
    table = change["table"]
    assert (table["defaultCharsetName"], table["primaryKeyColumnNames"]) == ("utf8mb4", ["id"])
    names = ("name", "jdbcType", "typeName", "charsetName", "length", "scale", "position", "optional", "enumValues")
    assert [tuple(one[name] for name in names) for one in table["columns"]] == [
        ("id", 4, "INT", None, 11 if database.kind == MARIADB else None, None, 1, False, None),
        ("mood", 1, "ENUM", "utf8mb4", 1, None, 2, False, ["'a'", "'b'"]),
        ("price", 3, "DECIMAL UNSIGNED", None, 6, 2, 3, True, None),
        ("at", 2014, "TIMESTAMP", None, 3, None, 4, True, None),
    ]
    ids = [[change["id"] for change in one.value["tableChanges"]] for one in renamed]
    assert ids == [[f'"{database.name}"."c"'], [f'"{database.name}"."d"']]
    with capturing(database, renamed[0].source_offset) as task:  # in the middle of the statement
        [again] = task.poll(1)
    assert again.value["tableChanges"][0]["id"] == ids[1][0]
    with capturing(database, snapshot_mode="no_data", heartbeat_interval_ms=1) as task:
        assert task.poll(1)[0].value["ddl"].startswith("SET character_set_server=")


def test_a_heartbeat_carries_the_position(database: Database) -> None:
    with capturing(database, snapshot_mode="no_data", heartbeat_interval_ms=1) as task:
        beat = task.poll(1)[0]
    assert beat.topic == "__debezium-heartbeat.s"
    assert beat.source_offset is not None and beat.source_offset["file"].startswith("bin.")


def test_what_cannot_be_read_is_named(database: Database) -> None:
    with pytest.raises(ConnectError, match=r"a\.t\.v has the type vector"):
        value_of(ColumnInfo("v", "vector"), {}, "a.t.v")
    database.sql("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9) CHARACTER SET swe7)")
    with capturing(database, snapshot_mode="no_data", heartbeat_interval_ms=1) as task:
        task.poll(1)
        database.sql("INSERT INTO t VALUES (1, 'a')")
        with pytest.raises(ConnectError, match="name has the character set swe7"):
            task.poll(10_000_000)
    if database.kind == MYSQL:
        return
    database.sql("CREATE TABLE c (id INT PRIMARY KEY, name VARCHAR(9) COMPRESSED)")
    with capturing(database, snapshot_mode="no_data", heartbeat_interval_ms=1) as task:
        task.poll(1)
        database.sql("INSERT INTO c VALUES (1, 'a')")
        with pytest.raises(ConnectError, match=r"c\.name is COMPRESSED"):
            task.poll(10_000_000)


def test_tls_verifies_and_identifies_the_server(database: Database, folder: Path, port: int) -> None:
    database.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    database.sql("INSERT INTO t VALUES (1)")
    database.sql("DROP USER IF EXISTS capture@'127.0.0.1'")
    database.sql("CREATE USER capture@'127.0.0.1' REQUIRE X509")
    database.sql("GRANT ALL ON *.* TO capture@'127.0.0.1'")
    database.config |= {"database.hostname": "127.0.0.1", "database.port": str(port), "database.user": "capture"}
    known = {"database_ssl_truststore": folder / "authority.pem", "database_ssl_keystore": folder / "client.pem"}
    for mode in ("required", "verify-full"):
        with capturing(database, database_ssl_mode=mode, **known) as task:
            assert seen(task.poll(1)) == [("r", 1)]
            database.sql("INSERT INTO t VALUES (2)")
            assert seen(task.poll(1)) == [("c", 2)]  # the binlog comes by TLS too
        database.sql("DELETE FROM t WHERE id = 2")
    other = known | {"database_ssl_truststore": folder / "other.pem"}
    for more, why in (
        ({"database_ssl_mode": "verify_ca", **other}, "CERTIFICATE_VERIFY_FAILED"),
        ({"database_ssl_mode": "verify-full", "database_hostname": "localhost", **known}, "Hostname mismatch"),
        ({"database_ssl_mode": "disabled"}, "Access denied"),
    ):
        with (
            capturing(database, **more) as task,
            pytest.raises((ConnectError, RetriableError), match=why),
        ):
            eventually(lambda: bool(task.task.poll()), PATIENCE_S, "a refusal")
    with pytest.raises(ConfigError, match="truststore"):
        Task(database, None, database_ssl_mode="verify_ca", database_ssl_truststore=folder / "none")


SIGNALS = "CREATE TABLE signals (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))"
PARTS = "name VARCHAR(9), at DATETIME(6), code BINARY(3), PRIMARY KEY (name, at, code)"


def _signal(database: Database, kind: str, *tables: str) -> None:
    names = [f"{database.name}.{one}" for one in tables]
    data = json.dumps({"data-collections": names, "type": "incremental"})
    database.sql("INSERT INTO signals VALUES (%s, %s, %s)", unique("signal"), kind, data)


def test_an_incremental_snapshot_by_signal(database: Database) -> None:
    database.sql(SIGNALS)
    database.sql(f"CREATE TABLE t (id INT, {PARTS})")
    rows = ", ".join(f"({n}, 'a''{n // 10}', '2026-01-02 03:04:05.5', {n})" for n in range(10, 45))
    database.sql(f"INSERT INTO t VALUES {rows}")
    database.sql("CREATE TABLE nokey (id INT)")
    signals = {"signal_data_collection": f"{database.name}.signals", "incremental_snapshot_chunk_size": 4}
    more = {"snapshot_mode": "no_data", "table_include_list": f"{database.name}.(t|nokey)", **signals}
    with capturing(database, **more) as task:
        eventually(lambda: _is_followed(database), PATIENCE_S, "the reader of the binlog")
        _signal(database, "execute-snapshot", "nokey", "gone", "t")
        found = task.poll(35)
        assert seen(found) == [("r", n) for n in range(10, 45)]
        assert {one.value["source"]["snapshot"] for one in found} == {"incremental"}
        database.sql("INSERT INTO nokey VALUES (1)")
        assert seen(task.poll(1)) == [("c", 1)]
    with capturing(database, found[16].source_offset, **more) as task:  # it goes on after the 17th row
        assert [one for one in seen(task.poll(19)) if one[0] == "r"] == [("r", n) for n in range(27, 45)]


def test_rows_of_an_incremental_snapshot_come_where_they_belong_among_changes(database: Database) -> None:
    """Each change begins with what the topic said before of its row, whether by a change or by a chunk."""
    database.sql(SIGNALS)
    database.sql("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9))")
    rows = ", ".join(f"({n}, 'old')" for n in range(1, 121))
    database.sql(f"INSERT INTO t VALUES {rows}")
    [*_, (file, pos, *_)] = database.sql("SHOW BINARY LOGS")
    offset = {"file": file, "pos": pos, "server_id": 7}
    more = {"signal_data_collection": f"{database.name}.signals", "incremental_snapshot_chunk_size": 7}
    copy: dict[int, Any] = {}
    wrong: list[Any] = []

    def take(one: Record) -> None:
        if one.value is None:
            return
        before, now = (one.value[image] and one.value[image]["name"] for image in ("before", "after"))
        known = copy.get(one.key["id"])
        if known not in (None, now if one.value["op"] == "r" else before):
            wrong.append((one.key["id"], known, before, now))
        copy[one.key["id"]] = now

    def change(ids: range) -> None:
        for n in ids:
            database.sql("UPDATE t SET name = 'new' WHERE id = %s", n)
            database.sql("DELETE FROM t WHERE id = %s", n + 1)

    def equal() -> bool:
        with suppress(RetriableError):
            for one in task.task.poll():
                take(one)
        return {key: name for key, name in copy.items() if name} == dict(database.sql("SELECT id, name FROM t"))

    _signal(database, "execute-snapshot", "t")
    change(range(1, 61, 3))  # the stream is far behind what a chunk has
    with capturing(database, offset, **more) as task:
        eventually(lambda: _is_followed(database), PATIENCE_S, "the reader of the binlog")
        database.sql("FLUSH BINARY LOGS")
        _end_connections(database)
        change(range(61, 121, 3))
        eventually(lambda: equal() and len(copy) == 120, PATIENCE_S)
    assert not wrong


def test_transactions_are_announced_and_counted_also_after_a_restart(database: Database) -> None:
    database.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    more = {"snapshot_mode": "no_data", "provide_transaction_metadata": "true"}
    with capturing(database, **more) as task:
        eventually(lambda: _is_followed(database), PATIENCE_S, "the reader of the binlog")
        database.sql("BEGIN")
        database.sql("INSERT INTO t VALUES (1), (2)")
        database.sql("UPDATE t SET id = 3 WHERE id = 1")
        database.sql("COMMIT")
        records = task.poll(7)
    begin, one, two, deleted, _, created, end = (each.value for each in records)
    assert (begin["status"], end["status"]) == ("BEGIN", "END")
    assert begin["id"] == end["id"] == one["source"]["gtid"] == created["transaction"]["id"]
    assert [each["transaction"]["total_order"] for each in (one, two, deleted, created)] == [1, 2, 3, 4]
    [counted] = end["data_collections"]
    assert (counted["data_collection"], counted["event_count"], end["event_count"]) == (f"{database.name}.t", 4, 4)
    for cut in (1, 5):  # after the first change, and after the last
        with capturing(database, records[cut].source_offset, **more) as task:
            again = task.poll(6 - cut)
        assert [each.topic for each in again] == [each.topic for each in records[cut + 1 :]]
        assert (again[-1].value["status"], again[-1].value["event_count"]) == ("END", 4)


def test_a_statement_of_yours_reads_a_table(database: Database) -> None:
    database.sql("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9))")
    database.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    table = f"{database.name}.t"
    setting = f"snapshot.select.statement.overrides.{table}"
    database.config[setting] = f"SELECT * FROM {table} WHERE name LIKE 'b%'"
    with capturing(database, snapshot_select_statement_overrides=table) as task:
        assert seen(task.poll(1)) == [("r", 2)]
    database.config[setting] = f"SELECT id FROM {table}"
    with (
        capturing(database, snapshot_select_statement_overrides=table) as task,
        pytest.raises(ConnectError, match="does not return its column name"),
    ):
        task.poll(1)


FILES = {"bin.2": 100, "bin.3": 50}
END = Place("bin.3", 50)
OFFSET = {"file": "bin.2", "pos": 90, "server_id": 7}


def test_the_mode_and_the_offset_decide_what_comes_first() -> None:
    def done(mode: str, offset: Any = None, server_id: int = 7) -> Plan:
        return plan(mode, offset, FILES, END, server_id)

    assert done("initial") == done("when_needed") == done("always", OFFSET) == Plan(True)
    assert done("initial", {**OFFSET, COMPLETED: False}) == Plan(True)
    assert done("initial", OFFSET) == done("when_needed", OFFSET) == Plan(False, Place("bin.2", 90))
    assert done("no_data") == Plan(False, END)
    assert done("never") == Plan(False, Place("bin.2", 4))
    for offset, server_id, why in (
        ({**OFFSET, "file": "bin.1"}, 7, "no longer has the file"),
        ({**OFFSET, "pos": 101}, 7, "an older copy"),
        (OFFSET, 8, "of server 7"),
    ):
        with pytest.raises(ConnectError, match=why):
            done("initial", offset, server_id)
        assert done("when_needed", offset, server_id) == Plan(True)


def test_a_binlog_that_says_too_little_is_refused(kind: str, server: str) -> None:
    database = Database(kind, server)
    bad = [("binlog_row_metadata", "MINIMAL", "FULL", "with binlog_row_metadata=FULL")]
    if kind == MYSQL:
        bad.append(("binlog_row_value_options", "PARTIAL_JSON", "''", "if it is empty"))
    for name, value, normal, why in bad:
        database.sql(f"SET GLOBAL {name} = {value}")
        try:
            with capturing(database) as task, pytest.raises(ConnectError, match=why):
                task.poll(1)
        finally:
            database.sql(f"SET GLOBAL {name} = {normal}")
    database.close()


def test_debezium_names_find_the_connectors_and_what_is_missing_is_refused() -> None:
    for name in ("io.debezium.connector.mariadb.MariaDbConnector", "MySql"):
        found = plugins.find(name)
        assert found is not None and found.load().config is connector.MARIADB.config
    config = {"topic.prefix": "s", "database.hostname": "h", "database.user": "u", "database.server.id": "1"}
    with pytest.raises(ConfigError, match=r"snapshot\.max\.threads must be 1"):
        connector.MARIADB.task_configs(config | {"snapshot.max.threads": "2"}, 1)
    with pytest.raises(ConnectError, match="'file' and 'pos'"):
        connector.MARIADB.check_offset(config, {"server": "s"}, {"file": 1})
