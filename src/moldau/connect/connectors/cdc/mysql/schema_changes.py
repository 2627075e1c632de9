"""Events of schema changes: the topic `topic.prefix` gets the statements that change captured databases and tables.

Statements are not parsed beyond the tables that they name. What such a table looks like is read from the catalogue, so
it may be newer than the statement; a table that is gone by then has no description.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moldau.connect.connectors.cdc.envelope import OPTIONAL_STRING, At
from moldau.connect.connectors.cdc.mysql.server import Server, quoted
from moldau.connect.connectors.cdc.mysql.types import BINARIES, GEOMETRIES, NOW, TEXTS
from moldau.connect.data import INT32, INT64, OPTIONAL, STRING, Record, Schema, Struct, Type, array, struct

CREATE, ALTER, DROP = "CREATE", "ALTER", "DROP"
_NAMES = array(STRING, optional=True)
_SCHEMA = "io.debezium.connector.schema."
COLUMN = struct(
    {
        "name": STRING,
        "jdbcType": INT32,
        "nativeType": OPTIONAL[Type.INT32],
        "typeName": STRING,
        "typeExpression": OPTIONAL_STRING,
        "charsetName": OPTIONAL_STRING,
        "length": OPTIONAL[Type.INT32],
        "scale": OPTIONAL[Type.INT32],
        "position": INT32,
        **dict.fromkeys(("optional", "autoIncremented", "generated"), OPTIONAL[Type.BOOLEAN]),
        "comment": OPTIONAL_STRING,
        "defaultValueExpression": OPTIONAL_STRING,
        "enumValues": _NAMES,
    },
    name=_SCHEMA + "Column",
    version=1,
)
TABLE = struct(
    {
        "defaultCharsetName": OPTIONAL_STRING,
        "primaryKeyColumnNames": _NAMES,
        "columns": array(COLUMN),
        "comment": OPTIONAL_STRING,
    },
    name=_SCHEMA + "Table",
    version=1,
    optional=True,
)
CHANGE = struct({"type": STRING, "id": STRING, "table": TABLE}, name=_SCHEMA + "Change", version=1)
JDBC: Mapping[str, int] = {  # numbers of java.sql.Types
    **dict.fromkeys(TEXTS, 12),
    **dict.fromkeys(BINARIES, 2004),
    **dict.fromkeys((*GEOMETRIES, "point", "json", "uuid", "vector"), 1111),
    "char": 1,
    "enum": 1,
    "set": 1,
    "decimal": 3,
    "int": 4,
    "mediumint": 4,
    "year": 4,
    "smallint": 5,
    "float": 6,
    "double": 8,
    "date": 91,
    "time": 92,
    "datetime": 93,
    "timestamp": 2014,
    "binary": -2,
    "varbinary": -3,
    "bigint": -5,
    "tinyint": 5,
    "bit": -7,
}
_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_TABLE = rf"{_NAME}(?:\s*\.\s*{_NAME})?"
_COMMENTS = re.compile(r"(?:\s+|/\*(?!!).*?\*/|(?:--\s|#)[^\n]*(?:\n|$))+", re.DOTALL)
_INDEX = r"(?:ONLINE\s+|OFFLINE\s+)?"
_ONE = (  # an index that is not unique changes nothing of a table
    (CREATE, rf"CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?({_TABLE})"),
    (ALTER, rf"ALTER\s+(?:ONLINE\s+)?(?:IGNORE\s+)?TABLE\s+(?:IF\s+EXISTS\s+)?({_TABLE})"),
    (ALTER, rf"CREATE\s+(?:OR\s+REPLACE\s+)?{_INDEX}UNIQUE\s+INDEX\b.*?\sON\s+({_TABLE})"),
    ("", rf"CREATE\s+(?:OR\s+REPLACE\s+)?{_INDEX}(?:\w+\s+)?INDEX\b.*?\sON\s+({_TABLE})"),
    ("", rf"DROP\s+{_INDEX}INDEX\b.*?\sON\s+({_TABLE})"),
)
_STATEMENTS = tuple((kind, re.compile(text, re.IGNORECASE | re.DOTALL)) for kind, text in _ONE)
_DROP = re.compile(rf"DROP\s+TABLES?\s+(?:IF\s+EXISTS\s+)?({_TABLE}(?:\s*,\s*{_TABLE})*)", re.IGNORECASE)
_RENAME = re.compile(r"RENAME\s+TABLES?\s+(?:IF\s+EXISTS\s+)?(.*)", re.IGNORECASE | re.DOTALL)
_RENAMED = re.compile(rf"({_TABLE})\s+(?:WAIT\s+\d+\s+|NOWAIT\s+)?TO\s+({_TABLE})", re.IGNORECASE)
_RENAME_IN_ALTER = re.compile(rf"\bRENAME\s+(?:TO\s+|AS\s+|=\s*)?({_TABLE})\s*(?:,|;|$)", re.IGNORECASE)
_DATABASE = re.compile(
    rf"(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?(?:DATABASE|SCHEMA)\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?({_NAME})",
    re.IGNORECASE,
)
_TEXT = re.compile(r"'(?:[^'\\]|''|\\.)*'", re.DOTALL)
_SIZES = re.compile(r"\((\d+)(?:,(\d+))?\)")


@dataclass(frozen=True, slots=True)
class Affected:
    """What a statement does to one table, or to a database if there is no table. `statement` is the part of it that
    does this, if that is not the whole.
    """

    kind: str
    database: str
    table: str = ""
    statement: str = ""


def affected(text: str, database: str) -> list[Affected]:
    """Return what a statement changes, in order; nothing if it changes neither tables nor a database."""
    text = _COMMENTS.sub(" ", text[:200]).lstrip() + text[200:]
    for kind, pattern in _STATEMENTS:
        if found := pattern.match(text):
            renamed = _RENAME_IN_ALTER.search(_TEXT.sub("''", text)) if kind == ALTER else None
            one = _of(kind, (renamed or found)[1], database)
            return [one if kind else Affected("", one.database)]
    if found := _DROP.match(text):
        dropped = [_of(DROP, name, database) for name in re.findall(_TABLE, found[1])]
        before = text[: found.start(1)]
        return [replace(one, statement=before + quoted(one.database, one.table)) for one in dropped]
    if found := _RENAME.match(text):
        return [_of(ALTER, new, database) for _, new in _RENAMED.findall(found[1])]
    if found := _DATABASE.match(text):
        return [Affected("", _bare(found[1]))]
    return []


def _of(kind: str, name: str, database: str) -> Affected:
    *own, table = re.findall(_NAME, name)
    return Affected(kind, _bare(own[0]) if own else database, _bare(table))


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


class SchemaChanges:
    """Makes the records of one connector."""

    def __init__(self, connector: str, topic: str, source: Schema, adjust: Callable[[str], str]) -> None:
        self._topic = topic
        name = f"io.debezium.connector.{connector}."
        self._key = struct({"databaseName": STRING}, name=adjust(name + "SchemaChangeKey"), version=1)
        parts = dict.fromkeys(("databaseName", "schemaName", "ddl"), OPTIONAL_STRING)
        fields = {"source": source, "ts_ms": INT64, **parts, "tableChanges": array(CHANGE)}
        self._value = struct(fields, name=adjust(name + "SchemaChangeValue"), version=1)

    def record(self, at: At, database: str, statement: str, changes: Sequence[Struct]) -> Record:
        values = (at.source, time.time_ns() // 1_000_000, database, None, statement, list(changes))
        key, value = Struct(self._key, (database,)), Struct(self._value, values)
        return Record(self._topic, 0, self._key, key, self._value, value, None, (), at.partition, at.offset)


def change_of(server: Server, one: Affected, comments: bool) -> Struct:
    """Describe what has happened to a table, with its comments or without."""
    table = None if one.kind == DROP else described(server, one.database, one.table, comments)
    return Struct(CHANGE, (one.kind, f'"{one.database}"."{one.table}"', table))


def described(server: Server, database: str, name: str, comments: bool) -> Struct | None:
    """Return a table as it is now; None if it is gone."""
    server.await_change(database, name)
    rows = server.rows(
        "SELECT column_name, data_type, column_type, character_set_name, is_nullable, extra, column_default, "
        "ordinal_position, column_comment FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
        "ORDER BY ordinal_position",
        (database, name),
    )
    if not rows:
        return None
    about = server.rows(
        "SELECT c.character_set_name, t.table_comment FROM information_schema.tables t "
        "JOIN information_schema.collations c ON c.collation_name = t.table_collation "
        "WHERE t.table_schema = %s AND t.table_name = %s",
        (database, name),
    )
    charset, comment = about[0] if about else (None, "")
    columns = [_column(server, comments, *row) for row in rows]
    return Struct(TABLE, (charset, server.key(database, name), columns, (comments and comment) or None))


def _column(
    server: Server,
    comments: bool,
    name: str,
    kind: str,
    whole: str,
    charset: str | None,
    nullable: str,
    extra: str,
    default: Any,
    position: int,
    comment: str,
) -> Struct:
    kind, flags = kind.lower(), whole.rpartition(")")[2].split()
    labels = re.findall(r"'(?:[^']|'')*'", whole) if kind in ("enum", "set") else None
    sizes = _SIZES.search(whole) if labels is None else None
    length, scale = (int(size) if size else None for size in sizes.groups()) if sizes else (None, None)
    if labels is not None:
        length = 1 if kind == "enum" else 2 * len(labels) - 1
    type_name = " ".join([kind, *(flag for flag in flags if flag in ("unsigned", "zerofill"))]).upper()
    counts = "auto_increment" in extra
    text = server.default(kind, default, extra)
    parts = (name, JDBC.get(kind, 1111), None, type_name, type_name, charset, length, scale, int(position))
    return Struct(
        COLUMN, (*parts, nullable == "YES", counts, counts, (comments and comment) or None, _expression(text), labels)
    )


def _expression(default: str | None) -> str | None:
    """Return a default as Debezium writes it: a text as it stands between its quotes, and the time 0 for the time when
    a row is inserted. It knows no other expressions.
    """
    if default is None or default.upper() == "NULL":
        return None
    if found := re.fullmatch(r"b?'((?:[^']|'')*)'", default, re.DOTALL):
        return found[1]
    if default.lower().startswith(NOW):
        return "1970-01-01 00:00:00"
    if default.startswith("0x"):  # a text of bytes in MySQL
        return bytes.fromhex(default[2:]).decode("latin_1")
    return None if "(" in default else default


def beginning(server: Server, tables: Sequence[tuple[str, str]]) -> list[tuple[str, str, list[Affected]]]:
    """Return the statements that make the tables of a snapshot, with their databases and what they do."""
    names = ("character_set_server", "collation_server")
    variables = ", ".join(f"{name}={server.variable(name)}" for name in names)
    found: list[tuple[str, str, list[Affected]]] = [("", f"SET {variables}", [])]
    found += [
        (database, f"DROP TABLE IF EXISTS {quoted(database, table)}", [Affected(DROP, database, table)])
        for database, table in tables
    ]
    for database in dict.fromkeys(one for one, _ in tables):
        [(charset, collation)] = server.rows(
            "SELECT default_character_set_name, default_collation_name FROM information_schema.schemata "
            "WHERE schema_name = %s",
            (database,),
        )
        found.append((database, f"DROP DATABASE IF EXISTS {quoted(database)}", []))
        found.append((database, f"CREATE DATABASE {quoted(database)} CHARSET {charset} COLLATE {collation}", []))
        found.append((database, f"USE {quoted(database)}", []))
        for table in (name for owner, name in tables if owner == database):
            statement = server.one(f"SHOW CREATE TABLE {quoted(database, table)}")[1]
            found.append((database, statement, [Affected(CREATE, database, table)]))
    return found
