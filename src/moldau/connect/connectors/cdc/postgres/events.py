"""Messages of the stream into events, with their positions; what was sent before is left out."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from moldau.connect.connectors.cdc.envelope import (
    CREATE,
    INCREMENTAL,
    MESSAGE,
    READ,
    TRANSACTION_BLOCK,
    TRUNCATE,
    UPDATE,
    VERSION,
    At,
    Transaction,
    change,
    heartbeat,
)
from moldau.connect.connectors.cdc.postgres.position import Position, Visible
from moldau.connect.connectors.cdc.postgres.protocol import (
    Begin,
    Change,
    Commit,
    Message,
    Relation,
    Truncate,
    Values,
    decode,
)
from moldau.connect.connectors.cdc.postgres.tables import SOURCE, Captured
from moldau.connect.connectors.cdc.postgres.types import BINARY, UNCHANGED
from moldau.connect.connectors.cdc.settings import heartbeat_topic, transaction_topic
from moldau.connect.connectors.cdc.snapshot import Incremental
from moldau.connect.data import OPTIONAL, STRING, Record, Schema, Struct, Type, struct
from moldau.connect.errors import ConnectError

log = logging.getLogger(__name__)
NAME = "io.debezium.connector.postgresql."
MESSAGE_KEY = struct({"prefix": OPTIONAL[Type.STRING]}, name=NAME + "MessageKey", version=1)


def message_schemas(binary: str) -> tuple[Schema, Schema]:
    """Return the schemas of a logical message and of what surrounds it."""
    content = OPTIONAL[Type.BYTES if binary == "bytes" else Type.STRING]
    block = struct({"prefix": OPTIONAL[Type.STRING], "content": content}, name=NAME + "Message", version=1)
    around = {"op": STRING, "ts_ms": OPTIONAL[Type.INT64], "source": SOURCE, "transaction": TRANSACTION_BLOCK}
    return block, struct({**around, "message": block}, name=NAME + "MessageValue", version=1)


class Events:
    """The events of one connector. `position` is after the last message that was taken."""

    def __init__(
        self,
        config: Mapping[str, Any],
        form: Callable[[Relation], Captured | None],
        signals: str,
        system: str,
        incremental: Incremental,
    ) -> None:
        self._config, self._form, self._signals, self._system = config, form, signals, system
        self.server: str = config["topic.prefix"]
        self.partition = {"server": self.server}
        self.incremental = incremental
        self.visible: Visible | None = None  # what the chunk of the incremental snapshot sees
        self.position = Position()
        self._resumed: Position | None = None
        self._begun: Begin | None = None
        self._transaction: Transaction | None = None
        self._is_announced = False
        self._tables: dict[int, Captured | None] = {}
        self._skipped = set(config["skipped.operations"]) - {"none"}
        self._tombstones: bool = config["tombstones.on.delete"]
        self._time_us = time.time_ns() // 1000
        self._message_block, self._around = message_schemas(config["binary.handling.mode"])

    def start(self, position: Position) -> None:
        """Begin with the stream after a position: its transaction comes again, but its changes are not sent again."""
        self._resumed = self.position = position
        self._begun, self._transaction = None, None
        self._tables.clear()

    @property
    def is_between(self) -> bool:
        """Tell whether no transaction is under way."""
        return self._begun is None

    def take(self, data: bytes, lsn: int) -> list[Record]:
        """Return the events of a message."""
        match decode(data):
            case Change() as found:
                return self._change(found, lsn)
            case Begin() as found:
                self._begin(found, lsn)
            case Commit() as found:
                return self._commit(found)
            case Relation() as found:
                self._tables[found.id] = self._form(found)
            case Truncate() as found:
                return [record for one in found.relations for record in self._truncate(one, lsn)]
            case Message() as found:
                return self._message(found)
            case _:
                pass
        return []

    def _begin(self, found: Begin, lsn: int) -> None:
        self._begun, self._time_us = found, found.time_us
        self.position = Position(self.position.finished, None, self.position.lsn)
        if self._resumed is not None and self._resumed.xid != found.xid:
            self._resumed = None
        if self._config["provide.transaction.metadata"]:
            self._transaction = Transaction(f"{found.xid}:{lsn}", found.time_us // 1000)
            self._is_announced = False

    def _commit(self, found: Commit) -> list[Record]:
        self.position = Position(found.end_lsn, None, found.lsn)
        transaction, self._transaction, self._begun = self._transaction, None, None
        self._resumed = None
        if transaction is None or not transaction.counts:
            return []
        return [transaction.boundary(transaction_topic(self._config), "END", self.partition, self.offset())]

    def offset(self, key: tuple[Any, ...] | None = None) -> dict[str, Any]:
        return {**self.position.offset(self._time_us, self._system), **self.incremental.stored(key)}

    def _moved(self, lsn: int) -> bool:
        """Go to the next change; return False if it was sent before."""
        assert self._begun is not None
        self.position = self.position.at(self._begun.xid, lsn)
        return self._resumed is None or not self._resumed.has(self.position)

    def _table(self, relation: int) -> Captured | None:
        if relation not in self._tables:
            raise ConnectError(f"The stream has a change of the table of number {relation}, which it did not describe.")
        return self._tables[relation]

    def _change(self, found: Change, lsn: int) -> list[Record]:
        table = self._table(found.relation)
        is_new = self._moved(lsn)
        if table is None:
            return []
        if self.visible is not None and self._begun is not None and not self.visible.sees(self._begun.xid):
            for values in filter(None, (found.old, found.new)):
                self.incremental.seen(table.full_name, table.key_texts(values))
        if table.full_name == self._signals:
            if found.op == CREATE and found.new is not None and is_new:
                self._signal(found.new)
            return []
        if found.op in self._skipped:
            return []
        first, block = self._announced(table.full_name, is_new)
        moved = None
        if found.op == UPDATE and found.old and found.new and table.key_texts(found.old) != table.key_texts(found.new):
            moved = self._announced(table.full_name, is_new)[1]
        if not is_new:
            return []
        before = None if found.old is None else table.row(found.old)
        after = None if found.new is None else table.row(found.new)
        at = self._at(table, block, moved)
        return first + change(table.events, found.op, before, after, at, tombstones=self._tombstones)

    def _announced(self, table: str, is_new: bool) -> tuple[list[Record], Struct | None]:
        """Count a change of the transaction; return what has to come before it, and its block."""
        if self._transaction is None:
            return [], None
        block = self._transaction.block(table)
        if self._is_announced or not is_new:
            return [], block
        self._is_announced = True
        if self._resumed is not None:  # it was announced before the restart
            return [], block
        topic = transaction_topic(self._config)
        return [self._transaction.boundary(topic, "BEGIN", self.partition, self.offset())], block

    def _signal(self, values: Values) -> None:
        _, kind, data = (None if one is UNCHANGED else one for one in [*values, None, None][:3])
        try:
            if not self.incremental.signal(kind or "", data):
                log.info("signal %s: %s", kind, data)
        except ConnectError as error:
            log.warning("%s", error)  # somebody's typing error must not end the stream

    def _truncate(self, relation: int, lsn: int) -> list[Record]:
        table = self._table(relation)
        is_new = self._moved(lsn)
        if table is None or TRUNCATE in self._skipped:
            return []
        if not is_new:
            self._announced(table.full_name, is_new)
            return []
        first, block = self._announced(table.full_name, is_new)
        return first + change(table.events, TRUNCATE, None, None, self._at(table, block))

    def _message(self, found: Message) -> list[Record]:
        include, exclude = (self._config[f"message.prefix.{what}.list"] for what in ("include", "exclude"))
        listed = any(re.fullmatch(one, found.prefix, re.IGNORECASE) for one in include or exclude)
        if (include and not listed) or (exclude and listed):
            return []
        is_new = not found.is_transactional or self._moved(found.lsn)
        first, block = self._announced("", is_new) if found.is_transactional else ([], None)
        if not is_new:
            return []
        now = time.time_ns() // 1_000_000
        source = self._source("", "", found.lsn, None if self._begun is None else self._begun.xid)
        content = BINARY[self._config["binary.handling.mode"]](found.content)
        value = Struct(
            self._around, (MESSAGE, now, source, block, Struct(self._message_block, (found.prefix, content)))
        )
        topic = f"{self.server}{self._config['topic.delimiter']}message"
        key = Struct(MESSAGE_KEY, (found.prefix,))
        return [
            *first,
            Record(topic, None, MESSAGE_KEY, key, self._around, value, None, (), self.partition, self.offset()),
        ]

    def _at(self, table: Captured, block: Struct | None, moved: Struct | None = None) -> At:
        source = self._source(table.schema, table.name, self.position.lsn, self.position.xid)
        return At(source, self.partition, self.offset(), block, moved)

    def _source(self, schema: str, table: str, lsn: int | None, xid: int | None, mark: str | None = None) -> Struct:
        at = self._time_us
        finished = str(self.position.finished) if self.position.finished else None
        sequence = json.dumps([finished, None if lsn is None else str(lsn)], separators=(",", ":"))
        database = self._config["database.dbname"]
        common = (VERSION, "postgresql", self.server, at // 1000, mark, database, sequence, at, at * 1000)
        return Struct(SOURCE, (*common, schema, table, xid, lsn, None, None, None))

    def read(
        self, table: Captured, values: Values, mark: str, lsn: int, xid: int, offset: Mapping[str, Any]
    ) -> list[Record]:
        """Return the event of a row of a snapshot."""
        at = At(self._source(table.schema, table.name, lsn, xid, mark), self.partition, offset)
        return change(table.events, READ, None, table.row(values), at)

    def read_again(self, table: Captured, key: tuple[Any, ...], values: Values) -> list[Record]:
        """Return the event of a row of an incremental snapshot."""
        source = self._source(table.schema, table.name, None, None, INCREMENTAL)
        return change(table.events, READ, None, table.row(values), At(source, self.partition, self.offset(key)))

    def heartbeat(self, received: int) -> Record:
        """Return a heartbeat; between transactions its offset is where the server is."""
        at = self.position
        if self.is_between:
            lsn = max(received, at.lsn) if at.xid is None else at.lsn  # the transaction of a restart may yet come
            self.position = replace(at, finished=max(received, at.finished), lsn=lsn)
        return heartbeat(heartbeat_topic(self._config), self.server, self.partition, self.offset())
