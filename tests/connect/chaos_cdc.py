"""Kills under CDC -> topic -> table: `python -m tests.connect.chaos_cdc --rounds 20 --page docs/connect/chaos-cdc.md`.

A table of PostgreSQL, MariaDB or MySQL is captured into a topic, from which three sinks make copies: a table of that
server (JDBC), a Delta table and an Iceberg table. In each round transactions insert, update and delete rows, and
something is killed meanwhile: a worker, the broker, or the database, which is source and target at once. After each
round each copy must equal the source table, and the topic must have each change once: a row counts its changes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from moldau.testing import Broker, broker, eventually
from tests.connect.databases import MARIADB, MYSQL, Server, server_of
from tests.connect.running import BROKER, settings
from tests.connect.test_cdc_mysql import BINLOG, SOURCES
from tests.connect.workers import Followed, Workers, workers
from tests.spark.postgres import postgres

WORKERS, PATIENCE_S = 2, 400.0
TOPIC = "s.shop.t"
RESTARTS = {"errors.restart.max": "1000", "errors.restart.delay.ms": "500"}
WAL = {"wal_level": "logical"}
TABLE = "CREATE TABLE shop.t (id INT PRIMARY KEY, version INT NOT NULL, word VARCHAR(40))"
Row = tuple[int, int, str]


class Postgres:
    """PostgreSQL as source and target."""

    name = "PostgreSQL"

    def __init__(self, dsn: str) -> None:
        self._dsn, self._folder = dsn, Path(dsn.split()[0].removeprefix("host="))

    def connect(self) -> Any:
        return import_module("psycopg").connect(self._dsn)

    def prepare(self) -> None:
        with self.connect() as line:
            line.execute("CREATE SCHEMA shop")
            line.execute(TABLE)

    def kill(self) -> None:
        """Stop at once, without a checkpoint: it recovers from its log."""
        self._control("--mode", "immediate", "stop")

    def start(self) -> None:
        given = {"listen_addresses": "", "unix_socket_directories": str(self._folder), "fsync": "off", **WAL}
        options = " ".join(f"-c {name}={value}" for name, value in given.items())
        self._control("--log", str(self._folder / "log"), "--options", options, "start")

    def _control(self, *words: str) -> None:
        data = self._folder / "data"
        who: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}
        command = ["pg_ctl", "--pgdata", str(data), "--wait", "--timeout", "240", *words]
        subprocess.run(command, check=True, cwd=data, stdout=subprocess.DEVNULL, **who)

    def source(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": str(self._folder),
            "database.user": "test",
            "database.dbname": "postgres",
        }

    def url(self) -> str:
        return f"jdbc:postgresql:///postgres?host={self._folder}&user=test"


class OfBinlog:
    """MariaDB or MySQL as source and target."""

    def __init__(self, kind: str, server: Server) -> None:
        self._kind, self._server, self.kill, self.start = kind, server, server.kill, server.start
        self.name = {MARIADB: "MariaDB", MYSQL: "MySQL"}[kind]

    def connect(self) -> Any:
        return import_module("pymysql").connect(unix_socket=self._server.socket, user="root", database="shop")

    def prepare(self) -> None:
        with self.connect() as line, line.cursor() as cursor:
            cursor.execute(TABLE)

    def source(self) -> dict[str, str]:
        return {
            "connector.class": SOURCES[self._kind].task_class.removesuffix("Task"),
            "database.hostname": self._server.socket,
            "database.user": "root",
            "database.server.id": "4242",
        }

    def url(self) -> str:
        return f"jdbc:{self._kind}:///shop?unix_socket={self._server.socket}&user=root"


Database = Postgres | OfBinlog


@contextmanager
def running(name: str) -> Iterator[Database]:
    if name == "postgres":
        with postgres(**WAL) as dsn:
            yield Postgres(dsn)
    else:
        with server_of(name, *BINLOG, "--server-id=7") as server:
            yield OfBinlog(name, server)


def connectors(database: Database, folder: Path) -> dict[str, dict[str, str]]:
    again = {"retriable.restart.connector.wait.ms": "500", "table.include.list": r"shop\.t", "topic.prefix": "s"}
    sink = {
        "topics": TOPIC,
        "transforms": "row",
        "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.row.drop.tombstones": "false",
    }
    waits = {"max.retries": "1000", "retry.backoff.ms": "500", "connection.attempts": "1000"}
    return {
        "changes": {**database.source(), **again},
        "jdbc": {
            "connector.class": "JdbcSink",
            "connection.url": database.url(),
            "connection.backoff.ms": "500",
            "table.name.format": "copy",
            "auto.create": "true",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
            "offsets.table": "moldau_offsets",
            **waits,
            **sink,
        },
        "delta": {
            "connector.class": "DeltaSink",
            "delta.table": str(folder / "delta"),
            "delta.auto-create-enabled": "true",
            "delta.upsert-mode-enabled": "true",
            "delta.id-columns": "id",
            "delta.commit.interval-ms": "1000",
            **sink,
        },
        "iceberg": {
            "connector.class": "IcebergSink",
            "iceberg.tables": "db.t",
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.upsert-mode-enabled": "true",
            "iceberg.tables.default-id-columns": "id",
            "iceberg.control.commit.interval-ms": "1000",
            "iceberg.catalog.type": "sql",
            "iceberg.catalog.uri": f"sqlite:///{folder}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
            **sink,
        },
    }


@dataclass(slots=True)
class World:
    """All that runs, and what was changed."""

    kafka: Broker
    group: Workers
    database: Database
    folder: Path
    size: int
    next_id: int = 1
    kills: Counter[str] = field(default_factory=Counter)

    def change(self, chance: random.Random, is_over: threading.Event) -> None:
        """Run transactions; one whose outcome is not known is over, and the next one sees what there is."""
        done = 0
        while done < self.size and not is_over.is_set():
            try:
                with self.database.connect() as line:
                    while done < self.size:
                        self._transaction(line, chance)
                        done += 1
            except Exception as error:
                if type(error).__name__ not in ("OperationalError", "AdminShutdown", "InterfaceError"):
                    raise
                time.sleep(0.1)

    def _transaction(self, line: Any, chance: random.Random) -> None:
        with line.cursor() as cursor:
            for _ in range(chance.randint(1, 20)):
                word = f"w{chance.random()}"
                if chance.random() < 0.5:
                    cursor.execute("INSERT INTO shop.t VALUES (%s, 0, %s)", (self.next_id, word))
                    self.next_id += 1
                    continue
                one = chance.randrange(self.next_id)
                if chance.random() < 0.3:
                    cursor.execute("DELETE FROM shop.t WHERE id = %s", (one,))
                else:
                    cursor.execute("UPDATE shop.t SET version = version + 1, word = %s WHERE id = %s", (word, one))
        line.commit()

    # The source and its copies.

    def rows(self, table: str) -> list[Row]:
        with self.database.connect() as line, line.cursor() as cursor:
            cursor.execute(f"SELECT id, version, word FROM {table} ORDER BY id")
            return [tuple(row) for row in cursor.fetchall()]

    def jdbc(self) -> list[Row]:
        return self.rows("copy")

    def delta(self) -> list[Row]:
        return _sorted(import_module("deltalake").DeltaTable(self.folder / "delta").to_pyarrow_table())

    def iceberg(self) -> list[Row]:
        given = {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db"}
        catalog = import_module("pyiceberg.catalog").load_catalog("iceberg", **given)
        return _sorted(catalog.load_table("db.t").scan().to_arrow())

    # Faults.

    def kill_worker(self, chance: random.Random) -> None:
        number = chance.randrange(WORKERS)
        self.group.kill(number)
        time.sleep(chance.random())
        self.group.start(number)

    def kill_broker(self, chance: random.Random) -> None:
        self.kafka.kill()
        time.sleep(chance.random() * 2)
        self.kafka.start()

    def kill_database(self, chance: random.Random) -> None:
        self.database.kill()
        time.sleep(chance.random())
        self.database.start()


FAULTS: dict[str, Callable[[World, random.Random], None]] = {
    "worker": World.kill_worker,
    "broker": World.kill_broker,
    "database": World.kill_database,
}
COPIES: dict[str, Callable[[World], list[Row]]] = {"JDBC": World.jdbc, "Delta": World.delta, "Iceberg": World.iceberg}


def _sorted(table: Any) -> list[Row]:
    return sorted((row["id"], row["version"], row["word"]) for row in table.to_pylist())


def differences(world: World) -> dict[str, str]:
    """Return which copies differ from the source, and how; a copy that cannot be read yet differs too."""
    found: dict[str, str] = {}
    try:
        source = set(world.rows("shop.t"))
    except Exception as error:
        return {"source": f"{error}"}
    for name, read in COPIES.items():
        try:
            rows = read(world)
        except Exception as error:  # a table that does not exist yet, a server that is starting
            found[name] = f"{type(error).__name__}: {error}"[:300]
            continue
        if len(rows) != len(source) or set(rows) != source:
            lost, more = len(source - set(rows)), len(rows) - len(source & set(rows))
            found[name] = f"{lost} rows lack, {more} are too many"
    return found


def changes(bootstrap_servers: str) -> Iterator[Any]:
    """Return the changes in the topic."""
    followed = Followed(bootstrap_servers, [TOPIC])
    try:
        for value in filter(None, followed.read_all()[TOPIC]):
            yield json.loads(value)["payload"]
    finally:
        followed.close()


def counted(bootstrap_servers: str) -> Counter[tuple[str, int, int]]:
    """Count the changes in the topic: operation, row and version of the row."""
    rows = ((change["op"], change["after"] or change["before"]) for change in changes(bootstrap_servers))
    return Counter((op, row["id"], row["version"] or 0) for op, row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("databases", nargs="*", default=["postgres", MARIADB, MYSQL])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="of each database: no further round begins after so long"
    )
    parser.add_argument("--size", type=int, default=60, help="transactions of a round")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    rows = [run(name, given) for name in given.databases]
    text = "\n".join([*HEAD, *(row for row, _ in rows), ""])
    print(text)
    if given.page is not None:
        given.page.write_text(text)
    return 1 if any(doubled for _, doubled in rows) else 0


HEAD = (
    "# Copies of tables under kills",
    "`make chaos-connect` also captures a table into a topic and copies it from there into a table of the same server",
    "(JDBC), a Delta table and an Iceberg table, while it kills a worker, the broker or the database. After each kill",
    "all copies equal the source table; otherwise the run ends with an error.",
    "",
    "| source | kills | changes in the topic | doubled | rows in the end | copies that equal the source |",
    "|---|---|---|---|---|---|",
)


def run(name: str, given: argparse.Namespace) -> tuple[str, int]:
    """Return the row of a database, and how many changes were doubled."""
    chance, begun = random.Random(f"{given.seed}{name}"), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        database = stack.enter_context(running(name))
        database.prepare()
        kafka = stack.enter_context(broker(BROKER))
        kafka.create_topic(TOPIC)
        configured = settings(kafka.bootstrap_servers) | {"heartbeat.interval.ms": "1000", "session.timeout.ms": "6000"}
        json_with_schemas = "org.apache.kafka.connect.json.JsonConverter"
        configured |= {f"{one}.converter": json_with_schemas for one in ("key", "value")}
        configured |= {f"{one}.converter.schemas.enable": "true" for one in ("key", "value")}
        group = stack.enter_context(workers(WORKERS, kafka.bootstrap_servers, configured))
        world = World(kafka, group, database, Path(folder), given.size)
        (world.folder / "warehouse").mkdir()
        for one, config in connectors(database, world.folder).items():
            group.create(one, {**config, **RESTARTS})
        with database.connect() as line, line.cursor() as cursor:
            cursor.execute("INSERT INTO shop.t VALUES (0, 0, 'first')")
            line.commit()
        eventually(lambda: not differences(world), PATIENCE_S, "the first row in all copies")
        for number in range(given.rounds):
            if time.monotonic() - begun > given.minutes * 60:
                break
            one_round(world, number, chance)
        found = counted(kafka.bootstrap_servers)
        doubled = sum(count - 1 for count in found.values())
        kills = ", ".join(f"{count} of the {one}" for one, count in sorted(world.kills.items()))
        rows = len(world.rows("shop.t"))
        return (
            f"| {database.name} | {kills} | {found.total()} | {doubled} | {rows} | JDBC, Delta, Iceberg |",
            doubled,
        )


def one_round(world: World, number: int, chance: random.Random) -> None:
    is_over = threading.Event()
    writer = threading.Thread(target=world.change, args=(random.Random(chance.random()), is_over))
    writer.start()
    try:
        time.sleep(chance.random() * 2)
        name = chance.choice(list(FAULTS))
        FAULTS[name](world, chance)
        world.kills[name] += 1
        writer.join(PATIENCE_S)
    finally:
        is_over.set()
        writer.join(PATIENCE_S)
    try:
        eventually(lambda: not differences(world), PATIENCE_S, f"copies after round {number} ({name} killed)")
    except AssertionError:
        answer = world.group.ask("GET", "/connectors?expand=status")
        print(differences(world), answer and answer.text[:4000])
        raise
    print(f"{world.database.name}, round {number}: {name} killed, all copies equal", flush=True)


if __name__ == "__main__":
    sys.exit(main())
