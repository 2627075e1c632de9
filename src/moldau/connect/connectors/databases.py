"""SQL databases by Python's drivers: what a JDBC URL means, and what differs between SQLite, PostgreSQL and MariaDB.

A `Dialect` is a row of facts: marks, quotes, types, statements. `Database` is a connection that says what went wrong in
one of two ways: RetriableError where another try may help, `Refused` where the row or the statement is at fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from moldau.connect.config_def import REQUIRED, Importance, Key, Kind, between
from moldau.connect.data import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type, scale
from moldau.connect.errors import ConfigError, ConnectError, RetriableError

CONNECT_S = 10


class Refused(ConnectError):
    """A statement that the database does not accept, whatever is tried."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a JDBC URL and its settings say."""

    dialect: Dialect
    host: str
    port: int | None
    database: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `kind` is its type in the database's words, in small letters."""

    name: str
    kind: str
    is_required: bool
    is_key: bool = False
    precision: int | None = None
    scale: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `schema` is empty where the database has none."""

    name: str
    schema: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between databases. `moment` makes an expression comparable with what `moment_value` gives."""

    name: str
    driver: str  # the module, and what installs it
    extra: str
    mark: str
    quote: str
    types: Mapping[Any, str]
    connect: Callable[[Any, Place], Any]
    tables: str
    columns: str
    takes_keys_of_text: str = "TEXT"

    def quoted(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def place(self, table: Table) -> str:
        return ".".join(map(self.quoted, filter(None, (table.schema, table.name))))

    def type_of(self, schema: Schema, *, is_key: bool = False) -> str:
        """Return the type of a column for values of a schema; ConnectError if there is none."""
        if is_key and schema.type is Type.STRING:
            return self.takes_keys_of_text
        found = self.types.get(schema.name) or self.types.get(schema.type)
        if found is None:
            raise ConnectError(f"{self.name} has no type for a field of type {schema.name or schema.type.name}.")
        return found.format(scale=scale(schema)) if schema.name == DECIMAL else found

    def upsert(self, table: Table, columns: Sequence[str], keys: Sequence[str]) -> str:
        """Return a statement that inserts a row, or changes the one that has its key."""
        others = [self.quoted(one) for one in columns if one not in keys]
        insert = self.insert(table, columns)
        if self.name == "MariaDB":
            first = self.quoted(keys[0])
            return f"{insert} ON DUPLICATE KEY UPDATE " + ", ".join(f"{c} = VALUES({c})" for c in others or [first])
        change = "UPDATE SET " + ", ".join(f"{c} = EXCLUDED.{c}" for c in others) if others else "NOTHING"
        return f"{insert} ON CONFLICT ({', '.join(map(self.quoted, keys))}) DO {change}"

    def insert(self, table: Table, columns: Sequence[str]) -> str:
        names = ", ".join(map(self.quoted, columns))
        return f"INSERT INTO {self.place(table)} ({names}) VALUES ({', '.join([self.mark] * len(columns))})"

    def where(self, columns: Sequence[str]) -> str:
        return " AND ".join(f"{self.quoted(one)} = {self.mark}" for one in columns)


def _sqlite(module: Any, place: Place) -> Any:
    found = module.connect(place.database, timeout=CONNECT_S, isolation_level=None, check_same_thread=False)
    found.execute("PRAGMA foreign_keys = ON")
    return found


def _postgres(module: Any, place: Place) -> Any:
    options = dict(place.options)
    schema = options.pop("currentSchema", None)
    if options.pop("ssl", "false").lower() == "true":
        options.setdefault("sslmode", "require")
    given: dict[str, Any] = {"dbname": place.database, "connect_timeout": CONNECT_S, **options}
    given |= {name: value for name, value in (("host", place.host), ("port", place.port)) if value}
    if schema:
        given["options"] = f"-csearch_path={schema}"
    found = module.connect(**given, autocommit=True)
    found.execute("SET TIME ZONE 'UTC'")
    return found


def _mariadb(module: Any, place: Place) -> Any:
    known = {"user", "password", "unix_socket", "charset"}
    given = {name: value for name, value in place.options.items() if name in known}
    if place.port:
        given["port"] = place.port  # type: ignore[assignment]
    return module.connect(
        host=place.host or "localhost",
        database=place.database,
        connect_timeout=CONNECT_S,
        autocommit=True,
        init_command="SET time_zone = '+00:00'",
        **{"charset": "utf8mb4", **given},
    )


INTEGERS = {
    Type.INT8: "SMALLINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
}
SQLITE = Dialect(
    "SQLite",
    "sqlite3",
    "",
    "?",
    '"',
    {
        **dict.fromkeys((Type.INT8, Type.INT16, Type.INT32, Type.INT64), "INTEGER"),
        **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), "REAL"),
        Type.BOOLEAN: "BOOLEAN",
        Type.STRING: "TEXT",
        Type.BYTES: "BLOB",
        DECIMAL: "DECIMAL(38,{scale})",
        DATE: "DATE",
        TIME: "TIME",
        TIMESTAMP: "TIMESTAMP",
    },
    _sqlite,
    "SELECT '', name, UPPER(type) FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'",
    # The key comes with nullable set in SQLite, except that a primary key of type INTEGER is never null.
    'SELECT name, LOWER(type), "notnull" OR pk > 0, pk > 0, NULL, NULL FROM pragma_table_info({name}) ORDER BY cid',
)
IN_KEY = (
    "EXISTS (SELECT 1 FROM information_schema.table_constraints k JOIN information_schema.key_column_usage u "
    "ON u.constraint_name = k.constraint_name AND u.table_schema = k.table_schema AND u.table_name = k.table_name "
    "WHERE k.constraint_type = 'PRIMARY KEY' AND u.table_schema = c.table_schema AND u.table_name = c.table_name "
    "AND u.column_name = c.column_name)"
)
COLUMNS = (
    f"SELECT column_name, LOWER(data_type), is_nullable = 'NO', {IN_KEY}, numeric_precision, numeric_scale "
    "FROM information_schema.columns c WHERE table_name = {{name}} AND table_schema = {schema} "
    "ORDER BY ordinal_position"
)
POSTGRES = Dialect(
    "PostgreSQL",
    "psycopg",
    "postgres",
    "%s",
    '"',
    {
        **INTEGERS,
        Type.FLOAT32: "REAL",
        Type.FLOAT64: "DOUBLE PRECISION",
        Type.BYTES: "BYTEA",
        DECIMAL: "DECIMAL",
        DATE: "DATE",
        TIME: "TIME",
        TIMESTAMP: "TIMESTAMP",
    },
    _postgres,
    "SELECT CASE WHEN table_schema = current_schema() THEN '' ELSE table_schema END, table_name, "
    "CASE table_type WHEN 'BASE TABLE' THEN 'TABLE' ELSE table_type END FROM information_schema.tables "
    "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
    COLUMNS.format(schema="COALESCE({schema}, current_schema())"),
)
MARIADB = Dialect(
    "MariaDB",
    "pymysql",
    "mariadb",
    "%s",
    "`",
    {
        **INTEGERS,
        Type.INT8: "TINYINT",
        Type.BOOLEAN: "TINYINT(1)",
        Type.FLOAT32: "FLOAT",
        Type.FLOAT64: "DOUBLE",
        Type.BYTES: "LONGBLOB",
        DECIMAL: "DECIMAL(65,{scale})",
        DATE: "DATE",
        TIME: "TIME(3)",
        TIMESTAMP: "DATETIME(3)",
    },
    _mariadb,
    "SELECT '', table_name, CASE table_type WHEN 'BASE TABLE' THEN 'TABLE' ELSE table_type END "
    "FROM information_schema.tables WHERE table_schema = DATABASE()",
    COLUMNS.format(schema="COALESCE({schema}, DATABASE())"),
    takes_keys_of_text="VARCHAR(255)",
)
DIALECTS = {"sqlite": SQLITE, "postgresql": POSTGRES, "mysql": MARIADB, "mariadb": MARIADB}
URL = re.compile(r"jdbc:(\w+):(.*)", re.DOTALL)
KEYS = (
    Key("connection.url", Kind.STRING, REQUIRED, Importance.HIGH, "Where the database is, as a JDBC URL."),
    Key("connection.user", Kind.STRING, None, Importance.HIGH, "The user."),
    Key("connection.password", Kind.PASSWORD, None, Importance.HIGH, "The user's password."),
    Key("connection.attempts", Kind.INT, 3, Importance.LOW, "How often to try to connect.", validator=between(1)),
    Key("connection.backoff.ms", Kind.LONG, 10_000, Importance.LOW, "How long to wait between attempts."),
)


def a_jdbc_url(name: str, value: Any) -> None:
    read_url(value or "", {})


def read_url(text: str, options: Mapping[str, str]) -> Place:
    """Read a JDBC URL; ConfigError for a database that nobody here can talk to."""
    match = URL.fullmatch(text.strip())
    dialect = DIALECTS.get(match[1].lower()) if match else None
    if match is None or dialect is None:
        known = ", ".join(f"jdbc:{name}:" for name in DIALECTS)
        raise ConfigError(f"Invalid value {text} for configuration connection.url: it begins with one of {known}")
    if dialect is SQLITE:
        path = match[2].removeprefix("file:").partition("?")[0]
        return Place(dialect, "", None, path, {})
    parts = urlsplit(match[2] if match[2].startswith("//") else f"///{match[2]}")
    try:
        port = parts.port
    except ValueError:
        raise ConfigError(f"Invalid value {text} for configuration connection.url: the port is wrong") from None
    given = {**dict(parse_qsl(parts.query)), **options}
    return Place(dialect, parts.hostname or "", port, unquote(parts.path[1:]), given)


class Database:
    """A connection that is opened when it is needed, and again after it was lost."""

    def __init__(self, config: Mapping[str, Any], wait: Callable[[float], bool]) -> None:
        options = {"user": config["connection.user"], "password": config["connection.password"]}
        texts = {name: getattr(value, "value", value) for name, value in options.items() if value is not None}
        self.at = read_url(config["connection.url"], texts)
        self.dialect = self.at.dialect
        self._attempts, self._pause_s = config["connection.attempts"], config["connection.backoff.ms"] / 1000
        self._wait, self._open = wait, None
        self._named = 0  # cursors that had names
        self._module = self._driver()

    def _driver(self) -> Any:
        from importlib import import_module

        try:
            return import_module(self.dialect.driver)
        except ImportError:
            needs = f"{self.dialect.driver}: pip install 'moldau[{self.dialect.extra}]'"
            raise ConfigError(f"{self.dialect.name} needs the Python package {needs}.") from None

    @property
    def connection(self) -> Any:
        """Return the connection; RetriableError if the database cannot be reached."""
        for left in range(self._attempts, 0, -1):
            if self._open is not None:
                break
            try:
                self._open = self.dialect.connect(self._module, self.at)
            except self._module.Error as error:
                if left == 1 or self._wait(self._pause_s):
                    raise RetriableError(f"{self.dialect.name} cannot be reached: {error}") from error
        return self._open

    @contextmanager
    def cursor(self, *, streaming: bool = False) -> Iterator[Any]:
        """Yield a cursor, with the errors of the driver told apart; a streaming one leaves rows where they are."""
        connection = self.connection
        if streaming and self.dialect is POSTGRES:
            self._named += 1
            cursor = connection.cursor(name=f"moldau_{self._named}", withhold=True)
        else:
            cursor = connection.cursor()
        try:
            yield cursor
        except self._module.Error as error:
            raise self._told(error) from error
        finally:
            try:
                cursor.close()
            except self._module.Error:
                self.drop()  # the connection is gone; what made it go is on its way up

    def _told(self, error: Exception) -> ConnectError:
        module, text = self._module, f"{self.dialect.name}: {str(error).strip()}"
        is_passing = isinstance(error, module.OperationalError | module.InterfaceError)
        if is_passing and self.dialect is SQLITE:
            is_passing = "locked" in str(error) or "busy" in str(error)  # it calls wrong SQL operational too
        return RetriableError(text) if is_passing else Refused(text)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Yield a cursor within a transaction, which is committed at the end or not at all."""
        with self.cursor() as cursor:
            cursor.execute("BEGIN IMMEDIATE" if self.dialect is SQLITE else "BEGIN")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                try:
                    cursor.execute("ROLLBACK")
                except self._module.Error:
                    self.drop()
                raise

    @contextmanager
    def savepoint(self, cursor: Any) -> Iterator[None]:
        """Undo what was done inside, and only that, if it is Refused."""
        cursor.execute("SAVEPOINT one")
        try:
            yield
            cursor.execute("RELEASE SAVEPOINT one")
        except self._module.Error as error:
            told = self._told(error)
            if isinstance(told, Refused):
                cursor.execute("ROLLBACK TO SAVEPOINT one")
            raise told from error

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self.cursor() as cursor:
            cursor.execute(statement, tuple(values)) if values else cursor.execute(statement)
            return list(cursor.fetchall())

    def tables(self, kinds: Sequence[str] = ("TABLE",)) -> list[Table]:
        rows = self.rows(self.dialect.tables)
        return sorted((Table(name, schema) for schema, name, kind in rows if kind in kinds), key=lambda t: t.full_name)

    def columns(self, table: Table) -> list[Column]:
        """Return the columns of a table; none if there is no such table."""
        mark, dialect = self.dialect.mark, self.dialect
        statement, values = dialect.columns.format(name=mark, schema=mark), [table.name]
        if "{schema}" in dialect.columns:
            values.append(table.schema or None)  # type: ignore[arg-type]
        return [_column(row) for row in self.rows(statement, values)]

    def drop(self) -> None:
        """Forget the connection: the next use opens another one."""
        found, self._open = self._open, None
        if found is not None:
            try:
                found.close()
            except self._module.Error:
                return  # it was gone already

    close = drop


SIZED = re.compile(r"\s*\((\d+)(?:\s*,\s*(\d+))?\)")


def _column(row: Sequence[Any]) -> Column:
    name, kind, is_required, is_key, precision, digits = row
    kind = kind.decode() if isinstance(kind, bytes) else kind
    sized = SIZED.search(kind)
    if sized and precision is None:
        precision, digits = int(sized[1]), int(sized[2] or 0)
    whole = lambda value: None if value is None else int(value)  # noqa: E731
    return Column(name, SIZED.sub("", kind).strip(), bool(is_required), bool(is_key), whole(precision), whole(digits))
