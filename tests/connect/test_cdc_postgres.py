"""Change data capture from a real PostgreSQL: snapshot, stream, restarts, signals, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from typing import Any

import pytest

from moldau.connect.connector import SourceContext
from moldau.connect.connectors.cdc.postgres import reading
from moldau.connect.connectors.cdc.postgres.connector import PostgresSource
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.connect.shapes import plain
from moldau.testing import eventually
from tests.services import unique

pytestmark = pytest.mark.needs("postgres")
PATIENCE_S = 120


Sql = Callable[..., list[Any]]


def connected(dsn: str, database: str) -> Any:
    import psycopg2

    found = psycopg2.connect(dsn.replace("dbname=postgres", f"dbname={database}"))
    found.autocommit = True
    return found


def runs(connection: Any) -> Sql:
    def sql(statement: str, *values: Any) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    return sql


class Database:
    """A database of a test's own, and the config of a connector for it."""

    def __init__(self, dsn: str) -> None:
        self.name = unique("cdc").replace("-", "_")
        runs(connected(dsn, "postgres"))(f"CREATE DATABASE {self.name}")
        self.dsn = dsn
        self._connection = connected(dsn, self.name)
        self.sql = runs(self._connection)
        host = dsn.split()[0].partition("=")[2]
        self.slot = f"s_{self.name}"
        self.config = {
            "name": "cdc",
            "topic.prefix": "s",
            "database.hostname": host,
            "database.user": "test",
            "database.dbname": self.name,
            "slot.name": self.slot,
            "retriable.restart.connector.wait.ms": "100",
            "status.update.interval.ms": "100",
        }

    def cursor(self) -> Any:
        return self._connection.cursor()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def database(cdc_postgres: str) -> Iterator[Database]:
    found = Database(cdc_postgres)
    yield found
    found.close()


class Task:
    """A task, with what a worker keeps of it."""

    def __init__(self, database: Database, offset: Any = None, **more: Any) -> None:
        config = database.config | {name.replace("_", "."): str(value) for name, value in more.items()}
        [given] = PostgresSource().task_configs(config, 4)
        self.offset = offset
        self.task = PostgresSource().open(SourceContext(given, lambda _: offset, threading.Event().wait))

    def poll(self, count: int) -> list[Record]:
        """Poll until there are so many records."""
        found: list[Record] = []

        def enough() -> bool:
            with suppress(RetriableError):
                found.extend(self.task.poll())
            return len(found) >= count

        eventually(enough, PATIENCE_S, f"{count} records")
        return found

    def commit(self, records: list[Record]) -> None:
        self.offset = records[-1].source_offset
        self.task.committed()


@contextmanager
def capturing(database: Database, offset: Any = None, **more: Any) -> Iterator[Task]:
    task = Task(database, offset, **more)
    try:
        yield task
    finally:
        task.task.close()


def values(records: list[Record]) -> list[Any]:
    """Operation, key, and the row before and after."""
    found = []
    for one in records:
        value = plain(one.value_schema, one.value)
        key = plain(one.key_schema, one.key)
        found.append((key, value) if value is None else (key, value["op"], value["before"], value["after"]))
    return found


def test_rows_then_every_change_of_them(database: Database) -> None:
    sql = database.sql
    sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    sql("INSERT INTO t VALUES (1, 'a'), (2, E'b\\t\\\\\\n')")
    with capturing(database) as task:
        found = task.poll(2)
        assert sorted(values(found), key=str) == [
            ({"id": 1}, "r", None, {"id": 1, "name": "a"}),
            ({"id": 2}, "r", None, {"id": 2, "name": "b\t\\\n"}),
        ]
        assert [one.value["source"]["snapshot"] for one in found] == ["first", "last"]
        assert (found[0].topic, found[0].source_partition) == ("s.public.t", {"server": "s"})
        sql("INSERT INTO t VALUES (3, 'c')")
        sql("UPDATE t SET name = 'd' WHERE id = 3")
        sql("UPDATE t SET id = 4 WHERE id = 3")
        sql("DELETE FROM t WHERE id = 4")
        found = task.poll(7)
        assert values(found) == [
            ({"id": 3}, "c", None, {"id": 3, "name": "c"}),
            ({"id": 3}, "u", None, {"id": 3, "name": "d"}),
            ({"id": 3}, "d", {"id": 3, "name": None}, None),
            ({"id": 3}, None),
            ({"id": 4}, "c", None, {"id": 4, "name": "d"}),
            ({"id": 4}, "d", {"id": 4, "name": None}, None),
            ({"id": 4}, None),
        ]
        for one in found:
            if one.value is not None:
                one.value.validate()
                assert one.value["source"]["lsn"] == one.source_offset["lsn"] > 0  # type: ignore[index]


def started(database: Database, **more: Any) -> Any:
    """Make a table with a row, and return a task that has read it: from now on everything comes by the stream."""
    database.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    database.sql("INSERT INTO t VALUES (0, 'zero')")
    return capturing(database, **more)


def keys(records: list[Record]) -> list[int]:
    return [one.key["id"] for one in records]


def test_a_restart_goes_on_within_a_transaction(database: Database) -> None:
    sql = database.sql
    with started(database) as task:
        assert values(task.poll(1)) == [({"id": 0}, "r", None, {"id": 0, "name": "zero"})]
        sql("INSERT INTO t SELECT generate_series(1, 50)")
        found = task.poll(50)
    assert keys(found) == list(range(1, 51))
    for at in (0, 10, 49):  # what was committed up to there is not sent again, and the rest is
        sql("INSERT INTO t VALUES (%s)", 1000 + at)
        with capturing(database, found[at].source_offset) as task:
            wanted = [*range(at + 2, 51), *(n for n in (1000, 1010, 1049) if n <= 1000 + at)]
            assert keys(task.poll(len(wanted))) == wanted


def test_rows_of_one_record_of_the_log_are_told_apart(database: Database) -> None:
    with started(database) as task:
        task.poll(1)
        with database.cursor() as cursor:  # COPY inserts many rows with one record
            cursor.copy_expert("COPY t FROM STDIN", StringIO("".join(f"{n}\tx\n" for n in range(1, 101))))
        found = task.poll(100)
    assert len({one.source_offset["lsn"] for one in found}) < 100  # type: ignore[index]
    with capturing(database, found[41].source_offset) as task:
        assert keys(task.poll(58)) == list(range(43, 101))


def test_the_slot_is_told_after_the_commit_alone(database: Database) -> None:
    def confirmed() -> int:
        [[found]] = database.sql(
            "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s", database.slot
        )
        return int(found)

    with started(database) as task:
        task.commit(task.poll(1))
        database.sql("INSERT INTO t VALUES (1)")
        found = task.poll(1)
        lsn = found[0].value["source"]["lsn"]
        database.sql("CREATE TABLE other (id int)")
        assert task.task.poll() == [] and task.task.poll() == []
        assert confirmed() <= lsn
        task.commit(found)
        eventually(lambda: (task.task.poll(), confirmed() > lsn)[1], PATIENCE_S)
        # A table that nobody captures changes: the log before it is not kept.
        [[end]] = database.sql("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
        eventually(lambda: (task.task.poll(), confirmed() >= int(end))[1], PATIENCE_S)
    with capturing(database, found[0].source_offset) as task:
        database.sql("INSERT INTO t VALUES (2)")
        assert keys(task.poll(1)) == [2]


def test_an_interrupted_snapshot_is_taken_again_without_a_gap(database: Database) -> None:
    sql = database.sql
    sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    sql("INSERT INTO t SELECT n, 'x' FROM generate_series(1, 3) n")
    with capturing(database) as task:
        first = task.poll(3)
    sql("DELETE FROM t WHERE id = 1")  # after its row was sent
    with capturing(database, first[0].source_offset) as task:
        again = task.poll(4)
    assert values(again) == [
        ({"id": 2}, "r", None, {"id": 2, "name": "x"}),
        ({"id": 3}, "r", None, {"id": 3, "name": "x"}),
        ({"id": 1}, "d", {"id": 1, "name": None}, None),
        ({"id": 1}, None),
    ]
    with capturing(database, first[-1].source_offset) as task:  # the last row says that it is complete
        assert values(task.poll(2))[0][1] == "d"


def test_large_values_without_change_and_replica_identities(database: Database) -> None:
    sql = database.sql
    big = "".join(chr(ord("a") + n * n % 26) + str(n * 7919) for n in range(4000))
    with started(database) as task:
        task.poll(1)
        sql("ALTER TABLE t ALTER name SET STORAGE EXTERNAL, ADD v int NOT NULL DEFAULT 7, ADD w int NOT NULL DEFAULT 0")
        sql("INSERT INTO t VALUES (1, %s)", big)
        sql("UPDATE t SET v = 1 WHERE id = 1")
        sql("DELETE FROM t WHERE id = 1")
        found = task.poll(4)
        assert found[0].value["after"]["name"] == big
        assert values(found)[1:3] == [
            ({"id": 1}, "u", None, {"id": 1, "name": "__debezium_unavailable_value", "v": 1, "w": 0}),
            ({"id": 1}, "d", {"id": 1, "name": None, "v": 7, "w": 0}, None),
        ]
        sql("ALTER TABLE t REPLICA IDENTITY FULL")
        sql("INSERT INTO t VALUES (1, %s)", big)
        sql("UPDATE t SET v = 1 WHERE id = 1")
        found = task.poll(2)
        assert found[1].value["after"]["name"] == big and found[1].value["before"]["v"] == 7


def test_tables_change_their_form_in_the_stream(database: Database) -> None:
    sql = database.sql
    with started(database) as task:
        task.poll(1)
        sql("INSERT INTO t VALUES (1, 'a')")
        sql("ALTER TABLE t ADD more int DEFAULT 5")
        sql("INSERT INTO t VALUES (2, 'b', 6)")
        sql("ALTER TABLE t RENAME name TO title")
        sql("INSERT INTO t VALUES (3, 'c', 7)")
        sql("ALTER TABLE t DROP title")
        sql("INSERT INTO t VALUES (4, 8)")
        sql("CREATE TABLE without_key (a int)")
        sql("INSERT INTO without_key VALUES (1)")
        found = task.poll(5)
        assert [one[3] for one in values(found)] == [
            {"id": 1, "name": "a"},
            {"id": 2, "name": "b", "more": 6},
            {"id": 3, "title": "c", "more": 7},
            {"id": 4, "more": 8},
            {"a": 1},
        ]
        assert found[4].key_schema is None
        sql("DROP TABLE t")
        sql("INSERT INTO without_key VALUES (2)")
        assert values(task.poll(1))[0][3] == {"a": 2}


def test_truncates_messages_transactions_and_heartbeats(database: Database) -> None:
    sql = database.sql
    more = {"skipped_operations": "none", "provide_transaction_metadata": "true"}
    with started(database, **more) as task:
        task.poll(1)
        sql("TRUNCATE t")
        sql("SELECT pg_logical_emit_message(true, 'hello', 'world')")
        sql("INSERT INTO t VALUES (1), (2)")
        found = task.poll(10)
        assert [one.topic for one in found] == [
            *("s.transaction", "s.public.t", "s.transaction"),
            *("s.transaction", "s.message", "s.transaction"),
            *("s.transaction", "s.public.t", "s.public.t", "s.transaction"),
        ]
        assert values(found[1:2]) == [(None, "t", None, None)]
        assert (found[4].key["prefix"], found[4].value["message"]["content"]) == ("hello", b"world")
        begin, one, two, end = found[6:]
        assert (begin.value["status"], end.value["status"], end.value["event_count"]) == ("BEGIN", "END", 2)
        orders = [each.value["transaction"]["total_order"] for each in (one, two)]
        sql("UPDATE t SET id = 3 WHERE id = 2")  # two events: a delete and a create
        moved = task.poll(5)
        orders += [each.value["transaction"]["total_order"] for each in (moved[1], moved[3])]
        assert orders == [1, 2, 1, 2] and one.value["transaction"]["id"] == begin.value["id"] == end.value["id"]
    with capturing(database, two.source_offset, **more) as task:  # the end was not committed
        [first, *_] = task.poll(1)
        assert (first.topic, first.value["status"], first.value["id"]) == ("s.transaction", "END", end.value["id"])
    with capturing(database, moved[-1].source_offset, heartbeat_interval_ms=1, **more) as task:
        [beat, *_] = task.poll(1)
        assert (beat.topic, beat.key["serverName"]) == ("__debezium-heartbeat.s", "s")
        assert beat.source_offset["lsn"] >= two.source_offset["lsn"]  # type: ignore[index]


def test_an_incremental_snapshot_by_signal(database: Database) -> None:
    sql = database.sql
    sql("CREATE TABLE signals (id text PRIMARY KEY, type text, data text)")
    chunks = {"signal_data_collection": "public.signals", "incremental_snapshot_chunk_size": 10}
    more = {"snapshot_mode": "no_data", "table_include_list": "public.t", **chunks}
    sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    sql("INSERT INTO t SELECT n, 'old' FROM generate_series(1, 35) n")
    execute = '{"data-collections": ["public.t"], "type": "incremental"}'
    with capturing(database, **more) as task:
        eventually(lambda: sql("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active", database.slot))
        sql("INSERT INTO signals VALUES ('1', 'execute-snapshot', %s)", execute)
        found = task.poll(35)
        assert keys(found) == list(range(1, 36))
        assert {one.value["source"]["snapshot"] for one in found} == {"incremental"}
        assert {one.value["op"] for one in found} == {"r"}
    with capturing(database, found[16].source_offset, **more) as task:  # it goes on after the 17th row
        assert keys(task.poll(18)) == list(range(18, 36))


def test_changes_during_an_incremental_snapshot_win(database: Database) -> None:
    sql = database.sql
    sql("CREATE TABLE signals (id text PRIMARY KEY, type text, data text)")
    sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    sql("INSERT INTO t SELECT n, 'old' FROM generate_series(1, 300) n")
    more = {"signal_data_collection": "public.signals", "incremental_snapshot_chunk_size": 7}
    execute = '{"data-collections": ["public.t"]}'
    with capturing(database, snapshot_mode="no_data", **more) as task:
        eventually(lambda: sql("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active", database.slot))
        sql("INSERT INTO signals VALUES ('1', 'execute-snapshot', %s)", execute)
        for n in range(1, 301, 3):
            sql("UPDATE t SET name = 'new' WHERE id = %s", n)
            sql("DELETE FROM t WHERE id = %s", n + 1)
        sql("INSERT INTO t VALUES (1000, 'end')")
        copy: dict[int, Any] = {}

        def equal() -> bool:
            for one in task.task.poll():
                copy[one.key["id"]] = one.value and one.value["after"] and one.value["after"]["name"]
            return {key: name for key, name in copy.items() if name} == dict(sql("SELECT id, name FROM t"))

        eventually(equal, PATIENCE_S)


def test_parallel_slices_read_each_row_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LEAST_BLOCKS", 3)
    database.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    database.sql("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 5000) n")
    database.sql("CREATE TABLE u (id int PRIMARY KEY)")
    database.sql("INSERT INTO u VALUES (1), (2)")
    with capturing(database, snapshot_max_threads=3, snapshot_mode="initial_only") as task:
        found = task.poll(5002)
        assert sorted(keys(found[:5000])) == list(range(1, 5001))
        marks = [one.value["source"]["snapshot"] for one in found]
        assert (marks[0], marks[4999], marks[5000], marks[5001]) == (
            "first",
            "last_in_data_collection",
            "first_in_data_collection",
            "last",
        )
        assert not database.sql("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", database.slot)


def test_slices_cover_a_table() -> None:
    assert reading.slices(999, 8) == [""]
    assert reading.slices(2500, 8) == ["ctid >= '(0,0)' AND ctid < '(1250,0)'", "ctid >= '(1250,0)'"]


def test_a_server_that_restarts_is_connected_again(database: Database) -> None:
    with started(database) as task:
        task.poll(1)
        database.sql("INSERT INTO t VALUES (1)")
        task.poll(1)
        database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_replication WHERE application_name = 'moldau'")
        database.sql("INSERT INTO t VALUES (2)")
        assert keys(task.poll(1)) == [2]


def failure(database: Database, offset: Any = None, **more: Any) -> str:
    with capturing(database, offset, **more) as task:
        found: list[str] = []

        def failed() -> bool:
            try:
                task.task.poll()
            except RetriableError:
                return False
            except (ConnectError, ConfigError) as error:
                found.append(str(error))
            return bool(found)

        eventually(failed, PATIENCE_S)
        return found[0]


def test_what_was_lost_is_refused_with_a_sentence(database: Database) -> None:
    sql = database.sql
    with started(database) as task:
        task.poll(1)
        sql("INSERT INTO t VALUES (1)")
        offset = dict(task.poll(1)[0].source_offset or {})
    assert "older backup" in failure(database, {**offset, "lsn": 1 << 60})
    assert "another database server" in failure(database, {**offset, "system": "1"})
    eventually(lambda: not sql("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active", database.slot))
    sql("SELECT pg_drop_replication_slot(%s)", database.slot)
    refused = failure(database, offset)
    assert f"slot {database.slot} is gone" in refused and "snapshot.mode=when_needed" in refused
    with capturing(database, offset, snapshot_mode="when_needed") as task:
        assert keys(task.poll(2)) == [0, 1]
    assert "nothing to publish" in failure(
        database, table_include_list="a.b", publication_autocreate_mode="filtered", publication_name="p2"
    )
    assert "no publication" in failure(database, publication_autocreate_mode="disabled", publication_name="p3")


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("slot.name", "No", "small letters"),
        ("table.include.list", "(", "regular expression"),
        ("skipped.operations", "x", "one of c, u, d, t, none"),
        ("plugin.name", "decoderbufs", "must be one of: pgoutput"),
        ("snapshot.mode", "custom", "must be one of"),
        ("message.key.columns", "t", "separate tables"),
    ],
)
def test_settings_are_checked(setting: str, value: str, why: str) -> None:
    config = {"topic.prefix": "s", "database.hostname": "h", "database.user": "u", "database.dbname": "d"}
    with pytest.raises(ConfigError, match=why):
        PostgresSource().task_configs({**config, setting: value}, 1)
