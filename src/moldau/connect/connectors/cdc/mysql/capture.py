"""The thread of a task: connect, take a snapshot if one is due, follow the binlog; begin anew after passing errors.

An offset says where the binlog is to be read again, which is always where a transaction begins, and how much of that
transaction was captured: `event` changes of rows (an event may have many rows), and `row` rows of the next one. A task
that goes on skips these, so that a transaction of any size is captured exactly once without being held.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from moldau.connect.connectors.cdc.envelope import (
    CREATE,
    DELETE,
    FALSE,
    FIRST,
    FIRST_OF_TABLE,
    INCREMENTAL,
    LAST,
    READ,
    TRUE,
    TRUNCATE,
    UPDATE,
    VERSION,
    At,
    Transaction,
    change,
    heartbeat,
)
from moldau.connect.connectors.cdc.mysql.chunks import by_key, key_after, part_of
from moldau.connect.connectors.cdc.mysql.schema_changes import Affected, affected, beginning
from moldau.connect.connectors.cdc.mysql.server import Place, Server, failures, quoted, settings_of
from moldau.connect.connectors.cdc.mysql.tables import Captured, Tables, use_codecs
from moldau.connect.connectors.cdc.settings import heartbeat_topic, matcher, transaction_topic
from moldau.connect.connectors.cdc.snapshot import Incremental, marked
from moldau.connect.connectors.live import Feed
from moldau.connect.connectors.packages import needed
from moldau.connect.data import Record, Struct
from moldau.connect.errors import ConnectError, RetriableError

log = logging.getLogger(__name__)
BATCH = 256
HEARTBEAT_S = 0.1  # of the server, while nothing changes: how soon the thread hands on what it has, or ends
LEAST_S = 0.02  # between batches, so that small transactions share one
UNREADABLE = (ValueError, LookupError, NotImplementedError, AssertionError, struct.error)
EMPTY_SET = "empty set"  # of NONE_SOURCE in pymysqlreplication
COMPLETED = "snapshot_completed"
GTIDS = "SET @mariadb_slave_capability = 4"  # MariaDB sends them then; to MySQL it is a variable that nobody reads


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do first: read the tables or not, and where the binlog begins without a snapshot."""

    snapshot: bool
    start: Place | None = None


def plan(mode: str, offset: Mapping[str, Any] | None, files: Mapping[str, int], end: Place, server_id: int) -> Plan:
    """Decide by the mode, the offset and what the server still has; ConnectError if it does not have enough."""
    is_complete = bool(offset) and offset.get(COMPLETED) is not False
    if mode == "always" or (mode in ("initial", "initial_only", "when_needed") and not is_complete):
        return Plan(True)
    if not offset:
        return Plan(False, Place(next(iter(files)), 4) if mode == "never" else end)
    at = Place(offset["file"], int(offset["pos"]))
    problem = ""
    if offset.get("server_id") not in (None, server_id):
        problem = f"The offset is of server {offset['server_id']}, and this is server {server_id}."
    elif at.file not in files:
        problem = f"The server no longer has the file {at.file} of the binlog, from which capture would go on."
    elif at.pos > files[at.file]:
        problem = f"The binlog {at.file} ends at {files[at.file]}, before {at.pos}: the server is an older copy."
    if not problem:
        return Plan(False, at)
    if mode == "when_needed":
        log.warning("a snapshot is needed: %s", problem)
        return Plan(True)
    raise ConnectError(f"{problem} Reset the connector's offsets, or set snapshot.mode=when_needed.")


class Capture:
    """What the thread does, and what it has to know after a lost connection."""

    def __init__(
        self,
        config: Mapping[str, Any],
        overrides: Mapping[str, str],
        connector: str,
        offset: Mapping[str, Any] | None,
    ) -> None:
        self.config, self.overrides, self.connector, self.offset = config, overrides, connector, offset
        self.partition = {"server": config["topic.prefix"]}
        self.has_snapshot = False  # taken by this task

    def run(self, feed: Feed) -> None:
        """Capture until the feed is closed; RetriableError if the connection is lost."""
        with closing(Server(self.config)) as server:
            _Session(self, feed, server).run()


class _Session:
    """One connection's life."""

    def __init__(self, capture: Capture, feed: Feed, server: Server) -> None:
        self._capture, self._feed, self._server, self._config = capture, feed, server, capture.config
        self._tables = Tables(self._config, server, capture.connector)
        self._server_id = int(server.one("SELECT @@server_id")[0])
        self._batch: list[Record] = []
        self._forms: dict[Any, Captured | None] = {}
        self._nullable: dict[int, bytes] = {}
        self._skipped = set(self._config["skipped.operations"])
        self._tells_schemas: bool = self._config["include.schema.changes"]
        self._signals: str = self._config["signal.data.collection"]
        self._incremental = Incremental.of(capture.offset)  # what was read but not handed on is read again
        self._counts_all: bool = self._config["provide.transaction.metadata"]
        self._transaction: Transaction | None = None
        self._is_open = False  # whether a transaction is under way
        self._gtid: str | None = None
        self._thread: int | None = None  # of the server, that made the transaction; MariaDB does not say
        self._micros = 0  # when the transaction was committed, if its GTID says that
        self._beat_at = self._flushed_at = time.monotonic()

    def run(self) -> None:
        mode, server = self._config["snapshot.mode"], self._server
        server.check_ready()
        if mode == "always" and self._capture.has_snapshot:
            mode = "initial"
        found = plan(mode, self._capture.offset, server.files(), server.place(), self._server_id)
        start = self._snapshot() if found.snapshot else found.start
        if not self._capture.offset:  # where a new connection goes on, if this one is lost before any change
            assert start is not None
            self._capture.offset = self._offset(start)
            if mode == "no_data":
                self._tell_schemas(start, self._capture.offset)
        if mode == "initial_only":
            self._feed.closed.wait()
        else:
            assert start is not None
            self._stream(start, {} if found.snapshot else self._capture.offset or {})

    # The snapshot.

    def _snapshot(self) -> Place:
        place = self._server.begin_snapshot()
        wanted = matcher(self._config["snapshot.include.collection.list"], [])
        offset = {**self._offset(place), "snapshot": "INITIAL", COMPLETED: False}
        self._tell_schemas(place, offset)
        tables = [one for one in self._server.tables() if self._tables.takes(*one) and wanted(".".join(one))]
        count = 0
        for table, row, mark in marked(self._rows(tables)):
            if mark == FIRST and (table.schema, table.name) != tables[0]:
                mark = FIRST_OF_TABLE  # the first table has no rows
            at = self._at(
                table.schema, table.name, place, 0, {**offset, COMPLETED: mark == LAST}, mark, time.time_ns() // 1000
            )
            self._add(change(table.events, READ, None, row, at))
            count += 1
        self._server.rows("COMMIT")
        self._flush()
        self._capture.offset, self._capture.has_snapshot = {**offset, COMPLETED: True}, True
        log.info("the snapshot at %s:%d has %d rows", *place, count)
        return place

    def _tell_schemas(self, place: Place, offset: Mapping[str, Any]) -> None:
        """Tell what all tables of captured databases look like, by the statements that would make them."""
        if self._tells_schemas:
            tables = [one for one in self._server.tables() if self._tables.takes_database(one[0])]
            for database, statement, changes in beginning(self._server, tables):
                self._tell_schema(database, statement, changes, place, offset, TRUE, time.time_ns() // 1000)

    def _rows(self, tables: Sequence[tuple[str, str]]) -> Iterator[tuple[Captured, Struct]]:
        for schema, name in tables:
            table = self._tables.of_catalogue(schema, name)
            columns = ", ".join(map(quoted, table.names))
            own = self._capture.overrides.get(table.full_name)
            for values in self._server.streamed(own or f"SELECT {columns} FROM {quoted(schema, name)}"):
                if own and (missing := [one for one in table.names if one not in values]):
                    raise ConnectError(f"The statement for {table.full_name} does not return its column {missing[0]}.")
                yield table, table.row(values)

    # The binlog.

    def _stream(self, start: Place, offset: Mapping[str, Any]) -> None:
        library = needed("pymysqlreplication", "The MariaDB source", "mariadb")
        with failures(), closing(self._reader(library, start)) as stream:
            self._place, self._event = start, 0
            self._skip = int(offset.get("event") or 0), int(offset.get("row") or 0)
            for event in self._read(stream):
                if self._feed.closed.is_set():
                    return
                self._take(type(event).__name__, event, Place(stream.log_file, stream.log_pos))

    def _read(self, stream: Any) -> Iterator[Any]:
        """Yield events; ConnectError that names the likely cause if the library does not understand one."""
        try:
            yield from iter(stream.fetchone, None)
        except UNREADABLE as error:
            found = self._server.compressed()
            cause = f" The column {found} is COMPRESSED, which cannot be read from the binlog." if found else ""
            raise ConnectError(
                f"The binlog cannot be read after {stream.log_file}:{stream.log_pos} ({error}).{cause}"
            ) from error

    def _reader(self, library: Any, start: Place) -> Any:
        pymysql = needed("pymysql", "The MariaDB source", "mariadb")
        rows, events = library.row_event, library.event
        streams = 0

        def connect(**given: Any) -> Any:
            """Connect, but not a second time for the stream: nobody would check that it is the same server."""
            nonlocal streams
            streams += "db" not in given
            if streams > 1:
                raise RetriableError("The connection to the database was lost.")
            return pymysql.connect(**given, init_command=GTIDS)

        # Not `is_mariadb`: the library would ignore file and position, and read the binlog from its beginning.
        return library.BinLogStreamReader(
            settings_of(self._config),
            self._config["database.server.id"],
            only_events=[
                *(rows.WriteRowsEvent, rows.UpdateRowsEvent, rows.DeleteRowsEvent, rows.TableMapEvent),
                *(events.QueryEvent, events.XidEvent, events.MariadbGtidEvent, events.GtidEvent),
                *(events.HeartbeatLogEvent, events.RotateEvent),
            ],
            blocking=True,
            resume_stream=True,
            log_file=start.file,
            log_pos=start.pos,
            slave_heartbeat=HEARTBEAT_S,
            pymysql_wrapper=connect,
            enable_logging=False,
        )

    def _take(self, kind: str, event: Any, after: Place) -> None:
        match kind:
            case "TableMapEvent":
                self._nullable[event.table_id] = event.null_bitmask
                use_codecs(event.columns)
            case "WriteRowsEvent" | "UpdateRowsEvent" | "DeleteRowsEvent":
                self._changes(event, kind[0], _before(event, after))
            case "XidEvent":
                self._done(after)
            case "MariadbGtidEvent" | "GtidEvent":
                self._gtid, self._is_open, self._thread = event.gtid, True, None
                self._micros = committed_us(event) if kind == "GtidEvent" else 0
            case "QueryEvent":
                self._query(event, after)
            case "HeartbeatLogEvent":
                self._idle(after)

    def _query(self, event: Any, after: Place) -> None:
        """Take a statement: the beginning or the end of a transaction, or one that may change tables."""
        text = event.query.decode(errors="replace") if isinstance(event.query, bytes) else event.query
        words = text.split(None, 3)
        first = words[0].upper() if words else ""
        if first in ("BEGIN", "SAVEPOINT"):
            self._is_open, self._thread = True, event.slave_proxy_id
            return
        schema = event.schema.decode() if isinstance(event.schema, bytes) else event.schema
        micros = self._time_us(event) // 1000 * 1000
        if first == "TRUNCATE" and TRUNCATE not in self._skipped:
            self._truncated(schema, words[-1].strip("`; "), micros, _before(event, after), after)
        if self._tells_schemas:
            self._schemas_changed(text, schema, micros, _before(event, after), after)
        self._forms.clear()
        self._done(after)

    def _schemas_changed(self, text: str, schema: str, micros: int, here: Place, after: Place) -> None:
        """Tell each change of a statement; the offset before the last one says how many were told."""
        found = [one for one in affected(text, schema) if self._tables.takes_database(one.database)]
        for number, one in enumerate(found, 1):
            is_last = number == len(found)
            offset = self._offset(after) if is_last else {**self._offset(self._place), "event": number}
            if number > self._skip[0]:
                self._tell_schema(one.database, one.statement or text, [one], here, offset, FALSE, micros)

    def _tell_schema(
        self,
        database: str,
        statement: str,
        changes: Sequence[Affected],
        place: Place,
        offset: Mapping[str, Any],
        mark: str,
        micros: int,
    ) -> None:
        names = ",".join(one.table for one in changes if one.table)
        at = self._at(database, names or (None if mark == TRUE else ""), place, 0, offset, mark, micros)
        self._add([self._tables.schema_change(at, database, statement, changes)])

    def _truncated(self, schema: str, name: str, micros: int, here: Place, after: Place) -> None:
        database, _, table_name = name.rpartition(".")
        schema, name = database.strip("`") or schema, table_name.strip("`")
        if self._tables.takes(schema, name):
            table = self._tables.of_catalogue(schema, name)
            at = self._at(schema, name, here, 0, self._offset(after), FALSE, micros)
            self._add(change(table.events, TRUNCATE, None, None, at))

    def _done(self, after: Place) -> None:
        self._place, self._event, self._skip, self._is_open = after, 0, (0, 0), False
        if self._transaction is not None:
            topic, offset = transaction_topic(self._config), self._offset(after)
            self._add([self._transaction.boundary(topic, "END", self._capture.partition, offset)])
            self._transaction = None
        self._between(after)
        self._beat()
        if time.monotonic() - self._flushed_at > LEAST_S:
            self._flush()

    def _form(self, event: Any) -> Captured | None:
        columns, nullable = event.columns, self._nullable.get(event.table_id, b"")
        if not self._tables.takes(event.schema, event.table):
            return None
        known = event.schema, event.table, tuple((one.name, one.type) for one in columns), nullable
        if known not in self._forms:
            self._forms[known] = self._tables.of_binlog(event.schema, event.table, columns, nullable)
        return self._forms[known]

    def _changes(self, event: Any, kind: str, here: Place) -> None:
        """Make events of the rows of one change; skip what was captured before the task was started again."""
        skipped = self._skip
        if f"{event.schema}.{event.table}" == self._signals:
            if kind == "W" and self._event >= skipped[0]:
                for row in event.rows:
                    self._signal([*row["values"].values(), None, None])
        elif (self._event >= skipped[0] or self._counts_all) and (table := self._form(event)) is not None:
            for place, row in enumerate(event.rows):
                is_new = (self._event, place) >= skipped
                if is_new or self._counts_all:
                    self._changed(table, kind, row, place, self._time_us(event), here, is_new)
        self._event += 1

    def _changed(
        self, table: Captured, kind: str, row: Any, place: int, micros: int, here: Place, is_new: bool
    ) -> None:
        op = {"W": CREATE, "U": UPDATE, "D": DELETE}[kind]
        if op in self._skipped:
            return
        before = table.row(_values(row, "" if op == DELETE else "before_")) if op != CREATE else None
        after = table.row(_values(row, "" if op == CREATE else "after_")) if op != DELETE else None
        first, block = self._counted(table, micros, is_new)
        moved = None
        if block is not None and before is not None and after is not None:
            keys = table.events.key(before), table.events.key(after)
            if keys[0] is not None and keys[1] is not None and keys[0].values != keys[1].values:
                moved = self._counted(table, micros, is_new)[1]
        if is_new:
            offset = {**self._offset(self._place), "event": self._event, "row": place + 1}
            at = self._at(table.schema, table.name, here, place, offset, FALSE, micros)
            at = replace(at, transaction=block, moved=moved)
            tombstones = self._config["tombstones.on.delete"]
            self._add(first + change(table.events, op, before, after, at, tombstones=tombstones))

    def _counted(self, table: Captured, micros: int, is_new: bool) -> tuple[list[Record], Struct | None]:
        """Count a change of the transaction; return what has to come before it, and its block."""
        if not self._counts_all:
            return [], None
        first: list[Record] = []
        if self._transaction is None:
            name = self._gtid or "file={},pos={}".format(*self._place)
            self._transaction = Transaction(name, micros // 1000)
            if is_new:  # otherwise it was announced before the restart
                topic, offset = transaction_topic(self._config), self._offset(self._place)
                first = [self._transaction.boundary(topic, "BEGIN", self._capture.partition, offset)]
        return first, self._transaction.block(table.full_name)

    # Signals and incremental snapshots.

    def _signal(self, values: list[Any]) -> None:
        _, kind, data, *_ = values
        try:
            if not self._incremental.signal(kind or "", data):
                log.info("signal %s: %s", kind, data)
        except ConnectError as error:
            log.warning("%s", error)  # somebody's typing error must not end the stream

    def _between(self, reached: Place) -> None:
        """Send the chunk that is due here, and read the next ones; no transaction is under way.

        A chunk has the rows of exactly one position. It is sent when the stream is there, so that changes before it
        are in the topic already, and changes after it still come.
        """
        self._send_chunk(reached)
        while self._incremental.wants_chunk and not self._feed.closed.is_set():
            if not self._read_chunk():
                return
            self._send_chunk(reached)

    def _send_chunk(self, reached: Place) -> None:
        for key, values in self._incremental.passed(reached):
            table, micros = self._chunk_table, time.time_ns() // 1000
            offset = self._offset(self._place) | self._incremental.stored(key)
            at = self._at(table.schema, table.name, self._place, 0, offset, INCREMENTAL, micros)
            self._add(change(table.events, READ, None, table.row(values), at))

    def _read_chunk(self) -> bool:
        """Read the next chunk; return False if the database does not yet show what the stream had already."""
        incremental = self._incremental
        place = self._server.begin_snapshot()
        try:
            if place < self._place:
                return False
            name = incremental.tables[0]
            schema, _, own = name.partition(".")
            if (schema, own) not in self._server.tables() or not self._tables.takes(schema, own):
                return self._leave_out(name, "it is not a table that is captured")
            table = self._chunk_table = self._tables.of_catalogue(schema, own)
            if not table.primary or not all(map(part_of, table.primary)):
                why = "its primary key has no order that can be used" if table.primary else "it has no primary key"
                return self._leave_out(name, why)
            incremental.took(by_key(table.primary, list(self._server.streamed(self._chunk(table)))), place)
        finally:
            self._server.rows("COMMIT")
        return True

    def _chunk(self, table: Captured) -> str:
        """Return the statement that reads the next chunk of a table."""
        incremental, key = self._incremental, [one.name for one in table.primary]
        tests = (
            key_after(table.primary, incremental.last, quoted, self._server.escaped),
            incremental.conditions.get(table.full_name),
        )
        where = " AND ".join(f"({one})" for one in tests if one)
        columns = ", ".join(map(quoted, dict.fromkeys((*table.names, *key))))
        return (
            f"SELECT {columns} FROM {quoted(table.schema, table.name)}{' WHERE ' if where else ''}{where} "
            f"ORDER BY {', '.join(map(quoted, key))} LIMIT {self._config['incremental.snapshot.chunk.size']}"
        )

    def _leave_out(self, table: str, why: str) -> bool:
        log.warning("the incremental snapshot leaves out %s: %s", table, why)
        self._incremental.next_table()
        return True

    _chunk_table: Captured

    # What events say of where they come from.

    def _time_us(self, event: Any) -> int:
        """Return when a change was made; an event itself knows it in seconds."""
        return self._micros or event.timestamp * 1_000_000

    def _offset(self, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {"ts_sec": int(time.time()), "file": place.file, "pos": place.pos}
        found |= {"row": 0, "event": 0, "server_id": self._server_id}
        return found | ({"gtids": self._gtid} if self._gtid else {}) | self._incremental.stored()

    def _at(
        self, schema: str, name: str | None, place: Place, row: int, offset: Mapping[str, Any], mark: str, micros: int
    ) -> At:
        server = self._config["topic.prefix"]
        head = (VERSION, self._capture.connector, server, micros // 1000, mark, schema, None, micros, micros * 1000)
        server_id, thread = (self._server_id, self._thread) if mark == FALSE else (0, None)
        tail = (name, server_id, self._gtid, place.file, place.pos, row, thread, None)
        return At(Struct(self._tables.source, head + tail), self._capture.partition, offset)

    def _add(self, records: list[Record]) -> None:
        self._batch += records
        if len(self._batch) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        """Hand on what there is; wait for room."""
        batch, self._batch = self._batch, []
        self._flushed_at = time.monotonic()
        if batch:
            self._feed.put(batch)
            self._capture.offset = batch[-1].source_offset or {}

    def _idle(self, reached: Place) -> None:
        if not self._is_open:
            self._between(reached)
        self._beat()
        self._flush()

    def _beat(self) -> None:
        every = self._config["heartbeat.interval.ms"] / 1000
        if not every or time.monotonic() - self._beat_at < every or self._event:
            return
        self._beat_at = time.monotonic()
        if self._config["heartbeat.action.query"]:
            self._server.rows(self._config["heartbeat.action.query"])
        topic, server = heartbeat_topic(self._config), self._config["topic.prefix"]
        self._add([heartbeat(topic, server, self._capture.partition, self._offset(self._place))])


def committed_us(event: Any) -> int:
    """Return when a transaction was committed where it was made first; 0 if its GTID, of MySQL before 8.0.1, has none.

    The library leaves these 7 bytes unread, or 14 of them: the first bit of the first number says so.
    """
    rest = event.packet.packet.read_all()
    if len(rest) < 7:
        return 0
    number = int.from_bytes(rest[:7], "little")
    return number if number < 1 << 55 else int.from_bytes(rest[7:14], "little")


def _before(event: Any, after: Place) -> Place:
    """Return where an event begins."""
    return Place(after.file, after.pos - event.packet.event_size)


def _values(row: Mapping[str, Any], image: str) -> Mapping[str, Any]:
    """Return the values of a row before or after a change; the reader takes a set without members for null."""
    empty = [name for name, why in row[f"{image}none_sources"].items() if why == EMPTY_SET]
    return row[f"{image}values"] | dict.fromkeys(empty, "") if empty else row[f"{image}values"]
