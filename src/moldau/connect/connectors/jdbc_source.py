"""JDBC source: rows of tables, or of a query, into topics; new and changed ones by a column that grows.

The modes are those of Confluent's connector: `bulk` reads everything each time, `incrementing` what has a higher
number, `timestamp` what has a later time, `timestamp+incrementing` both. The offset is the last value that was seen, so
a task that goes on from it misses nothing. In mode `timestamp` rows of the same time stay in one poll: their offset
says that all of them were read.

Each task lists the tables itself, every `table.poll.interval.ms`, and takes its share of them by their names: tables
that come and go need no new configuration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC
from typing import Any
from zlib import crc32
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key, one_of
from moldau.connect.connector import SOURCE, Config, SourceContext
from moldau.connect.connectors.database_rows import INCREMENTING, MOMENT, NANOS, WHEN, Rows, Seen, micros
from moldau.connect.connectors.databases import KEYS, SQLITE, Column, Database, Table, a_jdbc_url
from moldau.connect.data import EPOCH, Record
from moldau.connect.errors import ConfigError, ConnectError, RetriableError, invalid
from moldau.connect.offset_topic import SourceOffset, SourcePartition

MAPPINGS = ("none", "precision_only", "best_fit")
MODES = ("bulk", "timestamp", INCREMENTING, "timestamp+incrementing")
FETCHED = 1000  # rows at a time


def _zone(name: str, value: Any) -> None:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError):
        raise invalid(name, value, "there is no such time zone") from None


class JdbcSource:
    """Tables of a database, or one query."""

    kind = SOURCE
    task_class = "io.confluent.connect.jdbc.source.JdbcSourceTask"
    exactly_once = True
    config = ConfigDef(
        [
            *(Key(k.name, k.kind, k.default, k.importance, k.doc, validator=a_jdbc_url) for k in KEYS[:1]),
            *KEYS[1:],
            Key("mode", importance=Importance.HIGH, doc="How new rows are found.", validator=one_of(*MODES)),
            key("incrementing.column.name", "", "The column whose numbers grow; by default the key of the table."),
            key("timestamp.column.name", [], "Columns with the time of the last change, first not null.", Kind.LIST),
            key("timestamp.initial", None, "Where to begin, in ms since 1970; -1 is now.", Kind.LONG),
            key("timestamp.delay.interval.ms", 0, "How old a change must be to be read.", Kind.LONG),
            key("timestamp.granularity", "connect_logical", "Type of times.", validator=one_of("connect_logical")),
            key("validate.non.null", True, "Refuse a column for the mode that may be null.", Kind.BOOLEAN),
            key("table.whitelist", [], "Tables to read; by default all of them.", Kind.LIST),
            key("table.include.list", [], "Another name of table.whitelist.", Kind.LIST),
            key("table.blacklist", [], "Tables not to read.", Kind.LIST),
            key("table.exclude.list", [], "Another name of table.blacklist.", Kind.LIST),
            key("table.types", ["TABLE"], "Kinds of tables: TABLE, VIEW.", Kind.LIST),
            key("schema.pattern", None, "The only schema whose tables are read."),
            key("query", "", "A query to read instead of tables."),
            key("query.suffix", "", "Text to end each statement with."),
            key("numeric.mapping", "none", "Type of numerics.", validator=one_of("none", "precision_only", "best_fit")),
            key("db.timezone", "UTC", "The zone of times that say nothing of it.", validator=_zone),
            Key("topic.prefix", importance=Importance.HIGH, doc="The topic's name before that of the table."),
            key("poll.interval.ms", 5000, "How often to look for new rows.", Kind.INT, validator=between(0)),
            key("batch.max.rows", 100, "The most rows of a poll.", Kind.INT, validator=between(1)),
            key("table.poll.interval.ms", 60_000, "How often to look for new tables.", Kind.LONG),
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        parsed = check(self.config.parse(config))
        named = parsed["table.whitelist"] or parsed["table.include.list"]
        count = 1 if parsed["query"] else min(most, len(named) or most)
        return [{**config, "task.number": str(n), "task.count": str(count)} for n in range(count)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        if not ({"table", "query"} & partition.keys()):
            raise ConnectError("Partition objects should contain the key 'table' or 'query'")
        for name in (INCREMENTING, WHEN, NANOS):
            if offset is not None and not isinstance(offset.get(name, 0), int):
                raise ConnectError(f"The value for the '{name}' key in the offset is expected to be a Long value")

    def open(self, context: SourceContext) -> Reading:
        return Reading(context)


def check(parsed: dict[str, Any]) -> dict[str, Any]:
    """Refuse settings that do not go together; ConfigError."""
    mode = parsed["mode"]
    if "timestamp" in mode and not parsed["timestamp.column.name"]:
        raise ConfigError(f"The mode {mode} needs timestamp.column.name.")
    if mode == INCREMENTING and parsed["query"] and not parsed["incrementing.column.name"]:
        raise ConfigError("A query in mode incrementing needs incrementing.column.name.")
    if mode == "timestamp+incrementing" and not parsed["incrementing.column.name"]:
        raise ConfigError(f"The mode {mode} needs incrementing.column.name.")
    if parsed["query"] and (parsed["table.whitelist"] or parsed["table.blacklist"]):
        raise ConfigError("A query and lists of tables exclude each other.")
    return parsed


class Reading:
    """The task: one table after the other, each with a cursor that may last for several polls."""

    def __init__(self, context: SourceContext) -> None:
        self._context = context
        self._config = config = check(JdbcSource.config.parse(context.config))
        self._number, self._count = (int(context.config.get(f"task.{n}", d)) for n, d in (("number", 0), ("count", 1)))
        self._database = Database(config, context.wait)
        self._streams: dict[str, Stream] = {}
        self._listed_at = -float("inf")
        self._turns: Iterator[Stream] = iter(())
        self._next_round = 0.0

    def poll(self) -> Sequence[Record]:
        try:
            return self._poll()
        except RetriableError:
            self._forget()
            self._context.wait(1.0)
            raise

    def _poll(self) -> Sequence[Record]:
        while (stream := next(self._turns, None)) is not None:
            records = stream.poll()
            if records:
                self._turns = _after(stream, self._turns)
                return records
        if self._context.wait(min(0.5, max(0.0, self._next_round - time.monotonic()))):
            return ()
        if time.monotonic() >= self._next_round:
            self._list()
            self._turns = iter(list(self._streams.values()))
            self._next_round = time.monotonic() + self._config["poll.interval.ms"] / 1000
        return ()

    def _list(self) -> None:
        """Find out which tables there are."""
        config, now = self._config, time.monotonic()
        if config["query"]:
            self._streams = self._streams or {"": self._stream(None)}
            return
        if self._streams and now - self._listed_at < config["table.poll.interval.ms"] / 1000:
            return
        self._listed_at = now
        tables = {one.full_name: one for one in self._database.tables(config["table.types"]) if self._takes(one)}
        for name in self._streams.keys() - tables.keys():
            self._streams.pop(name).close()
        for name in tables.keys() - self._streams.keys():
            self._streams[name] = self._stream(tables[name])

    def _takes(self, table: Table) -> bool:
        config, names = self._config, {table.name, table.full_name}
        wanted = config["table.whitelist"] or config["table.include.list"]
        refused = {*config["table.blacklist"], *config["table.exclude.list"]}
        if (wanted and not names & {one.rpartition(".")[2] if one not in names else one for one in wanted}) or (
            names & refused
        ):
            return False
        if config["schema.pattern"] and table.schema not in ("", config["schema.pattern"]):
            return False
        return crc32(table.full_name.encode()) % self._count == self._number

    def _stream(self, table: Table | None) -> Stream:
        return Stream(self._database, self._config, table, self._context.offset)

    def _forget(self) -> None:
        """Begin anew with the connection and all cursors."""
        for stream in self._streams.values():
            stream.close()
        self._database.drop()
        self._turns, self._next_round = iter(()), 0.0

    def close(self) -> None:
        self._forget()


def _after(stream: Stream, others: Iterator[Stream]) -> Iterator[Stream]:
    """Let the others have their turn before this one has its next."""
    yield from others
    yield stream


class Stream:
    """The rows of one table, or of the query, in the order of what makes them new."""

    def __init__(
        self,
        database: Database,
        config: Mapping[str, Any],
        table: Table | None,
        offset: Callable[[SourcePartition], SourceOffset | None],
    ) -> None:
        self._database, self._config, self._table = database, config, table
        self.partition: dict[str, str] = {"protocol": "1", "table": table.full_name} if table else {"query": "query"}
        self._topic = config["topic.prefix"] + (table.name if table else "")
        self._zone = ZoneInfo(config["db.timezone"])
        self._mode: str = config["mode"]
        self._seen = Seen.of(offset(self.partition), config["timestamp.initial"])
        self._open: ExitStack | None = None
        self._cursor: Any = None
        self._row: Any = None  # the first of the next poll
        self._rows: Rows | None = None

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = self._cursor = self._row = None

    def poll(self) -> Sequence[Record]:
        """Return the next rows; none when all that there were have been read."""
        if self._cursor is None and not self._begin():
            return ()
        rows = self._take()
        if not rows:
            self.close()
            return ()
        return [self._record(row, last) for row, last in rows]

    def _begin(self) -> bool:
        """Ask for what is new; return False if the table is gone, which the next list of tables will show."""
        columns = self._database.columns(self._table) if self._table else []
        if self._table and not columns:
            return False
        number = self._number_column(columns)
        self._check(columns, number)
        statement, values = self._statement(number, columns)
        self._open = ExitStack()
        self._cursor = self._open.enter_context(self._database.cursor(streaming=True))
        self._cursor.execute(statement, tuple(values)) if values else self._cursor.execute(statement)
        self._fetched = fetched(self._cursor)
        names = [one[0] for one in self._cursor.description]
        if self._rows is None or self._rows.names != names or self._rows.columns != columns:
            self._rows = Rows(names, columns, self._config, self._table)
        self._number = number
        return True

    def _number_column(self, columns: Sequence[Column]) -> str:
        named = self._config["incrementing.column.name"]
        if INCREMENTING not in self._mode or named:
            return named
        keys = [one.name for one in columns if one.is_key]
        if len(keys) != 1:
            raise ConnectError(f"Name the incrementing column of {self.partition}: it has {len(keys)} key columns.")
        return keys[0]

    def _check(self, columns: Sequence[Column], number: str) -> None:
        if not self._config["validate.non.null"] or not columns or self._mode == "bulk":
            return
        known = {one.name: one for one in columns}
        times = self._config["timestamp.column.name"] if "timestamp" in self._mode else []
        for name in filter(None, [number, *times]):
            if name not in known:
                raise ConnectError(f"The table {self._topic} has no column {name}.")
        for group in ([number] if number else [], times):
            if group and not any(known[name].is_required for name in group):
                named = " and ".join(group)
                raise ConnectError(
                    f"Cannot make incremental queries using {named} on {self._topic}: it may be null. "
                    "Set validate.non.null=false to leave out rows where it is."
                )

    def _statement(self, number: str, columns: Sequence[Column]) -> tuple[str, list[Any]]:
        dialect, config = self._database.dialect, self._config
        text: str = config["query"] if self._table is None else f"SELECT * FROM {dialect.place(self._table)}"
        tests, values, order = [], list[Any](), []
        if "timestamp" in self._mode:
            moment = self._moment(config["timestamp.column.name"])
            end = self._now() - config["timestamp.delay.interval.ms"] * 1000
            tests.append(f"{moment} < {dialect.mark}")
            values.append(self._value(end, columns))
            if self._seen.moment is not None:
                seen = self._value(self._seen.moment, columns)
                later = f"{moment} > {dialect.mark}"
                if INCREMENTING in self._mode and self._seen.number is not None:
                    later += f" OR ({moment} = {dialect.mark} AND {dialect.quoted(number)} > {dialect.mark})"
                    values += [seen, seen, self._seen.number]
                else:
                    values.append(seen)
                tests.append(f"({later})")
            order.append(moment)
        elif INCREMENTING in self._mode and self._seen.number is not None:
            tests.append(f"{dialect.quoted(number)} > {dialect.mark}")
            values.append(self._seen.number)
        elif INCREMENTING in self._mode:
            tests.append(f"{dialect.quoted(number)} IS NOT NULL")
        if INCREMENTING in self._mode:
            order.append(dialect.quoted(number))
        if config["query"] and dialect.mark == "%s" and values:
            text = text.replace("%", "%%")
        text += f" WHERE {' AND '.join(tests)}" if tests else ""
        text += f" ORDER BY {', '.join(order)}" if order else ""
        return f"{text} {config['query.suffix']}".rstrip(), values

    def _moment(self, names: Sequence[str]) -> str:
        quoted = [self._database.dialect.quoted(one) for one in names]
        one = quoted[0] if len(quoted) == 1 else f"COALESCE({', '.join(quoted)})"
        if self._database.dialect is not SQLITE:
            return one
        days = f"ROUND((julianday({one}) - 2440587.5) * 86400000)"
        return f"(CASE typeof({one}) WHEN 'integer' THEN {one} ELSE CAST({days} AS INTEGER) END)"

    def _now(self) -> int:
        """Return the database's own time, in microseconds since 1970."""
        match self._database.dialect.name:
            case "PostgreSQL":
                return micros(self._database.rows("SELECT now()")[0][0], UTC)
            case "MariaDB":
                return micros(self._database.rows("SELECT UTC_TIMESTAMP(6)")[0][0], UTC)
            case _:
                return time.time_ns() // 1000

    def _value(self, moment: int, columns: Sequence[Column]) -> Any:
        """Return a moment as the database compares it with the column."""
        if self._database.dialect is SQLITE:
            return moment // 1000
        kinds = {one.name: one.kind for one in columns}
        aware = EPOCH + moment * MOMENT
        if "with time zone" in kinds.get(self._config["timestamp.column.name"][0], ""):
            return aware
        return aware.astimezone(self._zone).replace(tzinfo=None)

    def _take(self) -> list[tuple[Any, Seen]]:
        """Fetch the rows of a poll, each with what was seen after it."""
        assert self._rows is not None
        rows, most = [], self._config["batch.max.rows"]
        row = self._row if self._row is not None else next(self._fetched, None)
        while row is not None:
            seen = self._rows.seen(row, self._mode, self._number, self._zone)
            if len(rows) >= most and not (self._mode == "timestamp" and seen == rows[-1][1]):
                break
            rows.append((row, seen))
            row = next(self._fetched, None)
        self._row = row
        return rows

    def _record(self, row: Any, seen: Seen) -> Record:
        assert self._rows is not None
        schema, value = self._rows.value(row, self._zone)
        self._seen = seen
        now, offset = time.time_ns() // 1_000_000, seen.offset() or None
        partition = self.partition if offset else None
        return Record(self._topic, None, None, None, schema, value, now, (), partition, offset)


def fetched(cursor: Any) -> Iterator[Any]:
    while rows := cursor.fetchmany(FETCHED):
        yield from rows
