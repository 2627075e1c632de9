"""Settings that the connectors for change data capture share, under Debezium's names, and filters of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.connect.config_def import Importance, Key, Kind, between, non_empty, one_of
from moldau.connect.config_def import key as setting
from moldau.connect.connectors.cdc.envelope import topic_name
from moldau.connect.errors import ConfigError, invalid
from moldau.connect.names import adjuster, adjustment
from moldau.java.regex import RegexError, compile_regex

DECIMAL_MODES = ("precise", "double", "string")
BINARY_MODES = ("bytes", "base64", "base64-url-safe", "hex")
OPERATIONS = ("c", "u", "d", "t", "none")


def number(name: str, default: int, doc: str, least: int = 0) -> Key:
    return setting(name, default, doc, Kind.LONG, validator=between(least))


def patterns(name: str, value: Any) -> None:
    """Refuse a list with something that is not a regular expression."""
    for one in value or ():
        try:
            compile_regex(one)
        except RegexError as error:
            raise invalid(name, one, f"it is not a regular expression: {error}") from None


def _operations(name: str, value: Any) -> None:
    if unknown := [one for one in value or () if one not in OPERATIONS]:
        raise invalid(name, unknown[0], f"it must be one of {', '.join(OPERATIONS)}")


SHARED = (
    Key("topic.prefix", importance=Importance.HIGH, doc="The first part of the topics' names.", validator=non_empty),
    setting(
        "topic.delimiter", ".", "What stands between the parts of a topic's name.", validator=one_of(".", "-", "_")
    ),
    setting("table.include.list", [], "Tables to capture, as regular expressions.", Kind.LIST, validator=patterns),
    setting("table.exclude.list", [], "Tables not to capture, likewise.", Kind.LIST, validator=patterns),
    setting("column.include.list", [], "Columns to capture, as SCHEMA.TABLE.COLUMN.", Kind.LIST, validator=patterns),
    setting("column.exclude.list", [], "Columns not to capture, likewise.", Kind.LIST, validator=patterns),
    setting("message.key.columns", "", "Keys of tables: TABLE:COLUMN,COLUMN;TABLE:COLUMN."),
    setting("tombstones.on.delete", True, "Follow each delete by a tombstone.", Kind.BOOLEAN),
    setting(
        "skipped.operations", ["t"], "Operations to leave out: c, u, d, t, or none.", Kind.LIST, validator=_operations
    ),
    setting("decimal.handling.mode", "precise", "Type of decimals.", validator=one_of(*DECIMAL_MODES)),
    setting("binary.handling.mode", "bytes", "Type of binary values.", validator=one_of(*BINARY_MODES)),
    adjustment("schema.name.adjustment.mode", "names of schemas"),
    adjustment("field.name.adjustment.mode", "names of fields"),
    setting("provide.transaction.metadata", False, "Tell where transactions begin and end.", Kind.BOOLEAN),
    setting("topic.transaction", "transaction", "The last part of the name of the topic for transactions."),
    number("heartbeat.interval.ms", 0, "How often to write a heartbeat; 0 is never."),
    setting("topic.heartbeat.prefix", "__debezium-heartbeat", "The first part of the heartbeats' topic."),
    setting("heartbeat.action.query", "", "A statement to run in the database with each heartbeat."),
    setting("signal.data.collection", "", "The table whose rows are signals."),
    number("incremental.snapshot.chunk.size", 1024, "Rows of a chunk of an incremental snapshot.", 1),
    number("snapshot.max.threads", 1, "Connections that read a snapshot at the same time.", 1),
    setting(
        "snapshot.include.collection.list",
        [],
        "Tables of the snapshot; all captured ones by default.",
        Kind.LIST,
        validator=patterns,
    ),
    setting("snapshot.select.statement.overrides", [], "Tables that are read by a statement of yours.", Kind.LIST),
    number("max.batch.size", 2048, "The most changes of a poll.", 1),
    number("max.queue.size", 8192, "The most changes that wait.", 1),
    number("retriable.restart.connector.wait.ms", 10_000, "How long to wait before the next connection."),
)


def matcher(include: Sequence[str], exclude: Sequence[str]) -> Callable[[str], bool]:
    """Return what says whether a name is captured: expressions match it whole, in any case, as in Debezium."""
    if include and exclude:
        raise ConfigError("An include list and an exclude list exclude each other: set one of them.")
    listed = [compile_regex(one.strip(), ignore_case=True) for one in include or exclude]
    wanted = bool(include)

    def takes(name: str) -> bool:
        return not listed or any(one.fullmatch(name) for one in listed) == wanted

    return takes


def key_columns(text: str) -> Callable[[str], list[str] | None]:
    """Read `message.key.columns`; return what names the columns of a table's key, or None for the primary key."""
    rows: list[tuple[re.Pattern[str], list[str]]] = []
    for one in filter(None, (part.strip() for part in text.split(";"))):
        table, colon, columns = one.rpartition(":")
        names = [name.strip() for name in columns.split(",") if name.strip()]
        if not colon or not names:
            raise invalid("message.key.columns", text, "write TABLE:COLUMN,COLUMN and separate tables by ;")
        rows.append((_key_pattern(text, table), names))
    return lambda name: next((columns for pattern, columns in rows if pattern.fullmatch(name)), None)


def _key_pattern(text: str, table: str) -> re.Pattern[str]:
    try:
        return compile_regex(table.strip(), ignore_case=True)
    except RegexError as error:
        raise invalid("message.key.columns", text, f"{table} is not a regular expression: {error}") from None


class Filters:
    """Which tables and columns are captured, with which key, under which names.

    `level` is what holds tables: "schema" in PostgreSQL, "database" in MariaDB and MySQL. ConfigError if the settings
    do not go together.
    """

    def __init__(self, config: Mapping[str, Any], level: str) -> None:
        self._prefix, self._delimiter = config["topic.prefix"], config["topic.delimiter"]
        self.takes_level, self._in_tables, self.takes_column = (
            matcher(config[f"{what}.include.list"], config[f"{what}.exclude.list"])
            for what in (level, "table", "column")
        )
        self.key_of = key_columns(config["message.key.columns"])
        self.adjust = adjuster(config["schema.name.adjustment.mode"], dots=True)
        self.adjust_field = adjuster(config["field.name.adjustment.mode"], dots=False)

    def takes(self, schema: str, name: str) -> bool:
        return self.takes_level(schema) and self._in_tables(f"{schema}.{name}")

    def topic(self, schema: str, name: str) -> str:
        return topic_name(self._prefix, schema, name, delimiter=self._delimiter)


def overrides(config: Mapping[str, str]) -> dict[str, str]:
    """Return the statements that read tables in a snapshot, by the names of the tables."""
    prefix = "snapshot.select.statement.overrides."
    return {name.removeprefix(prefix): text for name, text in config.items() if name.startswith(prefix)}


def heartbeat_topic(config: Mapping[str, Any]) -> str:
    return f"{config['topic.heartbeat.prefix']}{config['topic.delimiter']}{config['topic.prefix']}"


def transaction_topic(config: Mapping[str, Any]) -> str:
    return f"{config['topic.prefix']}{config['topic.delimiter']}{config['topic.transaction']}"
