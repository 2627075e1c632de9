"""SpoolDir: files that appear in a folder, record by record: CSV, JSON, lines, Avro, Parquet, or each file as a whole;
.gz is decompressed.

The settings are those of jcustenborder's connectors. A file that was read is moved, deleted or left where it is, once
its records are in Kafka; one that cannot be read is moved to `error.path`. The offset is the number of records that
were read of a file. A file is known by its name and its time, so another one of the same name is read too.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import IO, Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key, one_of
from moldau.connect.connector import SOURCE, Config, SourceContext
from moldau.connect.connectors import file_schemas, sftp
from moldau.connect.connectors.file_schemas import Rows
from moldau.connect.connectors.places import Found, LocalFolder, Place, check_folders
from moldau.connect.converters.avro import file_values
from moldau.connect.data import BYTES, INT64, STRING, TIMESTAMP_SCHEMA, Header, Instant, Record, SchemaAndValue
from moldau.connect.errors import ConfigError, ConnectError, DataError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import Shape

WRONG = (OSError, EOFError, zlib.error, ValueError, csv.Error, DataError)  # with a file
NAME, MODIFIED, OFFSET = "fileName", "modified", "offset"
MOVE, MOVE_BY_DATE, DELETE, NONE = "MOVE", "MOVEBYDATE", "DELETE", "NONE"
FIELD, FILE_TIME, PROCESS_TIME = "FIELD", "FILE_TIME", "PROCESS_TIME"
ORDERS: dict[str, Callable[[Found], Any]] = {
    "Name": lambda found: found.name,
    "Length": lambda found: found.size,
    "LastModified": lambda found: found.modified,
}
NEITHER, SEPARATORS, QUOTES, BOTH = "NEITHER", "EMPTY_SEPARATORS", "EMPTY_QUOTES", "BOTH"
Reader = Callable[[IO[bytes], Mapping[str, Any]], Iterator[Any]]


def lines(file: IO[bytes], config: Mapping[str, Any]) -> Iterator[str]:
    for line in _text(file, config):
        yield line.rstrip("\r\n")


def documents(file: IO[bytes], config: Mapping[str, Any]) -> Iterator[Any]:
    """Read JSON: documents one after the other, whatever is between them, or one array of them."""
    decoder, text = json.JSONDecoder(), ""
    for part in _text(file, config):
        text = (text + part).lstrip()
        while text:
            try:
                found, end = decoder.raw_decode(text)
            except ValueError:
                break  # it goes on in the next line
            text = text[end:].lstrip()
            yield from found if isinstance(found, list) else [found]
    if text:
        raise DataError(f"What follows is not JSON: {text[:80]!r}")


def texts(file: IO[bytes], config: Mapping[str, Any]) -> Iterator[str]:
    """Read JSON as documents does, and write each of them as a text."""
    for one in documents(file, config):
        yield json.dumps(one, separators=(",", ":"), ensure_ascii=False)


def whole(file: IO[bytes], config: Mapping[str, Any]) -> Iterator[bytes]:
    """Read a file as one record; an empty one is none."""
    most = config["file.maximum.size.bytes"]
    found = file.read(most + 1)
    if len(found) > most:
        raise DataError(f"It has more than file.maximum.size.bytes={most}.")
    if found:
        yield found


def table(file: IO[bytes], config: Mapping[str, Any]) -> Iterator[dict[str, str | None]]:
    given = _text(file, config, newline="")
    for _ in range(config["csv.skip.lines"]):
        next(given, None)
    is_plain = config["csv.rfc.4180.parser.enabled"] or not config["csv.escape.char"]
    escape = None if is_plain else chr(config["csv.escape.char"])
    columns, has_types = config.get("columns", ()), config["value.schema"] or config["schema.generation.enabled"]
    empty = "" if has_types and config["csv.null.field.indicator"] == NEITHER else None
    rows = csv.reader(
        given,
        delimiter=chr(config["csv.separator.char"]),
        quotechar=chr(config["csv.quote.char"]),
        escapechar=escape,
        strict=True,
    )
    names: list[str] = next(rows, []) if config["csv.first.row.as.header"] else list(columns)
    for row in filter(None, rows):
        if len(row) == 1 < len(names) and not row[0].strip():
            continue  # a line of blanks
        if not names:
            names = [f"column{n:02d}" for n in range(1, len(row) + 1)]
        if len(row) < len(names) or (len(row) > len(names) and not columns):
            raise DataError(f"Line {rows.line_num} has {len(row)} columns, not {len(names)}.")
        yield {name: value if value != "" else empty for name, value in zip(names, row, strict=False)}


def avro(file: IO[bytes], config: Mapping[str, Any]) -> Iterator[SchemaAndValue]:
    return file_values(file)


def parquet(file: IO[bytes], config: Mapping[str, Any]) -> Iterator[Any]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise ConfigError("Parquet needs the Python package pyarrow: pip install 'moldau[console]'.") from None
    for batch in pq.ParquetFile(file).iter_batches():
        yield from batch.to_pylist()


def _text(file: IO[bytes], config: Mapping[str, Any], newline: str | None = None) -> Iterator[str]:
    charset = config.get("csv.file.charset") or config["file.charset"]
    return iter(io.TextIOWrapper(file, charset, newline=newline))


COMMON = (
    Key("topic", importance=Importance.HIGH, doc="The topic that gets the records."),
    Key("input.path", importance=Importance.HIGH, doc="The folder in which files appear."),
    Key("input.file.pattern", importance=Importance.HIGH, doc="The names of files to read, as a regular expression."),
    key("finished.path", "", "The folder to which files are moved that were read."),
    key("error.path", "", "The folder to which files are moved that cannot be read."),
    key("halt.on.error", True, "Fail the task at a file that cannot be read.", Kind.BOOLEAN),
    key(
        "cleanup.policy",
        MOVE,
        "What becomes of a file that was read.",
        validator=one_of(MOVE, MOVE_BY_DATE, DELETE, NONE),
    ),
    key("file.minimum.age.ms", 0, "How long a file must be unchanged.", Kind.LONG),
    key("empty.poll.wait.ms", 500, "How often to look for new files.", Kind.LONG, validator=between(1)),
    key("batch.size", 1000, "The most records of a poll.", Kind.INT, validator=between(1)),
    key("file.charset", "UTF-8", "The encoding of texts."),
    key("key.field", "", "The field that is the key."),
    key("files.sort.attributes", "NameAsc", "The order of files.", Kind.LIST),
    key(
        "timestamp.mode",
        PROCESS_TIME,
        "Whether a record has the time of a field, of its file, or of now.",
        validator=one_of(FIELD, FILE_TIME, PROCESS_TIME),
    ),
    key("timestamp.field", "", "The field that has the time of a record."),
    key("input.path.walk.recursively", False, "Also read files of folders below; not supported.", Kind.BOOLEAN),
)
CSV_NOT_SUPPORTED = ("csv.strict.quotes", "csv.ignore.quotations", "csv.keep.carriage.return")
OF_CSV = (
    key("csv.first.row.as.header", False, "The first line has the names of the columns.", Kind.BOOLEAN),
    key("csv.separator.char", 44, "Number of the character between columns.", Kind.INT),
    key("csv.quote.char", 34, "Number of the character around texts.", Kind.INT),
    key("csv.escape.char", 92, "Number of the character before a quote; 0 for none.", Kind.INT),
    key("csv.skip.lines", 0, "Lines to leave out at the start.", Kind.INT),
    key("csv.rfc.4180.parser.enabled", False, "Quotes are doubled, and nothing is escaped.", Kind.BOOLEAN),
    key("csv.file.charset", "", "The encoding of texts, instead of file.charset."),
    key(
        "csv.null.field.indicator",
        NEITHER,
        "Whether an empty column of type STRING is null; one of another type always is.",
        validator=one_of(NEITHER, SEPARATORS, QUOTES, BOTH),
    ),
    *(key(name, False, "Not supported.", Kind.BOOLEAN) for name in CSV_NOT_SUPPORTED),
)
OF_WHOLE = (key("file.maximum.size.bytes", 1 << 20, "The largest file that is read.", Kind.INT, validator=between(1)),)
NOT_SUPPORTED = ("input.path.walk.recursively", *CSV_NOT_SUPPORTED)


@dataclass(frozen=True, slots=True)
class SpoolDir:
    """A connector for one format."""

    format: str
    read: Reader
    config: ConfigDef
    place: Callable[[Mapping[str, Any]], Place] = LocalFolder
    package: str = "com.github.jcustenborder.kafka.connect.spooldir.SpoolDir"
    kind: str = SOURCE
    exactly_once: bool = True

    @property
    def task_class(self) -> str:
        return f"{self.package}{self.format}SourceTask"

    @property
    def is_local(self) -> bool:
        return self.place is LocalFolder

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        check(self.config.parse(config), is_local=self.is_local)
        return [{**config, "task.number": str(n), "task.count": str(most)} for n in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        if NAME not in partition:
            raise ConnectError(f"Partition objects should contain the key '{NAME}'")
        if offset is not None and not isinstance(offset.get(OFFSET), int):
            raise ConnectError(f"The value for the '{OFFSET}' key in the offset is expected to be a Long value")

    def open(self, context: SourceContext) -> Spooling:
        return Spooling(self, context)


def check(config: Mapping[str, Any], *, is_local: bool) -> None:
    try:
        re.compile(config["input.file.pattern"])
    except re.error as error:
        raise ConfigError(f"Invalid value for configuration input.file.pattern: {error}") from None
    for name in NOT_SUPPORTED:
        if config.get(name):
            raise ConfigError(f"Invalid value true for configuration {name}: it is not supported.")
    _order(config)
    if config.get("csv.null.field.indicator") == QUOTES:
        raise ConfigError("Invalid value EMPTY_QUOTES for configuration csv.null.field.indicator: it is not supported.")
    if "value.schema" in config:
        Rows(config)
    elif config["timestamp.mode"] == FIELD:
        raise ConfigError("Invalid value FIELD for configuration timestamp.mode: there are no fields.")
    moves = config["cleanup.policy"] in (MOVE, MOVE_BY_DATE)
    needs = {"finished.path": moves, "error.path": not config["halt.on.error"]}
    names = ["input.path", *(name for name, is_needed in needs.items() if is_needed)]
    if is_local:
        check_folders(config, names)
    for name in names:
        if not config[name]:
            raise ConfigError(f"Invalid value {config[name]} for configuration {name}: it names no folder.")


def _order(config: Mapping[str, Any]) -> list[tuple[Callable[[Found], Any], bool]]:
    """Return how to sort files: by what, and whether downwards."""
    found = []
    for text in config["files.sort.attributes"]:
        name, is_down = text.removesuffix("Asc").removesuffix("Desc"), text.endswith("Desc")
        if name not in ORDERS or name == text:
            known = ", ".join(f"{one}{way}" for one in ORDERS for way in ("Asc", "Desc"))
            raise ConfigError(f"Invalid value {text} for configuration files.sort.attributes: there are {known}.")
        found.append((ORDERS[name], is_down))
    return found


CSV = SpoolDir("Csv", table, ConfigDef([*COMMON, *OF_CSV, *file_schemas.SETTINGS]))
JSON = SpoolDir("Json", documents, ConfigDef([*COMMON, *file_schemas.SETTINGS]))
SCHEMALESS_JSON = SpoolDir("SchemaLessJson", texts, ConfigDef(COMMON))
BINARY = SpoolDir("BinaryFile", whole, ConfigDef([*COMMON, *OF_WHOLE]))
LINES = SpoolDir("LineDelimited", lines, ConfigDef(COMMON))
AVRO = SpoolDir("Avro", avro, ConfigDef(COMMON))
PARQUET = SpoolDir("Parquet", parquet, ConfigDef(COMMON))
OVER_SFTP = "io.confluent.connect.sftp.Sftp"
SFTP_CSV, SFTP_JSON, SFTP_LINES = (
    SpoolDir(name, one.read, ConfigDef([*one.config, *sftp.CONNECTION]), sftp.RemoteFolder, OVER_SFTP)
    for name, one in (("Csv", CSV), ("Json", JSON), ("LineDelimited", LINES))
)


@dataclass(slots=True)
class Opened:
    """The file that is being read, and how many of its records were."""

    found: Found
    partition: dict[str, Any]
    file: IO[bytes]
    rows: Iterator[Any]
    count: int
    headers: tuple[Header, ...] = ()  # of each record, before that of its place

    @property
    def name(self) -> str:
        return self.found.name


class Spooling:
    """The task: one file after the other, in the order of their names."""

    def __init__(self, connector: SpoolDir, context: SourceContext) -> None:
        self._connector, self._context = connector, context
        self._config = connector.config.parse(context.config)
        check(self._config, is_local=connector.is_local)
        self._place = connector.place(self._config)
        self._number, self._count = (int(context.config.get(f"task.{n}", d)) for n, d in (("number", 0), ("count", 1)))
        self._pattern, self._order = re.compile(self._config["input.file.pattern"]), _order(self._config)
        self._rows = Rows(self._config) if "value.schema" in self._config else None
        if self._rows is not None and self._rows.columns:
            self._config = {**self._config, "columns": self._rows.columns}
        self._now: Opened | None = None
        self._read: list[tuple[str, int]] = []  # to be put away when their records are committed
        self._is_pending = False  # records were polled that may not be committed
        self._left: set[tuple[str, int]] = set()  # those that stay where they are
        self._shape, self._key = Shape(), Shape()

    def poll(self) -> Sequence[Record]:
        if self._now is None and not self._begin():
            self._context.wait(self._config["empty.poll.wait.ms"] / 1000)
            return ()
        now = self._now
        assert now is not None
        try:
            rows = list(islice(now.rows, self._config["batch.size"]))
            records = [self._record(now, row) for row in rows]
        except WRONG as error:
            self._refuse(now, error)
            return ()
        if not rows:
            self._end(now)
        self._is_pending = self._is_pending or bool(rows)
        return records

    def _begin(self) -> bool:
        """Open the next file, after what was read of it before."""
        for found in self._files():
            name, modified, _ = found
            partition = {NAME: name, MODIFIED: modified}
            count = (self._context.offset(partition) or {}).get(OFFSET, 0)
            try:
                file = self._place.open(name)
                content: Any = gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file
                rows = self._connector.read(content, self._config)
                self._now = Opened(found, partition, file, rows, count, self._headers(found))
                for _ in islice(self._now.rows, count):
                    continue
            except WRONG as error:
                self._refuse(self._now or Opened(found, partition, io.BytesIO(), iter(()), 0), error)
                return False
            return True
        return False

    def _files(self) -> list[Found]:
        """Return the files to be read now, by this task, in their order."""
        found = [one for one in self._place.files() if self._takes(one.name, one.modified)]
        for by, is_down in reversed(self._order):
            found.sort(key=by, reverse=is_down)
        return found

    def _headers(self, found: Found) -> tuple[Header, ...]:
        folder = self._config["input.path"]
        folder = os.path.abspath(folder) if self._connector.is_local else folder
        name = found.name
        return (
            Header("file.name", STRING, name),
            Header("file.name.without.extension", STRING, name.rpartition(".")[0] or name),
            Header("file.path", STRING, f"{folder.rstrip('/')}/{name}"),
            Header("file.parent.dir.name", STRING, os.path.basename(folder.rstrip("/"))),
            Header("file.length", INT64, found.size),
            Header("file.last.modified", TIMESTAMP_SCHEMA, Instant(found.modified)),
        )

    def _takes(self, name: str, modified: int) -> bool:
        """Tell whether a file is to be read now, by this task."""
        if not self._pattern.fullmatch(name) or any(name == read for read, _ in self._read):
            return False
        if zlib.crc32(name.encode()) % self._count != self._number:
            return False
        is_young = time.time() * 1000 - modified < self._config["file.minimum.age.ms"]
        return not is_young and (name, modified) not in self._left

    def _record(self, now: Opened, row: Any) -> Record:
        now.count += 1
        headers = (*now.headers, Header("file.offset", INT64, now.count))
        when = now.found.modified if self._config["timestamp.mode"] == FILE_TIME else time.time_ns() // 1_000_000
        if self._rows is not None and self._rows.have_schemas:
            key, value = self._rows.read(row)
            key_schema, schema = key.schema if key else None, value.schema
            if key is None:
                key_schema, key = self._key_of(row)
            when = self._rows.time_of(value) or when
        elif isinstance(row, SchemaAndValue):
            schema, value = row.schema, row.value
            key_schema, key = self._field_of(row)
        else:
            key_schema, key = self._key_of(row)
            kind = STRING if isinstance(row, str) else BYTES if isinstance(row, bytes) else None
            schema, value = (kind, row) if kind else self._shape.take(row)
        topic, offset = self._config["topic"], {OFFSET: now.count}
        return Record(topic, None, key_schema, key, schema, value, when, headers, now.partition, offset)

    def _field_of(self, row: SchemaAndValue) -> tuple[Any, Any]:
        name, schema = self._config["key.field"], row.schema
        found = schema.by_name.get(name) if name and schema is not None else None
        return (found.schema, row.value.get(name)) if found else (None, None)

    def _key_of(self, row: Any) -> tuple[Any, Any]:
        name = self._config["key.field"]
        return self._key.take(row.get(name)) if name and isinstance(row, dict) else (None, None)

    def _end(self, now: Opened) -> None:
        now.file.close()
        self._read.append((now.name, now.found.modified))
        self._now = None
        if not self._is_pending:
            self.committed()  # all of it was committed before; nobody else will say so

    def _refuse(self, now: Opened, error: Exception) -> None:
        """Fail, or put the file aside."""
        now.file.close()
        self._now = None
        said = f"{self._config['input.path']}/{now.name} cannot be read after {now.count} records: {error}"
        if self._config["halt.on.error"]:
            raise ConnectError(said) from error
        self._place.move(now.name, self._config["error.path"])

    def committed(self) -> None:
        """Put away the files whose records are all in Kafka."""
        self._is_pending = False
        for name, modified in self._read:
            match self._config["cleanup.policy"]:
                case "MOVE":
                    self._place.move(name, self._config["finished.path"])
                case "MOVEBYDATE":
                    day = datetime.fromtimestamp(modified / 1000).date().isoformat()
                    self._place.move(name, self._config["finished.path"], day)
                case "DELETE":
                    self._place.delete(name)
                case _:
                    self._left.add((name, modified))
        self._read.clear()

    def close(self) -> None:
        if self._now is not None:
            self._now.file.close()
        self._place.close()
