"""Reading tables: rows of one moment of the database, by COPY, in parallel slices of a table's blocks.

COPY gives the texts that the stream has too. A snapshot that was exported makes all connections see the same moment:
that at which the slot was created, so the stream goes on exactly there.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from moldau.connect.connectors.cdc.postgres.protocol import Values
from moldau.connect.connectors.cdc.postgres.server import Server, TableInfo, quoted, told
from moldau.connect.connectors.live import Closed

ROWS = 500  # at a time, from a connection to the task
AHEAD = 8  # times so many rows
LEAST_BLOCKS = 1000  # of a slice: 8 MB
SLICED_SINCE = 140_000  # a range of blocks is read without a look at the others
TICK_S = 0.2
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def unescaped(line: bytes) -> Values:
    """Read a line of COPY's text format."""
    if b"\\" not in line:
        return line.decode().split("\t")
    return [None if one == b"\\N" else _plain(one).decode() for one in line.split(b"\t")]


def _plain(text: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), text) if b"\\" in text else text


class _Lines:
    """Takes what COPY writes, a row at a time; hands on lists of rows, and waits where nobody takes them."""

    def __init__(self, put: Any) -> None:
        self._put, self._rows = put, list[Values]()

    def write(self, line: bytes) -> None:
        self._rows.append(unescaped(line[:-1]))
        if len(self._rows) >= ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._put(self._rows)
        self._rows = []


def statement(table: TableInfo, columns: Sequence[str], where: str = "", order: str = "") -> str:
    only = "ONLY " if table.form == "r" else ""  # tables that inherit are tables of their own
    what = ", ".join(map(quoted, columns))
    return f"SELECT {what} FROM {only}{quoted(table.schema, table.name)}{where and ' WHERE ' + where}{order}"


def slices(blocks: int, most: int) -> list[str]:
    """Return conditions that divide a table; one that is empty if it is too small."""
    count = max(1, min(most, blocks // LEAST_BLOCKS))
    if count == 1:
        return [""]
    bounds = [blocks * n // count for n in range(count)]
    ends = [f" AND ctid < '({bound},0)'" for bound in bounds[1:]] + [""]  # the last one has what came since
    return [f"ctid >= '({start},0)'{end}" for start, end in zip(bounds, ends, strict=True)]


def rows_of(server: Server, select: str) -> list[Values]:
    """Read all rows of a small result."""
    found: list[Values] = []
    lines = _Lines(found.extend)
    with told(), server.connection.cursor() as cursor:
        cursor.copy_expert(f"COPY ({select}) TO STDOUT", lines)
    lines.flush()
    return found


class Snapshot:
    """Connections that all see one moment. Without the name of a snapshot it is that of now."""

    def __init__(self, config: Mapping[str, Any], name: str | None, closed: threading.Event) -> None:
        self._closed = closed
        self.servers = [Server(config)]
        self.is_sliced = self.servers[0].version >= SLICED_SINCE
        name = self._begin(self.servers[0], name) or name
        for _ in range(config["snapshot.max.threads"] - 1 if self.is_sliced else 0):
            self.servers.append(Server(config))
            self._begin(self.servers[-1], name)

    @staticmethod
    def _begin(server: Server, name: str | None) -> str | None:
        server.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if name is not None:
            server.rows("SET TRANSACTION SNAPSHOT %s", (name,))
            return None
        return server.one("SELECT pg_export_snapshot()")[0]

    def rows(self, table: TableInfo, columns: Sequence[str], override: str | None) -> Iterator[list[Values]]:
        """Yield the rows of a table, some at a time, in no order; or those of a statement."""
        parts = [""] if override or not self.is_sliced else slices(table.blocks, len(self.servers))
        selects = [override] if override else [statement(table, columns, part) for part in parts]
        done: queue.Queue[Any] = queue.Queue(AHEAD)
        threads = [
            threading.Thread(target=self._copy, args=(server, select, done), name="cdc snapshot", daemon=True)
            for server, select in zip(self.servers, selects, strict=False)
        ]
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            item = self._take(done)
            if isinstance(item, BaseException):
                raise item
            if item is None:
                left -= 1
            else:
                yield item

    def _take(self, done: queue.Queue[Any]) -> Any:
        while not self._closed.is_set():
            try:
                return done.get(timeout=TICK_S)
            except queue.Empty:
                continue
        raise Closed

    def _copy(self, server: Server, select: str, done: queue.Queue[Any]) -> None:
        def put(rows: Any) -> None:
            while not self._closed.is_set():
                try:
                    done.put(rows, timeout=TICK_S)
                    return
                except queue.Full:
                    continue
            raise Closed

        with suppress(Closed):
            put(_copied(server, select, put))

    def close(self) -> None:
        for server in self.servers:
            server.connection.cancel() if not server.connection.closed else None
            server.close()


def _copied(server: Server, select: str, put: Callable[[Any], None]) -> Exception | None:
    """Hand on all rows of a statement; return the error that whoever takes them must raise, or None at the end."""
    lines = _Lines(put)
    try:
        with told(), server.connection.cursor() as cursor:
            cursor.copy_expert(f"COPY ({select}) TO STDOUT", lines)
        lines.flush()
    except Exception as error:
        return error
    return None


def key_after(server: Server, key: Sequence[str], last: Sequence[Any] | None) -> str:
    """Return the condition that a row comes after a key."""
    if last is None:
        return ""
    with told(), server.connection.cursor() as cursor:
        values = ", ".join(cursor.mogrify("%s", (one,)).decode() for one in last)
    return f"({', '.join(map(quoted, key))}) > ({values})"
