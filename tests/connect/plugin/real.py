"""Others' plugins in a worker of ours, from Maven, on real systems: `python -m tests.connect.plugin.real`.

Apache's own FileStream source and sink copy a file, and Debezium follows a table of PostgreSQL, over a restart of the
worker: every line and every change arrives once, in its order, and the snapshot is taken once.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Consumer

from moldau.connect import plugins
from moldau.connect.jvm.host import Host
from moldau.connect.jvm.install import install
from moldau.testing import broker
from moldau.testing.ports import free_port
from tests.connect.running import BROKER, Running, running, settings
from tests.spark.postgres import postgres

PLUGINS = ("org.apache.kafka:connect-file:4.3.1", "io.debezium:debezium-connector-postgres:3.6.2.Final")
FILE = "org.apache.kafka.connect.file.FileStream{}Connector"
DEBEZIUM = "io.debezium.connector.postgresql.PostgresConnector"
LINES, ROWS, MORE = 3000, 1000, 200
PATIENCE_S = 240.0


def until(look: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        if time.monotonic() > deadline:
            raise SystemExit(f"not seen within {PATIENCE_S:g} s: {what}")
        time.sleep(0.1)


def create(worker: Running, name: str, config: dict[str, str]) -> None:
    answer = worker.http.post("/connectors", json={"name": name, "config": config})
    assert answer.status_code == 201, answer.text


def healthy(worker: Running, *names: str) -> bool:
    for name in names:
        found = worker.http.get(f"/connectors/{name}/status").json()
        assert "trace" not in json.dumps(found), found
    return True


class Changes:
    """What a topic has, as it grows."""

    def __init__(self, servers: str, topic: str) -> None:
        given = {"bootstrap.servers": servers, "group.id": "changes", "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**given, "topic.metadata.refresh.interval.ms": "300"})
        self._consumer.subscribe([topic])
        self.values: list[Any] = []

    def has(self, count: int) -> bool:
        found = [one.value() for one in self._consumer.consume(1000, 0.3) if one.error() is None]
        self.values += [value and json.loads(value) for value in found]
        return len(self.values) >= count

    def close(self) -> None:
        self._consumer.close()


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moldau-plugins-")))
        host = Host()
        for one in PLUGINS:
            began = time.monotonic()
            found = install(one, folder / "plugins", host)
            print(f"installed {one}: {len(found)} classes, {time.monotonic() - began:.1f} s", flush=True)
        host.close()
        port = free_port()
        tcp = {"listen_addresses": "127.0.0.1", "port": str(port), "wal_level": "logical"}
        socket = stack.enter_context(postgres(**tcp))
        database = stack.enter_context(psycopg.connect(f"{socket} port={port}", autocommit=True))
        servers = stack.enter_context(broker(BROKER)).bootstrap_servers
        given = {**settings(servers), "plugin.path": str(folder / "plugins")}
        changes = Changes(servers, "shop.public.orders")
        stack.callback(changes.close)
        first_half(folder, given, database, changes, port)
        second_half(folder, given, database, changes)
    print("everything arrived once, in its order")


def first_half(folder: Path, given: dict[str, str], database: Any, changes: Changes, port: int) -> None:
    (folder / "in.txt").write_text("".join(f"line {n}\n" for n in range(LINES)))
    database.execute("create table orders (id int primary key, item text, price numeric(10, 2))")
    database.execute(f"insert into orders select n, 'item ' || n, n / 4.0 from generate_series(1, {ROWS}) n")
    with running(given) as worker:
        assert plugins.find(FILE.format("Source")).made_by == plugins.JAVA  # type: ignore[union-attr]
        source = {"connector.class": FILE.format("Source"), "file": str(folder / "in.txt"), "topic": "lines"}
        create(worker, "source", source)
        sink = {"connector.class": FILE.format("Sink"), "file": str(folder / "out.txt"), "topics": "lines"}
        create(worker, "sink", sink)
        create(worker, "orders", debezium(port))
        began = time.monotonic()
        until(lambda: healthy(worker, "source", "sink", "orders") and changes.has(ROWS), "the snapshot")
        print(f"Debezium's snapshot of {ROWS} rows: {time.monotonic() - began:.1f} s after its creation", flush=True)
        until(lambda: lines(folder) >= LINES, "the first lines")
    assert {value["payload"]["op"] if "payload" in value else value["op"] for value in changes.values} == {"r"}


def second_half(folder: Path, given: dict[str, str], database: Any, changes: Changes) -> None:
    """Change things while the worker is away, and after it is back."""
    with (folder / "in.txt").open("a") as file:
        file.writelines(f"line {n}\n" for n in range(LINES, 2 * LINES))
    database.execute(f"insert into orders select n, 'late', 1 from generate_series({ROWS + 1}, {ROWS + MORE}) n")
    with running(given) as worker:
        until(lambda: healthy(worker, "source", "sink", "orders") and changes.has(ROWS + MORE), "the rows of meanwhile")
        database.execute("update orders set item = 'new' where id = 1")
        database.execute("delete from orders where id = 2")
        until(lambda: healthy(worker, "orders") and changes.has(ROWS + MORE + 3), "update, delete and tombstone")
        until(lambda: lines(folder) >= 2 * LINES, "the last lines")
    assert (folder / "out.txt").read_text() == (folder / "in.txt").read_text()
    stream = changes.values[ROWS:]
    assert [value and value["op"] for value in stream] == [*"c" * MORE, "u", "d", None]
    assert [value["after"]["id"] for value in stream[:MORE]] == list(range(ROWS + 1, ROWS + MORE + 1))
    assert stream[MORE]["after"]["item"] == "new"


def debezium(port: int) -> dict[str, str]:
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "connector.class": DEBEZIUM,
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": "test",
        "database.password": "any",
        "database.dbname": "postgres",
        "plugin.name": "pgoutput",
        "topic.prefix": "shop",
        "table.include.list": "public.orders",
        **dict.fromkeys(("key.converter", "value.converter"), converter),
        **{f"{name}.schemas.enable": "false" for name in ("key.converter", "value.converter")},
    }


def lines(folder: Path) -> int:
    out = folder / "out.txt"
    return out.read_text().count("\n") if out.exists() else 0


if __name__ == "__main__":
    sys.exit(main())
