"""A MariaDB or MySQL: connections, the catalogue, positions of the binlog."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from moldau.connect.connectors.cdc.mysql.tls import tls_of
from moldau.connect.connectors.cdc.mysql.types import ColumnInfo
from moldau.connect.connectors.packages import needed
from moldau.connect.errors import ConnectError, RetriableError

CONNECT_S = 10
SYSTEM = ("mysql", "information_schema", "performance_schema", "sys")
# Errors of a connection or a moment; 1412: a table was altered while a snapshot was being read.
PASSING = (1040, 1053, 1205, 1213, 1412, 2002, 2003, 2006, 2013, 2014, 2055)
PURGED = 1236
_ALLOWED = re.compile(r"'((?:[^']|'')*)'")


class Place(NamedTuple):
    """A position in the binlog; places of a server are in order."""

    file: str
    pos: int


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what pymysql needs to connect."""
    host, password = config["database.hostname"], config["database.password"]
    at = {"unix_socket": host} if host.startswith("/") else {"host": host, "port": config["database.port"]}
    return (
        at
        | tls_of(config)
        | {
            "user": config["database.user"],
            "password": password.value if password else "",
            "charset": "utf8mb4",
            "connect_timeout": CONNECT_S,
        }
    )


@contextmanager
def failures() -> Iterator[None]:
    """Turn what the driver raises into RetriableError or ConnectError."""
    errors = needed("pymysql", "The MariaDB source", "mariadb").err
    try:
        yield
    except errors.Error as error:
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        if code == PURGED:
            raise ConnectError(
                f"The server no longer has the binlog at the position that was captured last ({error}). Take a new "
                "snapshot: reset the connector's offsets, or set snapshot.mode=when_needed."
            ) from error
        if code in PASSING or isinstance(error, errors.InterfaceError):
            raise RetriableError(f"The database cannot be reached: {error}") from error
        raise ConnectError(f"The database refused: {error}") from error
    except OSError as error:
        raise RetriableError(f"The database cannot be reached: {error}") from error


class Server:
    """A connection for questions; times are in UTC."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._pymysql = needed("pymysql", "The MariaDB source", "mariadb")
        with failures():
            self.connection = self._pymysql.connect(**settings_of(config), autocommit=True)
        self.rows("SET time_zone = '+00:00', lock_wait_timeout = 10")
        self.is_mariadb = "mariadb" in self.one("SELECT VERSION()")[0].lower()

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with failures(), self.connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def one(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        return self.rows(statement, values)[0]

    def streamed(self, statement: str) -> Iterator[dict[str, Any]]:
        """Yield rows, as values by column, without holding them all."""
        with failures(), self.connection.cursor(self._pymysql.cursors.SSDictCursor) as cursor:
            cursor.execute(statement)
            yield from cursor

    def escaped(self, text: str) -> str:
        """Return a text as a literal of SQL."""
        return self.connection.escape(text)

    def close(self) -> None:
        self.connection.close()

    def variable(self, name: str) -> str | None:
        found = self.rows("SHOW GLOBAL VARIABLES WHERE Variable_name = %s", (name,))
        return found[0][1] if found else None

    def check_ready(self) -> None:
        """Refuse a server whose binlog does not say enough, with a sentence."""
        wanted = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}
        for name, value in wanted.items():
            found = self.variable(name)
            if (found or "").upper() != value:
                raise ConnectError(f"The server has {name}={found}; changes can be captured with {name}={value}.")
        if partial := self.variable("binlog_row_value_options"):
            raise ConnectError(
                f"The server has binlog_row_value_options={partial}; changes can be captured if it is empty."
            )

    def place(self) -> Place:
        """Return the end of the binlog."""
        try:
            file, pos, *_ = self.one("SHOW MASTER STATUS")
        except ConnectError:  # MySQL 8.4 has another name for it
            file, pos, *_ = self.one("SHOW BINARY LOG STATUS")
        return Place(file, int(pos))

    def files(self) -> dict[str, int]:
        """Return the files of the binlog and their sizes, the oldest first."""
        return {row[0]: int(row[1]) for row in self.rows("SHOW BINARY LOGS")}

    def begin_snapshot(self) -> Place:
        """Begin a transaction that sees the tables as of a position, and return that. MariaDB needs no lock for it."""
        self.rows("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if self.is_mariadb:
            self.rows("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            found = {name.lower(): value for name, value in self.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")}
            return Place(found["binlog_snapshot_file"], int(found["binlog_snapshot_position"]))
        self.rows("FLUSH TABLES WITH READ LOCK")
        try:
            self.rows("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            return self.place()
        finally:
            self.rows("UNLOCK TABLES")

    def tables(self) -> list[tuple[str, str]]:
        found = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
            "ORDER BY table_schema, table_name"
        )
        return [(schema, name) for schema, name in found if schema not in SYSTEM]

    def compressed(self) -> str | None:
        """Return the name of a column that MariaDB compresses, if there is one."""
        found = self.rows(
            "SELECT CONCAT_WS('.', table_schema, table_name, column_name) FROM information_schema.columns "
            "WHERE column_type LIKE '%/*M!100301 COMPRESSED*/%'"
        )
        return found[0][0] if found else None

    def columns(self, schema: str, table: str) -> tuple[list[ColumnInfo], list[str]]:
        """Return the columns of a table as it is now, and those of its primary key, or of what can be one."""
        found = self.rows(
            "SELECT column_name, data_type, column_type, is_nullable, column_default, extra, numeric_precision, "
            "numeric_scale, datetime_precision, character_octet_length, column_comment FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (schema, table),
        )
        return [self._column(*row) for row in found], self.key(schema, table)

    def default(self, kind: str, default: Any, extra: str) -> str | None:
        """Return a default as an expression, as MariaDB shows it; MySQL shows texts as they are."""
        text = default.decode() if isinstance(default, bytes) else default
        if text is None or self.is_mariadb or "DEFAULT_GENERATED" in extra or kind in ("bit", "binary", "varbinary"):
            return text
        return "'" + text.replace("'", "''") + "'"

    def await_change(self, schema: str, table: str) -> None:
        """Wait until a statement that changes this table is over: MySQL sends it before the catalogue shows its work.

        Until then the statement holds the table's lock. A table that is gone, or may not be read, is not waited for.
        """
        if not self.is_mariadb:
            with suppress(ConnectError, RetriableError):
                self.rows(f"SELECT 1 FROM {quoted(schema, table)} LIMIT 0")

    def key(self, schema: str, table: str) -> list[str]:
        """Return the columns of a table's primary key, or of what can be one."""
        unique: dict[str, dict[int, str]] = {}
        for index, place, column, nullable in self.rows(
            "SELECT index_name, seq_in_index, column_name, nullable FROM information_schema.statistics "
            "WHERE table_schema = %s AND table_name = %s AND non_unique = 0",
            (schema, table),
        ):
            unique.setdefault(index, {})[int(place)] = "" if nullable == "YES" else column
        keys = [[columns[place] for place in sorted(columns)] for columns in unique.values()]  # the primary one first
        return next(filter(all, keys), [])

    def _column(
        self,
        name: str,
        kind: str,
        whole: str,
        nullable: str,
        default: Any,
        extra: str,
        precision: int | None,
        scale: int | None,
        digits: int | None,
        octets: int | None,
        comment: str,
    ) -> ColumnInfo:
        sizes = {"decimal": precision, "bit": precision, "binary": octets}
        listed = tuple(each.replace("''", "'") for each in _ALLOWED.findall(whole)) if kind in ("enum", "set") else ()
        return ColumnInfo(
            name,
            kind.lower(),
            nullable == "NO",
            "unsigned" in whole and not listed,
            int(sizes.get(kind, digits) or 0),
            int(scale or 0) if kind in ("decimal", "float") else 0,
            listed,
            self.default(kind.lower(), default, extra),
            comment=comment,
        )


def quoted(*names: str) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)
