"""The JDBC connectors against real databases: SQLite always, PostgreSQL and MariaDB where there are servers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.connector import SinkContext, SourceContext
from moldau.connect.connectors.databases import Database, read_url
from moldau.connect.connectors.jdbc_sink import JdbcSink
from moldau.connect.connectors.jdbc_source import JdbcSource
from moldau.connect.data import DECIMAL, STRING, Record, Schema, Type
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.connect.shapes import Shape, plain
from moldau.testing import Broker, eventually
from moldau.testing.connectors import connect
from tests.connect.databases import mariadb
from tests.services import unique
from tests.spark.postgres import postgres

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
SQL = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Servers that tests of this module have started."""
    from contextlib import ExitStack

    class Started(dict[str, str]):
        def __missing__(self, name: str) -> str:
            dsn = stack.enter_context(postgres() if name == "postgres" else mariadb())
            host, user, database = (one.partition("=")[2] for one in dsn.split())
            option = "host" if name == "postgres" else "unix_socket"
            scheme = "postgresql" if name == "postgres" else "mariadb"
            self[name] = f"jdbc:{scheme}:///{database}?{option}={host}&user={user}"
            return self[name]

    with ExitStack() as stack:
        yield Started()


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.needs("postgres")),
        pytest.param("mariadb", marks=pytest.mark.needs("mariadb")),
    ]
)
def url(request: pytest.FixtureRequest, servers: dict[str, str], tmp_path: Path) -> str:
    return f"jdbc:sqlite:{tmp_path / 'x.db'}" if request.param == "sqlite" else servers[request.param]


@pytest.fixture
def sql(url: str) -> Iterator[SQL]:
    """Runs a statement against the database."""
    parsed = JdbcSource.config.parse({"connection.url": url, "mode": "bulk", "topic.prefix": ""})
    database = Database(parsed, lambda _: False)

    def run(statement: str) -> list[Any]:
        with database.cursor() as cursor:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    yield run
    database.close()


def reader(url: str, table: str, offset: Any = None, **config: Any) -> Any:
    given = {"connection.url": url, "topic.prefix": "p-", "table.whitelist": table, "poll.interval.ms": "0"}
    given |= {key.replace("_", "."): str(value) for key, value in config.items()}
    given = {name: text for name, text in given.items() if text}
    [task] = JdbcSource().task_configs(given, 1)
    return JdbcSource().open(SourceContext(task, lambda _: offset, lambda _: False))


def read(task: Any, count: int, polls: int = 50) -> list[Record]:
    """Poll until there are so many records; then see that no more come."""
    found: list[Record] = []
    for _ in range(polls):
        found += task.poll()
        if len(found) >= count:
            break
    for _ in range(3):
        found += task.poll()
    assert len(found) == count, [one.value for one in found]
    return found


def schema_of(one: Record) -> Schema:
    assert one.value_schema is not None
    return one.value_schema


def values(records: list[Record], *names: str) -> list[Any]:
    return [tuple(one.value.get(name) for name in names) for one in records]


def test_new_rows_are_found_by_a_number_that_grows(url: str, sql: SQL) -> None:
    table = unique("t").replace("-", "_")
    sql(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, name VARCHAR(20))")
    sql(f"INSERT INTO {table} VALUES (1, 'a'), (5, NULL), (3, 'c')")
    task = reader(url, table, mode="incrementing", batch_max_rows=2)
    records = read(task, 3)
    assert values(records, "id", "name") == [(1, "a"), (3, "c"), (5, None)]
    assert records[0].topic == f"p-{table}" and schema_of(records[0]).name == table
    assert [one.source_offset for one in records] == [{"incrementing": n} for n in (1, 3, 5)]
    sql(f"INSERT INTO {table} VALUES (4, 'late'), (9, 'new')")
    assert values(read(task, 1), "id") == [(9,)]
    task.close()
    other = reader(url, table, {"incrementing": 3}, mode="incrementing")
    assert values(read(other, 3), "id") == [(4,), (5,), (9,)]
    other.close()


def test_changed_rows_are_found_by_their_time(url: str, sql: SQL) -> None:
    table = unique("t").replace("-", "_")
    kind = "DATETIME(6)" if "mariadb" in url else "TIMESTAMP"
    sql(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, made {kind} NOT NULL, changed {kind} NULL)")
    rows = "(1, '2026-01-01 00:00:01', NULL), (2, '2026-01-01 00:00:02.5', NULL), (3, '2026-01-01 00:00:02.5', NULL)"
    sql(f"INSERT INTO {table} VALUES {rows}")
    more = {"timestamp_column_name": "changed,made", "batch_max_rows": 1}
    plain_time = reader(url, table, mode="timestamp", **more)
    both = reader(url, table, mode="timestamp+incrementing", incrementing_column_name="id", **more)
    first = read(plain_time, 3)
    assert values(first, "id")[0] == (1,) and {one.value.get("id") for one in first[1:]} == {2, 3}
    assert first[1].source_offset == first[2].source_offset  # rows of the same time stay together
    assert values(read(both, 3), "id") == [(1,), (2,), (3,)]
    sql(f"UPDATE {table} SET changed = '2026-01-01 00:00:03' WHERE id = 1")
    for task in (plain_time, both):
        assert values(read(task, 1), "id") == [(1,)]
        task.close()
    again = reader(
        url, table, first[0].source_offset, mode="timestamp+incrementing", incrementing_column_name="id", **more
    )
    assert values(read(again, 3), "id") == [(2,), (3,), (1,)]
    again.close()


def test_bulk_reads_everything_each_time_and_a_query_reads_what_it_says(url: str, sql: SQL) -> None:
    table = unique("t").replace("-", "_")
    sql(f"CREATE TABLE {table} (id INTEGER, price DECIMAL(10,2))")
    sql(f"INSERT INTO {table} VALUES (1, 1.5), (2, 2.25)")
    task = reader(url, table, mode="bulk", poll_interval_ms=60_000)
    records = read(task, 2)
    assert records[0].source_partition is None
    assert schema_of(records[0]).by_name["price"].schema.name == DECIMAL
    assert values(records, "price") == [(Decimal("1.50"),), (Decimal("2.25"),)]
    task.close()
    query = f"SELECT * FROM (SELECT id * 10 AS n FROM {table} WHERE 'a%' = 'a%') q"
    asked = reader(url, "", mode="incrementing", incrementing_column_name="n", query=query)
    assert values(read(asked, 2), "n") == [(10,), (20,)]
    sql(f"INSERT INTO {table} VALUES (3, 3)")
    assert values(read(asked, 1), "n") == [(30,)]
    asked.close()


def test_tables_come_and_go(url: str, sql: SQL) -> None:
    first, second = unique("t").replace("-", "_"), unique("t").replace("-", "_")
    sql(f"CREATE TABLE {first} (id INTEGER PRIMARY KEY)")
    sql(f"INSERT INTO {first} VALUES (1)")
    task = reader(url, f"{first},{second}", mode="incrementing", table_poll_interval_ms=0)
    read(task, 1)
    sql(f"CREATE TABLE {second} (id INTEGER PRIMARY KEY)")
    sql(f"INSERT INTO {second} VALUES (7)")
    assert [one.topic for one in read(task, 1)] == [f"p-{second}"]
    sql(f"DROP TABLE {first}")
    sql(f"INSERT INTO {second} VALUES (8)")
    assert values(read(task, 1), "id") == [(8,)]
    task.close()


@pytest.mark.parametrize(("mapping", "kind"), [("none", Type.BYTES), ("best_fit", Type.FLOAT64)])
def test_columns_have_the_types_of_connect(url: str, sql: SQL, mapping: str, kind: Type) -> None:
    table = unique("t").replace("-", "_")
    when = "DATETIME(3)" if "mariadb" in url else "TIMESTAMP"
    columns = (
        f"id BIGINT NOT NULL, ok BOOLEAN, day DATE, at TIME, moment {when}, price DECIMAL(8,3), r DOUBLE PRECISION"
    )
    sql(f"CREATE TABLE {table} ({columns}, t TEXT)")
    sql(
        f"INSERT INTO {table} VALUES "
        "(5000000000, TRUE, '2026-01-02', '03:04:05', '2026-01-02 03:04:05.678', 1.25, 0.5, 'ä')"
    )
    task = reader(
        url, table, mode="bulk", numeric_mapping=mapping, poll_interval_ms=60_000, db_timezone="Europe/Prague"
    )
    [record] = read(task, 1)
    task.close()
    schema = schema_of(record)
    assert schema.by_name["price"].schema.type is kind
    assert not schema.by_name["id"].schema.optional and schema.by_name["t"].schema.optional
    found = plain(schema, record.value)
    assert found.pop("moment") == NOW.replace(hour=2)  # in UTC
    assert found.pop("ok") in (True, 1)
    price = Decimal("1.250") if mapping == "none" else 1.25
    expected = {"id": 5_000_000_000, "day": date(2026, 1, 2), "at": time(3, 4, 5), "price": price, "r": 0.5, "t": "ä"}
    assert found == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mode": "timestamp"}, "timestamp.column.name"),
        ({"mode": "sometimes"}, "String must be one of"),
        ({"mode": "incrementing", "query": "SELECT 1"}, "incrementing.column.name"),
        ({"mode": "bulk", "query": "SELECT 1", "table.whitelist": "t"}, "exclude each other"),
        ({"mode": "bulk", "connection.url": "jdbc:oracle:x"}, "jdbc:sqlite:"),
        ({"mode": "bulk", "db.timezone": "Nowhere/X"}, "no such time zone"),
    ],
)
def test_settings_that_make_no_sense_are_refused(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        JdbcSource().task_configs({"connection.url": "jdbc:sqlite:x", "topic.prefix": "", **config}, 1)


def test_a_column_that_may_be_null_is_refused_for_a_mode(url: str, sql: SQL) -> None:
    table = unique("t").replace("-", "_")
    sql(f"CREATE TABLE {table} (id INTEGER)")
    task = reader(url, table, mode="incrementing", incrementing_column_name="id")
    with pytest.raises(ConnectError, match="may be null"):
        read(task, 1)
    task.close()


def test_urls_are_read() -> None:
    place = read_url("jdbc:postgresql://db.example:6543/shop%20x?user=u&ssl=true", {"password": "p"})
    assert (place.host, place.port, place.database) == ("db.example", 6543, "shop x")
    assert place.options == {"user": "u", "ssl": "true", "password": "p"}
    for wrong in ("", "postgresql://x", "jdbc:h2:mem", "jdbc:postgresql://x:port/y"):
        with pytest.raises(ConfigError):
            read_url(wrong, {})


# The sink.


class Writer:
    """A task of the sink, and what it refused."""

    def __init__(self, url: str, table: str, tolerates: bool = True, **config: Any) -> None:
        self.refused: list[tuple[Any, str]] = []
        given = {"connection.url": url, "name": "s", "table.name.format": table, "retry.backoff.ms": "0"}
        given |= {key.replace("_", "."): str(value) for key, value in config.items()}
        [task] = JdbcSink().task_configs(given, 1)

        def report(record: Record, error: Exception) -> None:
            if not tolerates:
                raise ConnectError("Tolerance exceeded") from error
            self.refused.append((record.offset, str(error)))

        self.task = JdbcSink().open(SinkContext(task, report, lambda _: False))

    def put(self, *rows: Any, first: int = 0) -> None:
        self.task.put([record(key, value, first + n) for n, (key, value) in enumerate(rows)])


def record(key: Any, value: Any, offset: int) -> Record:
    schema, made = Shape().take(value)
    key_schema = STRING if isinstance(key, str) else None
    return Record("t", 0, key_schema, key, schema, made, NOW.timestamp(), offset=offset)  # type: ignore[arg-type]


def test_rows_are_upserted_and_deleted_in_a_table_that_grows(url: str, sql: SQL) -> None:
    table = unique("t").replace("-", "_")
    more: dict[str, Any] = {
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "pk.fields": "id",
        "delete.enabled": "true",
    }
    one = Writer(url, table, **more, auto_create=True, auto_evolve=True)
    one.put(("a", {"n": 1, "f": 0.5}), ("b", {"n": 2, "f": 1.0}), ("a", {"n": 3, "f": 0.5}))
    full = {"n": 4, "f": 0.0, "when": NOW, "price": Decimal("1.25"), "day": date(2026, 1, 2)}
    one.put(("c", full), ("b", None), first=3)
    rows = sql(f"SELECT id, n, f FROM {table} ORDER BY id")
    assert rows == [("a", 3, 0.5), ("c", 4, 0.0)]
    [(when, price)] = sql(f"SELECT {quoted(url, 'when')}, price FROM {table} WHERE id = 'c'")
    assert str(when)[:23] == "2026-01-02 03:04:05.678" and Decimal(str(price)) == Decimal("1.25")
    assert one.refused == []
    one.task.close()


def quoted(url: str, name: str) -> str:
    return read_url(url, {}).dialect.quoted(name)


def test_a_row_that_the_database_refuses_is_left_out_and_the_others_stay(url: str, sql: SQL) -> None:
    table = unique("t").replace("-", "_")
    sql(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
    one = Writer(url, table, offsets_table=f"{table}_o")
    one.task.open([("t", 0)])
    good = [(None, {"id": n, "n": n}) for n in range(5)]
    one.put(*good[:3], (None, {"id": 1, "n": 9}), ("k", None), (None, {"id": 7, "n": [1]}), *good[3:])
    assert sql(f"SELECT id, n FROM {table} ORDER BY id") == [(n, n) for n in range(5)]
    assert [offset for offset, _ in one.refused] == [4, 5, 3]
    strict = Writer(url, table, tolerates=False)
    with pytest.raises(ConnectError, match="Tolerance exceeded"):
        strict.put((None, {"id": 8, "n": 8}), (None, {"id": 1, "n": 1}))
    assert sql(f"SELECT COUNT(*) FROM {table}") == [(5,)]
    for task in (one, strict):
        task.task.close()


def test_each_record_is_written_once_whatever_is_put_again(url: str, sql: SQL) -> None:
    table = unique("t").replace("-", "_")
    one = Writer(url, table, auto_create=True, offsets_table=f"{table}_o")
    assert one.task.open([("t", 0), ("t", 1)]) == {}
    one.put((None, {"n": 1}), (None, {"n": 2}), first=10)
    zombie = Writer(url, table, offsets_table=f"{table}_o")
    assert zombie.task.open([("t", 0)]) == {("t", 0): 12}
    one.put((None, {"n": 2}), (None, {"n": 3}), first=11)  # the first of them is there already
    assert sql(f"SELECT n FROM {table} ORDER BY n") == [(1,), (2,), (3,)]
    with pytest.raises(ConnectError, match="Another task has written t-0"):
        zombie.put((None, {"n": 3}), first=12)
    assert sql(f"SELECT COUNT(*) FROM {table}") == [(3,)]
    successor = Writer(url, table, offsets_table=f"{table}_o")
    assert successor.task.open([("t", 0)]) == {("t", 0): 13}
    for task in (one, zombie, successor):
        task.task.close()


def test_updates_and_keys_of_kafka_and_of_the_value(url: str, sql: SQL) -> None:
    table = unique("t").replace("-", "_")
    of_kafka = Writer(url, f"{table}_k", auto_create=True, pk_mode="kafka")
    of_kafka.put((None, {"n": 1}), (None, {"n": 2}))
    place = "__connect_topic, __connect_partition, __connect_offset, n"
    assert sql(f"SELECT {place} FROM {table}_k ORDER BY n") == [("t", 0, 0, 1), ("t", 0, 1, 2)]
    sql(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, n INTEGER)")
    sql(f"INSERT INTO {table} VALUES (1, 1)")
    update = Writer(url, table, insert_mode="update", pk_mode="record_value", pk_fields="id")
    update.put((None, {"id": 1, "n": 5}), (None, {"id": 2, "n": 6}))
    assert sql(f"SELECT id, n FROM {table}") == [(1, 5)]
    for task in (of_kafka, update):
        task.task.close()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"insert.mode": "upsert"}, "requires key field names"),
        ({"delete.enabled": "true", "pk.mode": "record_value"}, "must be 'record_key'"),
        ({"pk.mode": "kafka", "pk.fields": "a"}, "three pk.fields"),
    ],
)
def test_settings_of_the_sink_that_make_no_sense_are_refused(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        JdbcSink().task_configs({"connection.url": "jdbc:sqlite:x", **config}, 1)


def test_missing_tables_and_columns_are_named(tmp_path: Path) -> None:
    url = f"jdbc:sqlite:{tmp_path / 'x.db'}"
    with pytest.raises(ConnectError, match="auto-creation is disabled"):
        Writer(url, "gone").put((None, {"n": 1}))
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        database.execute("CREATE TABLE t (n INTEGER)")
    with pytest.raises(ConnectError, match=r"missing fields \(m\)"):
        Writer(url, "t").put((None, {"n": 1, "m": 1}))


def test_a_database_that_is_away_is_tried_again_and_then_given_up() -> None:
    url = "jdbc:postgresql://127.0.0.1:1/x"
    one = Writer(url, "t", max_retries=1, connection_attempts=1)
    with pytest.raises(RetriableError):
        one.put((None, {"n": 1}))
    with pytest.raises(ConnectError, match="also after retries"):
        one.put((None, {"n": 1}))


def test_rows_go_from_one_table_through_a_topic_into_another(kafka_shared: Broker, tmp_path: Path) -> None:
    """The same database at both ends, in a worker."""
    file, prefix = tmp_path / "x.db", unique("db")
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT)")
        database.executemany("INSERT INTO orders VALUES (?, ?)", [(n, f"city {n}") for n in range(300)])
        where = {"connection.url": f"jdbc:sqlite:{file}"}
        converter = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
        with connect(kafka_shared.bootstrap_servers) as worker:
            source = {
                **where,
                **converter,
                "mode": "incrementing",
                "topic.prefix": f"{prefix}-",
                "poll.interval.ms": 50,
            }
            name = worker.run("JdbcSource", {**source, "table.whitelist": "orders"})
            sink = {**where, **converter, "topics": f"{prefix}-orders", "table.name.format": "copy"}
            sink |= {"auto.create": "true", "insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id"}
            worker.run("JdbcSinkConnector", {**sink, "offsets.table": "offsets"})

            def copied() -> list[Any]:
                there = database.execute("SELECT name FROM sqlite_master WHERE name = 'copy'").fetchall()
                return database.execute("SELECT * FROM copy ORDER BY id").fetchall() if there else []

            eventually(lambda: len(copied()) == 300)
            database.execute("INSERT INTO orders VALUES (1000, 'late')")
            eventually(lambda: len(copied()) == 301)
            assert copied() == database.execute("SELECT * FROM orders ORDER BY id").fetchall()
            offset = {"partition": {"protocol": "1", "table": "orders"}, "offset": {"incrementing": 1000}}
            eventually(lambda: worker.offsets(name) == [offset])
