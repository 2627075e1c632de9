"""Iceberg sink: tables of any catalog that the package pyiceberg knows. Offsets are in the properties of snapshots.

The settings are those of Apache's connector where it has them. There is no control topic: a task commits what it read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key
from moldau.connect.connector import Config, TopicPartition
from moldau.connect.connectors.lake import LakeSink, Options
from moldau.connect.connectors.packages import needed
from moldau.connect.errors import ConfigError, ConnectError, RetriableError

CATALOG = "iceberg.catalog."
OFFSETS = "moldau.offsets."  # and the name of the connector
MOST_LISTED = 200  # values in a filter; pyiceberg does not look at the bounds of files for more
AT = "__at"
PART = re.compile(r"(?:(year|month|day|hour|bucket|truncate)\()?([^(),]+)(?:, *(\d+))?\)?")


class IcebergTable:
    """One table. Each snapshot of ours has the offsets of all partitions, so the last one tells all."""

    def __init__(self, config: Config, options: Options, name: str) -> None:
        self._catalogs = needed("pyiceberg.catalog", "Iceberg", "iceberg")
        self._errors = needed("pyiceberg.exceptions", "Iceberg", "iceberg")
        self._files = needed("pyiceberg.io.pyarrow", "Iceberg", "iceberg")
        self._options, self._name, self._mark = options, name, OFFSETS + config.get("name", "")
        self._given = {one.removeprefix(CATALOG): text for one, text in config.items() if one.startswith(CATALOG)}
        self._catalog_name = config.get("iceberg.catalog") or "iceberg"
        self._catalog: Any = None
        self._table: Any = None

    def load(self) -> bool:
        self._table = self._do(self._loaded)
        return self._table is not None

    def _loaded(self) -> Any:
        if self._catalog is None:
            self._catalog = self._catalogs.load_catalog(self._catalog_name, **self._given)
        try:
            return self._catalog.load_table(self._name)
        except (self._errors.NoSuchTableError, self._errors.NoSuchNamespaceError):
            return None

    @property
    def schema(self) -> Any:
        return self._table.schema().as_arrow()

    def create(self, schema: Any) -> None:
        parts = [part_of(one) for one in self._options.partition_by]

        def create() -> None:
            self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
            with self._catalog.create_table_transaction(self._name, schema) as change, change.update_spec() as spec:
                for name, transform in parts:
                    if transform:
                        spec.add_field(name, transform)
                    else:
                        spec.add_identity(name)

        with suppress(self._errors.TableAlreadyExistsError):  # another task was faster
            self._do(create)
        self.load()

    def extend(self, schema: Any) -> None:
        def extend() -> None:
            with self._table.update_schema() as change:
                change.union_by_name(schema)

        self._do(extend)
        self.load()

    def ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = self._known()
        return {(topic, number): found.get(f"{topic}/{number}", 0) for topic, number in places}

    def _known(self) -> dict[str, int]:
        """Return the offsets of the last snapshot that has some of this connector."""
        snapshot = self._table.current_snapshot()
        while snapshot is not None:
            properties = snapshot.summary.additional_properties if snapshot.summary else {}
            if self._mark in properties:
                return json.loads(properties[self._mark])
            parent = snapshot.parent_snapshot_id
            snapshot = self._table.snapshot_by_id(parent) if parent is not None else None
        return {}

    def write(self, rows: Any, deleted: Any, ends: Mapping[TopicPartition, int]) -> None:
        offsets = {**self._known(), **{f"{topic}/{number}": end for (topic, number), end in ends.items()}}
        properties = {self._mark: json.dumps(offsets)}

        # pyiceberg would put a commit that lost a race on top of the winner's, with offsets that are no longer true.
        self._table.metadata.properties["commit.retry.num-retries"] = "0"

        def write() -> None:
            replaced = self._replaced(deleted) if deleted is not None and self._table.current_snapshot() else []
            with self._table.transaction() as change:
                if not replaced:
                    change.append(rows, snapshot_properties=properties)
                    return
                with change.update_snapshot(snapshot_properties=properties).overwrite() as files:
                    for old, rest in replaced:
                        files.delete_data_file(old)
                        self._add(files, change, rest)
                    self._add(files, change, rows)

        self._do(write)

    def _replaced(self, deleted: Any) -> list[tuple[Any, Any]]:
        """Return the data files in which some of the keys are, and the rows of each that stay."""
        keys = Keys(deleted)
        found: list[tuple[Any, Any]] = []
        for task in self._table.scan(row_filter=keys.filter()).plan_files():
            stay = keys.others(self._read(task, deleted.schema.names))
            if not keys.is_true(stay):
                found.append((task.file, self._read(task).filter(stay)))
        return found

    def _read(self, task: Any, names: Sequence[str] = ()) -> Any:
        """Read a data file without what is deleted of it, all of its columns or some."""
        schema = self._table.schema()
        every = needed("pyiceberg.expressions", "Iceberg", "iceberg").AlwaysTrue()
        wanted = schema.select(*names) if names else schema
        return self._files.ArrowScan(self._table.metadata, self._table.io, wanted, every).to_table([task])

    def _add(self, files: Any, change: Any, rows: Any) -> None:
        """Write rows, if there are any, to data files of a new snapshot."""
        if len(rows):
            for one in self._files._dataframe_to_data_files(change.table_metadata, rows, self._table.io):
                files.append_data_file(one)

    def files(self) -> int:
        snapshot = self._do(lambda: self._table.refresh().current_snapshot())
        return int(snapshot.summary.additional_properties.get("total-data-files", 0)) if snapshot else 0

    def _do(self, operation: Any) -> Any:
        """Do something with the catalog; what another writer, the catalog or the storage prevented may pass."""
        e = self._errors
        passing = (e.CommitFailedException, e.CommitStateUnknownException, e.ServerError, e.ServiceUnavailableError)
        passing += (e.TooManyRequestsError, e.WaitingForLockException, e.ValidationException, OSError, *_of_others())
        try:
            return operation()
        except passing as error:
            self._catalog = None
            raise RetriableError(f"{self._name} cannot be reached or written for now: {error}") from error
        except e.NotInstalledError as error:
            raise ConnectError(f"{self._name} needs more of pyiceberg: {error}") from error
        except (e.RESTError, e.ValidationError) as error:
            raise ConnectError(f"The catalog refuses {self._name}: {error}") from error


def _of_others() -> tuple[type[Exception], ...]:
    """Return what the libraries under pyiceberg raise when a catalog is away."""
    of_rest = needed("requests.exceptions", "Iceberg", "iceberg").RequestException
    try:
        return of_rest, import_module("sqlalchemy.exc").OperationalError
    except ImportError:  # a catalog of another kind
        return (of_rest,)


def part_of(text: str) -> tuple[str, Any]:
    """Read a part of partition-by: a column, or a transform of one, such as day(at) or bucket(id, 16)."""
    found = PART.fullmatch(text.strip())
    kind, name, number = found.groups() if found else (None, "", None)
    if not name or (kind is None and ("(" in text or ")" in text)) or (kind in ("bucket", "truncate")) != bool(number):
        raise ConfigError(f"{text} is not a partition: write a column, day(column) or bucket(column, 16).")
    transforms = needed("pyiceberg.transforms", "Iceberg", "iceberg")
    if kind is None:
        return name, None
    made = getattr(transforms, f"{kind.capitalize()}Transform")
    return name, made(int(number)) if number else made()


class Keys:
    """Keys of rows: which files may have them, and which rows of a file have others."""

    def __init__(self, keys: Any) -> None:
        self._keys, self._compute = keys, needed("pyarrow.compute", "Iceberg", "iceberg")

    def filter(self) -> Any:
        """Return what a file must have some of: each column of the keys by itself, by its values or by its range."""
        e = needed("pyiceberg.expressions", "Iceberg", "iceberg")
        found = e.AlwaysTrue()
        for name in self._keys.schema.names:
            column = self._compute.unique(self._keys[name])
            if len(column) <= MOST_LISTED:
                found = e.And(found, e.In(name, column.to_pylist()))
            elif has_range(column.type):
                ends = self._compute.min_max(column).as_py()
                found = e.And(found, e.GreaterThanOrEqual(name, ends["min"]), e.LessThanOrEqual(name, ends["max"]))
        return found

    def others(self, rows: Any) -> Any:
        """Tell of each row whether its key is none of these."""
        names = self._keys.schema.names
        if len(names) == 1:
            [name] = names
            return self._compute.invert(self._compute.is_in(rows[name], self._keys[name]))
        pa = needed("pyarrow", "Iceberg", "iceberg")
        at = pa.array(range(len(rows)))
        left = rows.select(names).append_column(AT, at).join(self._keys, names, join_type="left anti")
        return self._compute.is_in(at, left[AT])

    def is_true(self, each: Any) -> bool:
        return self._compute.all(each, min_count=0).as_py()


def has_range(kind: Any) -> bool:
    types = needed("pyarrow", "Iceberg", "iceberg").types
    return any(one(kind) for one in (types.is_integer, types.is_string, types.is_large_string, types.is_date))


def _options(config: Mapping[str, Any]) -> Options:
    for one in config["iceberg.tables.default-partition-by"]:
        if not PART.fullmatch(one.strip()):
            raise ConfigError(f"{one} is not a partition: write a column, day(column) or bucket(column, 16).")
    return Options(
        config["iceberg.tables"],
        tuple(config["iceberg.tables.default-id-columns"]),
        tuple(config["iceberg.tables.default-partition-by"]),
        config["iceberg.tables.auto-create-enabled"],
        config["iceberg.tables.evolve-schema-enabled"],
        config["iceberg.tables.upsert-mode-enabled"],
        config["iceberg.control.commit.interval-ms"] / 1000,
        config["iceberg.commit.max.records"],
        config["iceberg.compaction.hint.files"],
    )


def a_table(name: str, value: Any) -> None:
    if "," in value or "." not in value:
        raise ConfigError(f"Invalid value {value} for configuration {name}: write namespace.table, with ${{topic}}")


ICEBERG = LakeSink(
    "org.apache.iceberg.connect.IcebergSinkTask",
    ConfigDef(
        [
            Key(
                "iceberg.tables",
                importance=Importance.HIGH,
                doc="The table, as namespace.table; ${topic} is replaced.",
                validator=a_table,
            ),
            key("iceberg.catalog", "iceberg", "The catalog's name. Its settings have the prefix iceberg.catalog."),
            key("iceberg.tables.default-id-columns", [], "Columns of the key.", Kind.LIST),
            key("iceberg.tables.default-partition-by", [], "Columns or transforms that divide a table.", Kind.LIST),
            key("iceberg.tables.auto-create-enabled", False, "Create a table that is missing.", Kind.BOOLEAN),
            key("iceberg.tables.evolve-schema-enabled", False, "Add columns that are missing.", Kind.BOOLEAN),
            key("iceberg.tables.upsert-mode-enabled", False, "Replace and delete rows by key.", Kind.BOOLEAN),
            key(
                "iceberg.control.commit.interval-ms", 300_000, "Time between commits.", Kind.LONG, validator=between(0)
            ),
            key("iceberg.commit.max.records", 100_000, "The most records of a commit.", Kind.INT, validator=between(1)),
            key("iceberg.compaction.hint.files", 1000, "Data files that make a warning; 0 for none.", Kind.INT),
        ]
    ),
    _options,
    IcebergTable,
)
