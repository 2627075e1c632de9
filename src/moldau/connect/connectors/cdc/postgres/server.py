"""A PostgreSQL server: connections, its catalogue, slots and publications."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from moldau.connect.connectors.cdc.postgres.types import Kind
from moldau.connect.connectors.packages import needed
from moldau.connect.errors import ConfigError, ConnectError, RetriableError

# Texts are read in the form that these give them, by the stream and by snapshots.
FORMS = {
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "lc_monetary": "C",
}
CONNECT_S = 30
PASSING = ("57", "08", "53", "55006", "40")  # SQLSTATEs that may pass: shutdown, connection, resources, slot in use
BLOCK = 8192


def lsn_number(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(number: int) -> str:
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def driver() -> Any:
    needed("psycopg2", "Change data capture from PostgreSQL", "cdc")
    import psycopg2.extras

    return psycopg2


def quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


@contextmanager
def told() -> Iterator[None]:
    """Turn errors of the driver into ours: those that may pass are retried."""
    psycopg2 = driver()
    try:
        yield
    except psycopg2.Error as error:
        text = f"PostgreSQL: {str(error).strip()}"
        ends = type(error) in (psycopg2.DatabaseError, psycopg2.OperationalError, psycopg2.InterfaceError)
        lost = ends and error.pgcode is None  # a stream that ends is a DatabaseError without any code
        if lost or (error.pgcode or "").startswith(PASSING) or "is active for PID" in text:
            raise RetriableError(text) from error
        raise ConnectError(text) from error


def arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    secret = config["database.password"]
    given = {
        "host": config["database.hostname"],
        "port": config["database.port"],
        "user": config["database.user"],
        "password": secret.value if secret else None,
        "dbname": config["database.dbname"],
        "sslmode": config["database.sslmode"],
        "sslcert": config["database.sslcert"],
        "sslkey": config["database.sslkey"],
        "sslrootcert": config["database.sslrootcert"],
        "connect_timeout": CONNECT_S,
        "client_encoding": "UTF8",
        "application_name": "moldau",
        "options": " ".join(f"-c {name}={value}" for name, value in FORMS.items()),
    }
    return {name: value for name, value in given.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column of the catalogue; `key_place` is its place in the primary key, from 1 on, or 0."""

    name: str
    type: int
    modifier: int
    is_required: bool
    default: str | None
    key_place: int


@dataclass(frozen=True, slots=True)
class TableInfo:
    id: int
    schema: str
    name: str
    form: str  # pg_class.relkind: r(elation) or p(artitioned)
    blocks: int
    identity: str

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Slot:
    """A replication slot. `kept` is how many bytes of the log the database keeps for it, `lag` what it has not sent."""

    name: str
    plugin: str
    database: str
    is_active: bool
    restart_lsn: int | None
    confirmed_lsn: int | None
    status: str  # reserved, extended, unreserved (may be lost soon), lost
    kept: int | None
    lag: int | None
    safe: int | None  # bytes that may still be written before it is lost; None if there is no limit

    @property
    def warning(self) -> str | None:
        """Say that the slot is about to be lost, or that it makes the log grow beyond `max_wal_size`."""
        if self.status == "lost":
            return f"The slot {self.name} is lost: PostgreSQL has removed the log that it needs."
        if self.status in ("extended", "unreserved"):
            left = "without a limit" if self.safe is None else f"and loses it after {max(self.safe, 0)} more"
            return f"PostgreSQL keeps {self.kept} bytes of its log for the slot {self.name}, {left}."
        return None


SLOTS = (
    "SELECT slot_name, plugin, database, active, restart_lsn::text, confirmed_flush_lsn::text, wal_status, "
    "pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, "
    "pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint, safe_wal_size "
    "FROM pg_replication_slots WHERE slot_type = 'logical'"
)
COLUMNS = (
    "SELECT a.attname, a.atttypid::bigint, a.atttypmod, a.attnotnull, pg_get_expr(d.adbin, d.adrelid), "
    "COALESCE(array_position(i.indkey::int2[], a.attnum) + 1, 0) "
    "FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
    "LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
    "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum"
)
TABLES = (
    "SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, "
    "CASE c.relkind WHEN 'r' THEN pg_relation_size(c.oid) / 8192 ELSE 0 END, c.relreplident::text "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relpersistence = 'p' "
    "AND c.relkind = ANY(%s) AND (NOT %s OR NOT c.relispartition) "
    "AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 2, 3"
)
TYPES = (
    "SELECT t.oid::bigint, t.typname, t.typtype::text, t.typbasetype::bigint, t.typtypmod, t.typelem::bigint, "
    "ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder) "
    "FROM pg_type t WHERE t.oid = %s"
)


class Server:
    """An ordinary connection, for questions."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        with told():
            self.connection = driver().connect(**arguments(config))
            self.connection.autocommit = True
        self._kinds: dict[int, Kind] = {}

    def rows(self, statement: str, values: Sequence[Any] | None = None) -> list[Any]:
        with told(), self.connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def one(self, statement: str, values: Sequence[Any] | None = None) -> Any:
        return self.rows(statement, values)[0]

    def close(self) -> None:
        self.connection.close()

    @property
    def version(self) -> int:
        return self.connection.server_version

    def kind(self, oid: int) -> Kind:
        """Return a type; one that was dropped in the meantime is unknown."""
        found = self._kinds.get(oid)
        if found is None:
            rows = self.rows(TYPES, (oid,))
            found = Kind(*rows[0]) if rows else Kind(oid, f"of number {oid}")
            self._kinds[oid] = found
        return found

    def forget_kinds(self) -> None:
        """Read types anew: an enumeration may have got another label."""
        self._kinds.clear()

    def tables(self, takes: Callable[[str], bool], *, by_root: bool) -> list[TableInfo]:
        found = self.rows(TABLES, (["r", "p"] if by_root else ["r"], by_root))
        return [one for one in (TableInfo(*row) for row in found) if takes(one.full_name)]

    def columns(self, table: int) -> list[ColumnInfo]:
        return [ColumnInfo(*row) for row in self.rows(COLUMNS, (table,))]

    def slots(self) -> list[Slot]:
        found: list[Slot] = []
        for name, plugin, database, is_active, restart, confirmed, *more in self.rows(SLOTS):
            begin, end = (None if one is None else lsn_number(one) for one in (restart, confirmed))
            found.append(Slot(name, plugin, database, is_active, begin, end, *more))
        return found

    def slot(self, name: str) -> Slot | None:
        return next((one for one in self.slots() if one.name == name), None)

    def position(self) -> int:
        return lsn_number(self.one("SELECT pg_current_wal_lsn()::text")[0])

    def insert_position(self) -> int:
        """Return where the log ends. At the beginning of a page that is after its header, where no record ends."""
        found = lsn_number(self.one("SELECT pg_current_wal_insert_lsn()::text")[0])
        return found - found % BLOCK if found % BLOCK in (24, 40) else found

    def system(self) -> str:
        return str(self.one("SELECT system_identifier FROM pg_control_system()")[0])

    def check_ready(self) -> None:
        (level,) = self.one("SHOW wal_level")
        if level != "logical":
            raise ConfigError(
                f"PostgreSQL runs with wal_level={level}: set wal_level=logical in postgresql.conf and restart it."
            )

    def publish(self, name: str, mode: str, tables: Sequence[TableInfo], *, by_root: bool) -> None:
        """Create the publication, or let it have exactly these tables in mode `filtered`."""
        exists = bool(self.rows("SELECT 1 FROM pg_publication WHERE pubname = %s", (name,)))
        listed = ", ".join(quoted(one.schema, one.name) for one in tables)
        options = " WITH (publish_via_partition_root = true)" if by_root else ""
        if mode == "disabled" and not exists:
            raise ConfigError(f"There is no publication {name}, and publication.autocreate.mode=disabled.")
        if mode == "filtered" and not tables:
            raise ConfigError("No table matches the filters, so there is nothing to publish.")
        if exists:
            if mode == "filtered" and self._published(name) != {(one.schema, one.name) for one in tables}:
                self.rows(f"ALTER PUBLICATION {quoted(name)} SET TABLE {listed}")
            return
        what = {"filtered": f" FOR TABLE {listed}", "no_tables": ""}.get(mode, " FOR ALL TABLES")
        try:
            self.rows(f"CREATE PUBLICATION {quoted(name)}{what}{options}")
        except ConnectError as error:
            if "must be superuser" in str(error):
                raise ConfigError(f"{error}. Set publication.autocreate.mode=filtered.") from error
            raise

    def _published(self, name: str) -> set[tuple[str, str]]:
        return set(self.rows("SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", (name,)))

    def drop_slot(self, name: str) -> None:
        self.rows("SELECT pg_drop_replication_slot(%s)", (name,))


class Replication:
    """A connection of the streaming replication protocol. It belongs to one thread."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._psycopg2 = driver()
        with told():
            factory = self._psycopg2.extras.LogicalReplicationConnection
            self.connection = self._psycopg2.connect(**arguments(config), connection_factory=factory)
            self.cursor = self.connection.cursor()

    def create_slot(self, name: str) -> tuple[int, str]:
        """Create a slot; return its position and the name of a snapshot that is valid until this connection is used."""
        with told():
            self.cursor.execute(f"CREATE_REPLICATION_SLOT {quoted(name)} LOGICAL pgoutput EXPORT_SNAPSHOT")
            row = self.cursor.fetchone()
        return lsn_number(row[1]), row[2]

    def start(self, slot: str, publication: str, start_lsn: int, more: Mapping[str, str]) -> None:
        options = {"proto_version": "1", "publication_names": quoted(publication), **more}
        with told():
            self.cursor.start_replication(
                slot_name=slot, decode=False, start_lsn=lsn_text(start_lsn), options=options, status_interval=10
            )

    def read(self) -> Any:
        """Return the next message, or None if none is there yet."""
        with told():
            return self.cursor.read_message()

    def acknowledge(self, lsn: int, *, reply: bool = False) -> None:
        with told():
            self.cursor.send_feedback(write_lsn=lsn, flush_lsn=lsn, apply_lsn=lsn, reply=reply, force=True)

    @property
    def received(self) -> int:
        """Return how far the server says that it has sent everything."""
        return self.cursor.wal_end or 0

    def close(self) -> None:
        self.connection.close()
