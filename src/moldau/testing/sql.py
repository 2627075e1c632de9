"""SQL in tests: a server in a process of its own, on a real broker. The fixture `ksql` has one.

def test_spend(ksql):
    ksql.execute("CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='pay', ...);")
    ksql.execute("CREATE TABLE spend AS SELECT card, SUM(amount) AS total FROM pay GROUP BY card;")
    ksql.execute("INSERT INTO pay VALUES ('visa', 40);")
    ksql.until("SELECT total FROM spend WHERE card = 'visa';", [[40]])
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from moldau.sql.shell.remote import Scope, Server
from moldau.testing.process import eventually

START_S = 180.0
STOP_S = 30.0
PATIENCE_S = 120.0
EARLIEST = {"auto.offset.reset": "earliest"}
# Queries run in the server's process: no test waits for Spark, or for servers that share a group of coordinators.
LOCAL = {"ksql.runtime": "local"}


class ServerFailed(Exception):
    """An error of a SQL server that did not start or stop; the text ends with its log."""


class Ksql:
    """A SQL server of a test. Queries read streams from their beginning, unless a property says otherwise."""

    def __init__(self, url: str, pid: int | None = None) -> None:
        """`pid` is the server's process, if it is one of its own."""
        self.url, self.pid, self.server = url, pid, Server(url, trust_env=False)

    def execute(self, text: str, **properties: Any) -> list[dict[str, Any]]:
        """Execute statements, and return the server's answers; `auto_offset_reset="latest"` sets a property."""
        return self.server.execute(text, self._scope(properties))

    def rows(self, query: str, limit_s: float | None = None, **properties: Any) -> list[list[Any]]:
        """Run a query to its end, or for a time, and return its rows. A push query needs a LIMIT or a time."""
        with self.server.query(query, self._scope(properties), limit_s) as parts:
            found = list(parts)
        failures = [part["errorMessage"]["message"] for part in found if "errorMessage" in part]
        assert not failures, failures
        return [part["row"]["columns"] for part in found if "row" in part]

    def until(self, query: str, expected: list[list[Any]] | Callable[[list[list[Any]]], bool]) -> list[list[Any]]:
        """Repeat a pull query until its rows are the expected ones, in any order; return them."""
        found: list[list[Any]] = []

        def reached() -> bool:
            nonlocal found
            found = self.rows(query)
            return expected(found) if callable(expected) else sorted(found, key=str) == sorted(expected, key=str)

        try:
            eventually(reached, PATIENCE_S, query)
        except AssertionError:
            raise AssertionError(f"{query} has the rows {found}") from None
        return found

    @staticmethod
    def _scope(properties: Mapping[str, Any]) -> Scope:
        return Scope({**EARLIEST, **{name.replace("_", "."): value for name, value in properties.items()}})


@contextmanager
def sql_server(bootstrap_servers: str, settings: Mapping[str, Any] | None = None) -> Iterator[Ksql]:
    """Run a SQL server on a broker, whose queries run in its process."""
    command = [sys.executable, "-m", "moldau", "sql", "server", "--bootstrap-servers", bootstrap_servers]
    command += ["--listen", "127.0.0.1:0", "--stop-with-stdin"]
    for name, value in {**LOCAL, **(settings or {})}.items():
        command += ["--set", f"{name}={value}"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        try:
            ksql = Ksql(_ready(process, log), process.pid)
            try:
                yield ksql
            finally:
                ksql.server.close()
        finally:
            _stop(process)


def _ready(process: subprocess.Popen[bytes], log: Any) -> str:
    assert process.stdout is not None
    timer = threading.Timer(START_S, process.kill)
    timer.start()
    try:
        line = process.stdout.readline().decode()
    finally:
        timer.cancel()
    if not line.startswith("ready "):
        log.seek(0)
        raise ServerFailed(f"The SQL server did not start.\n{log.read().decode(errors='replace')}")
    return line.split()[1]


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise ServerFailed(f"The SQL server did not stop within {STOP_S:.0f} s.") from None
    finally:
        process.stdout.close()
