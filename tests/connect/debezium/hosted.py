"""Debezium's own connectors in the plugin host: `python -m tests.connect.debezium.hosted [postgres|mariadb|mysql ...]`.

A table is captured into a topic by the jar, in a worker on this machine and then in one on a standalone Spark master.
The worker is ended and started again: it goes on from the offsets that are stored, without another snapshot, and in
the end each change is in the topic. The version in the events shows that the jar made them, and not Moldau's connector.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from moldau.testing import broker, eventually
from moldau.testing.ports import free_port
from tests.connect.chaos_cdc import OfBinlog, Postgres, changes, counted
from tests.connect.databases import MARIADB, MYSQL, server_of
from tests.connect.plugin.hosted import PATIENCE_S, check, each, hosting, restart
from tests.connect.running import BROKER
from tests.connect.test_cdc_mysql import BINLOG
from tests.needs import DEBEZIUM_PLUGINS
from tests.spark.postgres import postgres

POSTGRES, ROWS = "postgres", 500


@contextmanager
def source(name: str, folder: Path) -> Iterator[tuple[Postgres | OfBinlog, dict[str, str]]]:
    """Run a database that listens on a port, as Java's drivers want it; yields it with the config of a connector."""
    port = str(free_port())
    with ExitStack() as stack:
        if name == POSTGRES:
            dsn = stack.enter_context(postgres(wal_level="logical", listen_addresses="127.0.0.1", port=port))
            database: Postgres | OfBinlog = Postgres(f"{dsn} port={port}")
            more = {"database.user": "test", "database.password": "-", "plugin.name": "pgoutput"}
        else:
            reached = ("--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}")
            database = OfBinlog(name, stack.enter_context(server_of(name, *BINLOG, "--server-id=7", *reached)))
            with database.connect() as line, line.cursor() as cursor:
                cursor.execute("CREATE USER judge IDENTIFIED BY 'judge'")
                cursor.execute("GRANT ALL ON *.* TO judge")
            more = {
                "database.user": "judge",
                "database.password": "judge",
                "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
                "schema.history.internal.file.filename": str(folder / "history"),
            }
        config = database.source() | {"topic.prefix": "s", "table.include.list": r"shop\.t"} | more
        yield database, config | {"database.hostname": "127.0.0.1", "database.port": port}


def put(database: Postgres | OfBinlog, first: int) -> None:
    with database.connect() as line, line.cursor() as cursor:
        rows = [(number, 0, "x") for number in range(first, first + ROWS)]
        cursor.executemany("INSERT INTO shop.t (id, version, word) VALUES (%s, %s, %s)", rows)
        line.commit()


def run(name: str, place: str) -> str:
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moldau-hosted-")))
        kafka = stack.enter_context(broker(BROKER))
        database, config = stack.enter_context(source(name, folder))
        group = stack.enter_context(hosting(f"debezium-{name}-jars", kafka.bootstrap_servers, folder, place))
        database.prepare()
        put(database, 0)
        group.create("hosted", config)
        expected = Counter(("r", number, 0) for number in range(ROWS))

        def is_all_there() -> bool:
            check(group, "hosted")
            return counted(kafka.bootstrap_servers).keys() >= expected.keys()

        eventually(is_all_there, PATIENCE_S, "the snapshot")
        for first in (ROWS, 2 * ROWS):
            if first > ROWS:
                restart(group)
            put(database, first)
            expected.update(("c", number, 0) for number in range(first, first + ROWS))
            eventually(is_all_there, PATIENCE_S, "the stream")
        found = counted(kafka.bootstrap_servers)
        versions = {change["source"]["version"] for change in changes(kafka.bootstrap_servers)}
    assert versions == {DEBEZIUM_PLUGINS[name]}, versions
    assert found == expected, found - expected
    seconds = time.monotonic() - began
    return f"{name} {DEBEZIUM_PLUGINS[name]}, {place}: {found.total()} changes, each once, {seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(each(__doc__, (POSTGRES, MARIADB, MYSQL), run))
