"""Migrations: numbered files of statements, applied once each and in order, and a table in the server that knows them.

A project is a folder with `ksql-migrations.properties` and `migrations/V000001__NAME.sql`. The server keeps a stream of
events and a table of the last event of each version; the row CURRENT has the version that was applied last.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from moldau.sql.shell.remote import RemoteError, Scope, Server
from moldau.sql.shell.statements import is_query, split, words
from moldau.sql.shell.tables import listing

CONFIG = "ksql-migrations.properties"
FOLDER = "migrations"
CURRENT, NONE = "CURRENT", "<none>"
PENDING, RUNNING, MIGRATED, ERROR = "PENDING", "RUNNING", "MIGRATED", "ERROR"
MOST_VERSION = 999_999
VISIBLE_S = 300.0  # how long the table may take to show an event
PAUSE_S = 0.05  # between two looks
STREAM, TABLE = "MIGRATION_EVENTS", "MIGRATION_SCHEMA_VERSIONS"
COLUMNS = (
    "VERSION_KEY",
    "VERSION",
    "NAME",
    "STATE",
    "CHECKSUM",
    "STARTED_ON",
    "COMPLETED_ON",
    "PREVIOUS",
    "ERROR_REASON",
)
REFUSED = ("SHOW", "LIST", "DESCRIBE", "EXPLAIN", "SPOOL", "RUN")  # they change nothing
_FILE = re.compile(r"V(\d{6})__(.+)\.sql")
TITLES = ("Version", "Name", "State", "Previous Version", "Started On", "Completed On", "Error Reason")


class MigrationError(Exception):
    """What cannot be done, in one sentence."""


@dataclass(frozen=True, slots=True)
class Names:
    """The stream, the table and their topics."""

    stream: str = STREAM
    table: str = TABLE
    stream_topic: str = ""
    table_topic: str = ""
    replicas: int = 1

    @classmethod
    def of(cls, settings: Mapping[str, str], service_id: str) -> Names:
        """Take the names that a file of settings has, or ksqlDB's."""

        def get(name: str, default: str) -> str:
            return settings.get(f"ksql.migrations.{name}") or default

        stream, table = get("stream.name", STREAM), get("table.name", TABLE)
        return cls(
            stream,
            table,
            get("stream.topic.name", f"{service_id}ksql_{stream}"),
            get("table.topic.name", f"{service_id}ksql_{table}"),
            int(get("topic.replicas", "1")),
        )


@dataclass(frozen=True, slots=True)
class Migration:
    """A file: its version and its name, with blanks for underscores."""

    version: int
    name: str
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def checksum(self) -> str:
        return hashlib.md5(self.path.read_bytes(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Applied:
    """The last event of a version."""

    version: str
    name: str = ""
    state: str = PENDING
    checksum: str = ""
    started_on: str = ""
    completed_on: str = ""
    previous: str = NONE
    error_reason: str = "N/A"


def new_project(folder: Path, url: str) -> Iterator[str]:
    """Make the files of a project, and say which."""
    yield f"Creating new migrations project at {folder}"
    if (folder / CONFIG).exists():
        raise MigrationError(f"Failed to create file {folder / CONFIG}: it exists already.")
    for path in (folder, folder / FOLDER):
        if not path.is_dir():
            yield f"Creating directory: {path}"
            path.mkdir(parents=True)
    yield f"Creating file: {folder / CONFIG}"
    (folder / CONFIG).write_text(f"ksql.server.url={url}\n", "utf-8")
    yield f"Writing to config file: ksql.server.url={url}"
    yield "Migrations project directory created successfully"


def migrations(folder: Path) -> list[Migration]:
    """Return the migrations of a folder in order; no two have the same version."""
    found = _listed(folder)
    versions = [one.version for one in found]
    doubled = sorted({version for version in versions if versions.count(version) > 1})
    if doubled:
        raise MigrationError(f"Found multiple migration files for version {doubled[0]}")
    return found


def _listed(folder: Path) -> list[Migration]:
    if not folder.is_dir():
        raise MigrationError(f"{folder} is not a folder. `ksql-migrations new-project` makes one.")
    matches = ((path, _FILE.fullmatch(path.name)) for path in folder.iterdir())
    found = [Migration(int(match[1]), match[2].replace("_", " "), path) for path, match in matches if match]
    return sorted(found, key=lambda one: one.version)


def create(folder: Path, name: str, version: int | None = None) -> Iterator[str]:
    """Make an empty migration with the next version, or with the given one."""
    known = {one.version for one in migrations(folder)}
    wanted = max(known, default=0) + 1 if version is None else version
    if not 0 < wanted <= MOST_VERSION:
        raise MigrationError(f"Invalid version number: {wanted}. Version must be from 1 to {MOST_VERSION}.")
    if wanted in known:
        raise MigrationError(f"Found existing migrations file for version {wanted}")
    path = folder / f"V{wanted:06d}__{re.sub(r'[^A-Za-z0-9]+', '_', name)}.sql"
    yield f"Creating migration file: {path}"
    path.write_text("", "utf-8")
    yield "Migrations file created successfully"


class Metadata:
    """The stream and the table of a server."""

    def __init__(self, server: Server, names: Names, clock: Callable[[], float] = time.time) -> None:
        self.server, self.names, self._clock = server, names, clock

    def exists(self) -> bool:
        entities = self.server.execute("SHOW STREAMS; SHOW TABLES;")
        known = {one["name"] for each in entities for one in (*each.get("streams", ()), *each.get("tables", ()))}
        return {self.names.stream, self.names.table} <= known

    def require(self) -> None:
        if not self.exists():
            raise MigrationError(
                "Schema metadata table does not exist: `ksql-migrations initialize-metadata` creates it."
            )

    def initialize(self) -> Iterator[str]:
        names = self.names
        yield "Initializing migrations metadata"
        if self.exists():
            yield "Migrations metadata is initialized already"
            return
        yield f"Creating stream: {names.stream}"
        columns = ", ".join(f"{one} STRING{' KEY' if one == COLUMNS[0] else ''}" for one in COLUMNS)
        self.server.execute(
            f"CREATE STREAM {names.stream} ({columns}) WITH (KAFKA_TOPIC='{names.stream_topic}', VALUE_FORMAT='JSON', "
            f"PARTITIONS=1, REPLICAS={names.replicas});"
        )
        yield f"Creating table: {names.table}"
        latest = ", ".join(f"LATEST_BY_OFFSET({one}) AS {one}" for one in COLUMNS[1:])
        self.server.execute(
            f"CREATE TABLE {names.table} WITH (KAFKA_TOPIC='{names.table_topic}') AS SELECT {COLUMNS[0]}, {latest} "
            f"FROM {names.stream} GROUP BY {COLUMNS[0]};",
            Scope({"auto.offset.reset": "earliest"}),
        )
        yield "Migrations metadata initialized successfully"

    def destroy(self) -> Iterator[str]:
        yield "Cleaning migrations metadata stream and table"
        self.require()
        for kind, name in (("TABLE", self.names.table), ("STREAM", self.names.stream)):
            yield f"Dropping {kind.lower()}: {name}"
            described = self.server.execute(f"DESCRIBE {name};")[0]["sourceDescription"]
            for query in described.get("writeQueries", ()):
                self.server.execute(f"TERMINATE {query['id']};")
            self.server.execute(f"DROP {kind} {name} DELETE TOPIC;")
        yield "Migrations metadata cleaned successfully"

    def find(self, key: str) -> Applied | None:
        """Return the last event of a version, or of CURRENT."""
        select = ", ".join(COLUMNS[1:])
        query = f"SELECT {select} FROM {self.names.table} WHERE {COLUMNS[0]} = '{key}';"
        with self.server.query(query) as parts:
            rows = [part["row"]["columns"] for part in parts if "row" in part]
        return Applied(*(cell or "" for cell in rows[0])) if rows else None

    def current(self) -> str:
        found = self.find(CURRENT)
        return NONE if found is None else found.version

    def write(self, event: Applied) -> None:
        """Write an event for its version and for CURRENT, and wait until the table shows both."""
        values = (event.version, event.name, event.state, event.checksum, event.started_on, event.completed_on)
        values = (*values, event.previous, event.error_reason)
        for key in (event.version, CURRENT):
            texts = ", ".join("'" + one.replace("'", "''") + "'" for one in (key, *values))
            scope = Scope({"ksql.variable.substitution.enable": False})
            self.server.execute(f"INSERT INTO {self.names.stream} ({', '.join(COLUMNS)}) VALUES ({texts});", scope)
        for key in (event.version, CURRENT):
            self._wait(key, event)

    def _wait(self, key: str, event: Applied) -> None:
        deadline = self._clock() + VISIBLE_S
        while self.find(key) != event:
            if self._clock() > deadline:
                raise MigrationError(f"{self.names.table} does not show {event.version} within {VISIBLE_S:.0f} s.")
            time.sleep(PAUSE_S)

    def now(self) -> str:
        return str(int(self._clock() * 1000))


def info(metadata: Metadata, folder: Path) -> Iterator[str]:
    """Say which migrations there are, and what has become of them."""
    current = metadata.current()
    yield f"Current migration version: {current}"
    rows = []
    for one in migrations(folder):
        done = metadata.find(str(one.version)) or Applied(str(one.version))
        previous = done.previous if done.state != PENDING else "N/A"
        times = (_time(done.started_on), _time(done.completed_on))
        rows.append([one.version, one.name, done.state, previous, *times, done.error_reason or "N/A"])
    if not rows:
        yield f"No migrations files found in {folder}"
        return
    yield from listing(TITLES, rows)


def _time(ms: str) -> str:
    if not ms.isdecimal():
        return "N/A"
    moment = time.gmtime(int(ms) / 1000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', moment)}.{int(ms) % 1000:03d} UTC"


def validate(metadata: Metadata, folder: Path) -> Iterator[str]:
    """Refuse if a file was changed after it was applied."""
    known = {str(one.version): one for one in migrations(folder)}
    version = metadata.current()
    while version != NONE:
        done = metadata.find(version)
        if done is None:
            raise MigrationError(f"There is no event of version {version} in {metadata.names.table}.")
        if done.state == MIGRATED:
            if version not in known:
                raise MigrationError(f"No migrations file found for version {version} with status MIGRATED.")
            if known[version].checksum != done.checksum:
                raise MigrationError(
                    f"Migrations file found for version {version} does not match the checksum saved for it: the file "
                    "was changed after it was applied."
                )
        version = done.previous
    yield "Successfully validated checksums for migrations that have already been applied"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which migrations to apply: exactly one of these is given."""

    next: bool = False
    all: bool = False
    until: int | None = None
    version: int | None = None


def chosen(found: list[Migration], current: int, wanted: Wanted) -> list[Migration]:
    """Return the migrations to apply."""
    pending = [one for one in found if one.version > current]
    if wanted.all:
        return pending
    if wanted.next:
        return pending[:1]
    target = wanted.until if wanted.until is not None else wanted.version
    assert target is not None
    if target <= current:
        raise MigrationError(f"Version must be newer than the last version migrated. Last version migrated: {current}")
    if not any(one.version == target for one in pending):
        raise MigrationError(f"No migration file with version {target} exists.")
    if wanted.version is not None:
        return [one for one in pending if one.version == target]
    return [one for one in pending if one.version <= target]


def apply(
    metadata: Metadata, folder: Path, wanted: Wanted, variables: Mapping[str, str], dry_run: bool = False
) -> Iterator[str]:
    """Apply migrations in order, up to the first that fails."""
    metadata.require()
    yield "Validating current migration state before applying new migrations"
    yield from validate(metadata, folder)
    current = metadata.find(CURRENT)
    if current is not None and current.state == RUNNING:
        raise MigrationError(f"There are currently migrations running: version {current.version}.")
    last = _last(metadata)
    todo = chosen(migrations(folder), 0 if last == NONE else int(last), wanted)
    if not todo:
        yield "No eligible migrations found."
        return
    yield f"{len(todo)} migration file(s) found."
    for one in todo:
        yield f"Applying migration version {one.version}: {one.name}"
        statements = checked(one)
        yield f"{one.path.name} contents: {one.text}"
        if dry_run:
            yield "Dry run complete. No migrations were actually applied."
            continue
        _apply(metadata, one, statements, last, dict(variables))
        last = str(one.version)
        yield "Successfully migrated"


def _last(metadata: Metadata) -> str:
    """Return the version that was applied last: an error may be tried again."""
    found = metadata.find(CURRENT)
    if found is None:
        return NONE
    return found.version if found.state == MIGRATED else found.previous


def checked(one: Migration) -> list[str]:
    """Return the statements of a file; those that do not belong there are refused before anything is executed."""
    statements, rest = split(one.text)
    if rest:
        raise MigrationError(f"The last statement of {one.path.name} does not end with a semicolon.")
    for statement in statements:
        first = words(statement, 1)[0]
        if is_query(statement) or first in REFUSED:
            raise MigrationError(f"'{first}' statements are not supported in migrations ({one.path.name}).")
    return statements


def _apply(metadata: Metadata, one: Migration, statements: list[str], previous: str, variables: dict[str, str]) -> None:
    begun = metadata.now()
    event = Applied(str(one.version), one.name, RUNNING, one.checksum, begun, "", previous, "N/A")
    metadata.write(event)
    try:
        _execute(metadata.server, statements, variables)
    except RemoteError as error:
        metadata.write(replace(event, state=ERROR, completed_on=metadata.now(), error_reason=error.message))
        raise MigrationError(f"Failed to execute sql of version {one.version}: {error.message}") from None
    metadata.write(replace(event, state=MIGRATED, completed_on=metadata.now()))


def _execute(server: Server, statements: list[str], variables: dict[str, str]) -> None:
    """Execute statements one by one; SET and DEFINE hold for those after them."""
    kept: list[str] = []
    scope = Scope(variables=variables)
    for statement in statements:
        if words(statement, 1)[0] in ("SET", "UNSET", "DEFINE", "UNDEFINE"):
            kept.append(f"{statement};")
        else:
            for entity in server.execute("\n".join([*kept, f"{statement};"]), scope):
                scope.sequence = entity.get("commandSequenceNumber", scope.sequence)
