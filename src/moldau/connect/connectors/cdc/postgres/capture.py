"""The thread of a task: connect, take a snapshot if one is due, stream; begin anew after errors that may pass."""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, ClassVar

from moldau.connect.connectors.cdc.envelope import LAST
from moldau.connect.connectors.cdc.postgres.events import Events
from moldau.connect.connectors.cdc.postgres.position import COMPLETED, SNAPSHOT, SYSTEM, Plan, Position, Visible, plan
from moldau.connect.connectors.cdc.postgres.protocol import Relation, Values
from moldau.connect.connectors.cdc.postgres.reading import Snapshot, key_after, rows_of, statement
from moldau.connect.connectors.cdc.postgres.server import Replication, Server, TableInfo, lsn_text, quoted, told
from moldau.connect.connectors.cdc.postgres.tables import Captured, Tables
from moldau.connect.connectors.cdc.settings import matcher
from moldau.connect.connectors.cdc.snapshot import Incremental, marked
from moldau.connect.connectors.live import Closed, Feed
from moldau.connect.data import Record

log = logging.getLogger(__name__)
TICK_S = 0.1  # between looks for what is due while nothing comes
ACKNOWLEDGE_S = 1.0
WATCH_S = 60.0  # between looks at the slot
MESSAGES_SINCE = 140_000


@dataclass(slots=True)
class Batch:
    """Events on their way to the task; once they are in Kafka, the slot may be told of `position`."""

    MOST: ClassVar[int] = 256
    records: list[Record] = field(default_factory=list)
    position: int = 0


class Capture:
    """What the thread does, and what it has to know after a lost connection."""

    def __init__(
        self, config: Mapping[str, Any], overrides: Mapping[str, str], offset: Mapping[str, Any] | None
    ) -> None:
        self._config, self._overrides, self._offset = config, overrides, offset
        self._incremental = Incremental.of(offset)
        self.acknowledged = 0  # written by the thread of the task

    def run(self, feed: Feed) -> None:
        """Capture until the feed is closed; RetriableError if the connection is lost."""
        self._incremental = Incremental.of(self._offset)  # rows that were not handed on are read again
        try:
            with ExitStack() as opened:
                _Session(self, feed, self._config, self._overrides, opened).run()
        finally:
            if self._config["slot.drop.on.stop"] and feed.closed.is_set():
                with closing(Server(self._config)) as server:
                    if server.slot(self._config["slot.name"]):
                        server.drop_slot(self._config["slot.name"])

    @property
    def offset(self) -> Mapping[str, Any] | None:
        return self._offset

    @offset.setter
    def offset(self, value: Mapping[str, Any]) -> None:
        self._offset = value

    @property
    def incremental(self) -> Incremental:
        return self._incremental


class _Session:
    """One connection's life."""

    def __init__(
        self, capture: Capture, feed: Feed, config: Mapping[str, Any], overrides: Mapping[str, str], opened: ExitStack
    ) -> None:
        self._capture, self._feed, self._config, self._overrides = capture, feed, config, overrides
        self._server = opened.enter_context(closing(Server(config)))
        self._replication = opened.enter_context(closing(Replication(config)))
        self._opened = opened
        self._tables = Tables(config, self._server)
        self._by_root: bool = config["publish.via.partition.root"]
        self._slot: str = config["slot.name"]
        self._system = self._server.system()
        self._events = Events(config, self._form, self._tables.signals, self._system, capture.incremental)
        self._batch = Batch()
        self._position = 0  # of the last batch
        self._told_at, self._told = 0.0, 0
        self._is_streaming = False  # before, a word to the server would end the exported snapshot
        self._beat_at = self._watched_at = time.monotonic()

    def run(self) -> None:
        server, config = self._server, self._config
        if config["snapshot.mode"] != "initial_only":
            server.check_ready()
        slot = server.slot(self._slot)
        todo = plan(
            config["snapshot.mode"],
            self._capture.offset,
            slot,
            now=server.position(),
            system=self._system,
            name=self._slot,
        )
        listed = server.tables(self._tables.publishes, by_root=self._by_root)
        exported: tuple[int, str] | None = None
        if todo.stream:
            mode = config["publication.autocreate.mode"]
            server.publish(config["publication.name"], mode, listed, by_root=self._by_root)
            if todo.new_slot:
                if slot is not None:
                    server.drop_slot(self._slot)
                exported = self._replication.create_slot(self._slot)
                log.info("created the slot %s at %s", self._slot, lsn_text(exported[0]))
        if todo.snapshot:
            self._snapshot([one for one in listed if self._tables.takes(one.full_name)], exported)
        if todo.stream:
            self._stream(todo)
        else:
            self._feed.closed.wait()

    def _form(self, relation: Relation) -> Captured | None:
        if not self._tables.publishes(f"{relation.schema}.{relation.name}"):
            return None
        return self._tables.of_relation(relation)

    # The snapshot.

    def _snapshot(self, tables: Sequence[TableInfo], exported: tuple[int, str] | None) -> None:
        wanted = matcher(self._config["snapshot.include.collection.list"], [])
        lsn = exported[0] if exported else self._server.position()
        offset = {SNAPSHOT: "INITIAL", "last_snapshot_record": False, COMPLETED: False}
        offset |= {"ts_usec": time.time_ns() // 1000, "lsn": lsn, SYSTEM: self._system}
        last = {**offset, "last_snapshot_record": True, COMPLETED: True}
        self._capture.offset = offset
        count = 0
        with closing(Snapshot(self._config, exported and exported[1], self._feed.closed)) as snapshot:
            (xid,) = snapshot.servers[0].one("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
            chosen = [one for one in tables if wanted(one.full_name)]
            for table, values, mark in marked(self._rows(snapshot, chosen)):
                self._add(self._events.read(table, values, mark, lsn, xid, last if mark == LAST else offset))
                count += 1
        self._flush()
        self._capture.offset = last
        log.info("the snapshot of %d tables at %s has %d rows", len(chosen), lsn_text(lsn), count)

    def _rows(self, snapshot: Snapshot, tables: Sequence[TableInfo]) -> Iterator[tuple[Captured, Values]]:
        for one in tables:
            table, columns = self._tables.of_catalogue(one.id, one.schema, one.name)
            for rows in snapshot.rows(one, columns, self._overrides.get(one.full_name)):
                for values in rows:
                    yield table, values

    # The stream.

    def _stream(self, todo: Plan) -> None:
        position = Position.of(self._capture.offset) if todo.keeps_position else Position()
        self._events.start(position)
        more = {"messages": "true"} if self._server.version >= MESSAGES_SINCE else {}
        replication, take = self._replication, self._events.take
        with told():
            replication.start(self._slot, self._config["publication.name"], position.finished, more)
            self._is_streaming = True
            closed = self._feed.closed
            try:
                while not closed.is_set():
                    message = replication.cursor.read_message()
                    if message is None:
                        self._idle()
                    else:
                        self._add(take(message.payload, message.data_start))
                        if self._events.is_between and message.payload[:1] == b"C":
                            self._between(self._events.position.finished)
            except Closed:
                log.debug("the capture of %s ends", self._events.server)
            replication.acknowledge(self._capture.acknowledged)

    def _add(self, records: list[Record]) -> None:
        self._batch.records += records
        if len(self._batch.records) >= Batch.MOST:
            self._flush()

    def _flush(self) -> None:
        """Hand on what there is; wait for room, and keep the server informed meanwhile."""
        batch, self._batch = self._batch, Batch()
        batch.position = self._position
        if batch.records:
            self._capture.offset = batch.records[-1].source_offset or {}
        while not self._feed.offer(batch):
            self._tell()

    def _between(self, position: int) -> None:
        """Do what is done between transactions: `position` is where everything before was taken."""
        self._position = max(self._position, position)
        self._beat()
        self._watch()
        incremental = self._capture.incremental
        for key, values in incremental.passed(self._position):
            self._add(self._events.read_again(self._chunk_table, key, values))
        if incremental.wants_chunk:
            self._read_chunk()

    def _idle(self) -> None:
        """Nothing came: hand on what there is, then wait a little."""
        before = self._position
        if self._events.is_between:
            self._between(self._replication.received)
        if self._batch.records or self._position > before:
            self._flush()
        waits = self._capture.incremental.chunk is not None
        self._tell(reply=waits)
        if not self._capture.incremental.wants_chunk:
            select.select([self._replication.connection], [], [], TICK_S)

    def _tell(self, *, reply: bool = False) -> None:
        """Acknowledge what was committed; `reply` makes the server say how far it is."""
        now, lsn = time.monotonic(), self._capture.acknowledged
        since = now - self._told_at
        is_due = since >= self._config["status.update.interval.ms"] / 1000
        if self._is_streaming and (reply or is_due or (lsn > self._told and since >= ACKNOWLEDGE_S)):
            self._replication.acknowledge(lsn, reply=reply)
            self._told_at, self._told = now, lsn

    def _beat(self) -> None:
        every = self._config["heartbeat.interval.ms"] / 1000
        if not every or not self._position or time.monotonic() - self._beat_at < every:
            return
        self._beat_at = time.monotonic()
        if self._config["heartbeat.action.query"]:
            self._server.rows(self._config["heartbeat.action.query"])
        self._add([self._events.heartbeat(self._position)])

    def _watch(self) -> None:
        """Warn before the database gives up the log that the slot needs."""
        if time.monotonic() - self._watched_at < WATCH_S:
            return
        self._watched_at = time.monotonic()
        slot = self._server.slot(self._slot)
        if slot is not None and (warning := slot.warning):
            log.warning("%s", warning)

    # Incremental snapshots.

    def _read_chunk(self) -> None:
        """Read the next chunk of the table whose turn it is; see `snapshot.py` for when it is sent."""
        incremental, server = self._capture.incremental, self._server
        name = incremental.tables[0]
        found = server.tables(lambda one: one == name, by_root=self._by_root)
        if not found or not self._tables.takes(name):
            log.warning("the incremental snapshot leaves out %s: it is not a table that is captured", name)
            return incremental.next_table()
        table, columns = self._tables.of_catalogue(found[0].id, found[0].schema, found[0].name)
        key = [column.name for column in self._key_columns(found[0].id)]
        if not key:
            log.warning("the incremental snapshot leaves out %s: it has no primary key", name)
            return incremental.next_table()
        tests = [key_after(server, key, incremental.last), incremental.conditions.get(name, "")]
        where = " AND ".join(f"({one})" for one in tests if one)
        order = f" ORDER BY {', '.join(map(quoted, key))} LIMIT {self._config['incremental.snapshot.chunk.size']}"
        server.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            self._events.visible = Visible.of(server.one("SELECT pg_current_snapshot()::text")[0])
            rows = rows_of(server, statement(found[0], columns, where, order))
        finally:
            server.rows("ROLLBACK")
        self._chunk_table = table
        incremental.took({table.key_texts(one): one for one in rows}, server.insert_position())
        return None

    def _key_columns(self, table: int) -> list[Any]:
        found = [one for one in self._server.columns(table) if one.key_place]
        return sorted(found, key=lambda one: one.key_place)

    _chunk_table: Captured
