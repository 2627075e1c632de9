"""Files of records, in a folder or in S3: rotated by count and time, in folders by partition, field or time.

The settings are those of Confluent's S3 connector. A file is called TOPIC+PARTITION+OFFSET of its first record.
Offsets are committed when all files before them are written, so after a crash the same records make files of the same
names again: with rotation by `flush.size` and `rotate.interval.ms`, and folders that do not depend on the clock, each
record is there exactly once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key, one_of
from moldau.connect.connector import SINK, Config, Offsets, SinkContext, TopicPartition
from moldau.connect.connectors import file_formats, hive, partitioners, sftp
from moldau.connect.connectors.positions import place_of
from moldau.connect.connectors.storage import Bucket, Folder, Hdfs, Storage
from moldau.connect.data import Record, Schema
from moldau.connect.errors import ConnectError, DataError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import Shape

DEFAULT = "io.confluent.connect.storage.partitioner.DefaultPartitioner"


COMMON = (
    Key("format.class", importance=Importance.HIGH, doc="The format of files, such as ParquetFormat."),
    Key("flush.size", Kind.INT, importance=Importance.HIGH, doc="Records of a file.", validator=between(1)),
    key("rotate.interval.ms", -1, "The longest time between the first and the last record of a file.", Kind.LONG),
    key("rotate.schedule.interval.ms", -1, "How long a file may stay open, by the clock.", Kind.LONG),
    key("partitioner.class", DEFAULT, "What the folders are made of."),
    key("partition.field.name", [], "Fields that make the folders.", Kind.LIST),
    key("partition.duration.ms", -1, "How much time a folder holds.", Kind.LONG),
    key("path.format", "", "Pattern of folders by time."),
    key("timezone", "UTC", "Time zone of folders by time."),
    key("locale", "en", "Language of folders by time; English is the only one.", validator=one_of("en", "en-US", "")),
    key("timestamp.extractor", "Wallclock", "Time of a record.", validator=one_of(*partitioners.EXTRACTORS)),
    key("timestamp.field", "timestamp", "The field with the time, for RecordField."),
    key("schema.compatibility", "NONE", "A new schema begins a new file.", validator=one_of("NONE")),
    key("topics.dir", "topics", "The folder of all topics."),
    key("directory.delim", "/", "What separates folders.", validator=one_of("/")),
    key("file.delim", "+", "What separates the parts of a file's name."),
    key("filename.offset.zero.pad.width", 10, "Digits of the offset in a name.", Kind.INT),
    key("avro.codec", "null", "Compression of Avro.", validator=one_of("null", "deflate", "snappy", "bzip2")),
    key("parquet.codec", "snappy", "Compression of Parquet.", validator=one_of("none", "gzip", "snappy", "zstd")),
    key("connect.meta.data", True, "Keep what Avro does not know of a schema.", Kind.BOOLEAN),
    key("format.bytearray.extension", ".bin", "Extension of files of bytes."),
    key("format.bytearray.separator", "\n", "What ends a record of bytes."),
    key("behavior.on.null.values", "fail", "Records without a value.", validator=one_of("fail", "ignore")),
    key("s3.compression.type", "none", "Compression of JSON and bytes.", validator=one_of("none", "gzip")),
)


@dataclass(frozen=True, slots=True)
class FilesSink:
    """A sink of files. `storage` makes the place of the files from the settings."""

    task_class: str
    config: ConfigDef
    storage: Callable[[Mapping[str, Any]], Storage]
    hive_root: Callable[[Mapping[str, Any]], str] | None = None  # where Hive finds the files, if it can
    kind: str = SINK
    exactly_once: bool = False

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        parsed = self.config.parse(config)
        made = file_formats.find(parsed["format.class"])
        partitioners.find(parsed)
        if self.hive_root is not None:
            hive.check(parsed, made.name)
        return [dict(config) for _ in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> Files:
        config = self.config.parse(context.config)
        tables = None
        if self.hive_root is not None and config["hive.integration"]:
            tables = f"{self.hive_root(config)}/{config['topics.dir']}"
        return Files(context, config, self.storage(config), tables)


FOLDER = FilesSink(
    "moldau.connect.FolderSinkTask",
    ConfigDef([Key("path", importance=Importance.HIGH, doc="The folder to write to."), *COMMON, *hive.SETTINGS]),
    lambda config: Folder(config["path"]),
    lambda config: Path(config["path"]).absolute().as_uri(),
)
S3 = FilesSink(
    "io.confluent.connect.s3.S3SinkTask",
    ConfigDef(
        [
            Key("s3.bucket.name", importance=Importance.HIGH, doc="The bucket."),
            key("s3.region", "us-west-2", "The region of the bucket."),
            key("store.url", "", "The URL of a server that is not Amazon's."),
            key("aws.access.key.id", "", "The key; by default the one of the environment."),
            key("aws.secret.access.key", None, "Its secret.", Kind.PASSWORD),
            key("storage.class", "io.confluent.connect.s3.storage.S3Storage", "The only storage there is."),
            *COMMON,
        ]
    ),
    Bucket,
)
SFTP = FilesSink(
    "io.confluent.connect.sftp.SftpSinkTask",
    ConfigDef([key("sftp.working.dir", "/", "The folder to write to."), *sftp.CONNECTION, *COMMON]),
    sftp.RemoteFiles,
)
HDFS = FilesSink(
    "io.confluent.connect.hdfs3.Hdfs3SinkTask",
    ConfigDef(
        [
            Key("hdfs.url", importance=Importance.HIGH, doc="The name node's HTTP address, webhdfs://host:port."),
            key("hdfs.user", "", "The user; without Kerberos nobody checks it."),
            key("hdfs.timeout.ms", 60_000, "How long to wait for an answer.", Kind.INT, validator=between(1)),
            *COMMON,
            *hive.SETTINGS,
        ]
    ),
    Hdfs,
    lambda config: config["hdfs.url"].rstrip("/"),
)


@dataclass(slots=True)
class Batch:
    """The records of one partition that are not in files yet, by folder. `end` is the offset after the last one."""

    first_ms: int
    end: int = 0
    count: int = 0
    by_folder: dict[str, list[Record]] = field(default_factory=dict)
    schemas: dict[str, Schema | None] = field(default_factory=dict)
    opened_at: float = field(default_factory=time.monotonic)


class Files:
    """The task. `tables` is where Hive finds its files, if there are to be tables."""

    wants_empty = True  # a file becomes due though nothing comes any more

    def __init__(self, context: SinkContext, config: Mapping[str, Any], storage: Storage, tables: str | None) -> None:
        self._context, self._config, self._storage = context, config, storage
        self._format = file_formats.find(config["format.class"])
        self._tables = hive.HiveTables(config, self._format.name, tables) if tables else None
        self._folder = partitioners.find(config)
        self._when = partitioners.extractor(config)
        self._open: dict[TopicPartition, Batch] = {}
        self._written: dict[TopicPartition, int] = {}
        self._shapes: dict[str, Shape] = {}

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        self._open, self._written = {}, {}
        return {}

    def put(self, records: Sequence[Record]) -> None:
        self._rotate()
        done = self._written | {place: batch.end for place, batch in self._open.items()}  # these end later
        for record in records:
            place, offset = place_of(record)
            if offset < done.get(place, 0):
                continue  # it is put again after a failure
            try:
                made = self._prepared(record)
            except ConnectError as error:
                self._context.report(record, error)
                continue
            if made is not None:
                self._take(place, offset, *made)
        self._rotate()

    def _prepared(self, record: Record) -> tuple[Record, str, int] | None:
        """Return a record with its folder and its time; None for one that is to be left out."""
        if record.value is None:
            if self._config["behavior.on.null.values"] == "ignore":
                return None
            raise ConnectError("The record has no value; behavior.on.null.values=ignore leaves such records out.")
        if self._format.has_schema:
            record = file_formats.typed(record, self._shapes.setdefault(record.topic, Shape()))
            if record.value_schema is None:
                raise DataError(f"{self._format.name} takes records with a schema.")
        return record, f"{record.topic}/{self._folder(record)}", self._when(record)

    def _take(self, place: TopicPartition, offset: int, record: Record, folder: str, when: int) -> None:
        batch = self._open.get(place)
        if batch is not None and offset < batch.end:  # of one record there may be several
            if self._is_other(batch, folder, record):
                error = DataError("What was made of one record has several schemas, and a file has one.")
                self._context.report(record, error)
                return
        elif batch is not None and self._is_over(batch, folder, record, when):
            self._close(place)
            batch = None
        if batch is None:
            batch = self._open[place] = Batch(when)
        batch.by_folder.setdefault(folder, []).append(record)
        batch.schemas[folder] = record.value_schema
        batch.count, batch.end = batch.count + 1, offset + 1

    def _is_over(self, batch: Batch, folder: str, record: Record, when: int) -> bool:
        is_full = batch.count >= self._config["flush.size"]
        return is_full or self._is_late(batch, when) or self._is_other(batch, folder, record)

    def _is_late(self, batch: Batch, when: int) -> bool:
        return 0 < self._config["rotate.interval.ms"] <= when - batch.first_ms

    def _is_other(self, batch: Batch, folder: str, record: Record) -> bool:
        return self._format.has_schema and batch.schemas.get(folder, record.value_schema) != record.value_schema

    def _rotate(self) -> None:
        """Close what is full, because a file could not be written before, or has been open for too long."""
        size, most = self._config["flush.size"], self._config["rotate.schedule.interval.ms"]
        for place, batch in list(self._open.items()):
            if batch.count >= size or 0 < most <= (time.monotonic() - batch.opened_at) * 1000:
                self._close(place)

    def _close(self, place: TopicPartition) -> None:
        """Write the files of a partition; only then its offsets may be committed."""
        batch = self._open[place]
        for folder, records in batch.by_folder.items():
            self._storage.write(self._path(folder, place, records[0]), self._data(records))
            schema = batch.schemas[folder]
            if self._tables is not None and schema is not None:
                self._tables.wrote(place[0], folder.removeprefix(f"{place[0]}/"), schema)
        self._written[place] = batch.end
        del self._open[place]

    def _path(self, folder: str, place: TopicPartition, first: Record) -> str:
        config, offset = self._config, place_of(first)[1]
        number = str(offset).zfill(config["filename.offset.zero.pad.width"])
        name = config["file.delim"].join((place[0], str(place[1]), number))
        is_raw = self._format.name.startswith("bytearray")
        extension = config["format.bytearray.extension"] if is_raw else self._format.extension
        packed = ".gz" if self._is_packed else ""
        return "/".join(filter(None, (config["topics.dir"], folder, name + extension + packed)))

    @property
    def _is_packed(self) -> bool:
        return self._config["s3.compression.type"] == "gzip" and not self._format.has_schema

    def _data(self, records: Sequence[Record]) -> bytes:
        made = self._format.write(records, self._config)
        return file_formats.packed(made, "gzip") if self._is_packed else made

    def flush(self, offsets: Offsets) -> Offsets:
        """Return how far partitions are in files; one without open files is done as far as it was read."""
        self._rotate()
        done = {place: end for place, end in offsets.items() if place not in self._open}
        return {**{place: end for place, end in self._written.items() if place in offsets}, **done}

    def close(self) -> None:
        """What is not in a file yet is read again by the next task."""
