"""Delta sink: tables of Delta Lake by the package deltalake. Offsets are transactions of applications in its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key
from moldau.connect.connector import Config, TopicPartition
from moldau.connect.connectors.lake import LakeSink, Options
from moldau.connect.connectors.packages import needed
from moldau.connect.errors import ConnectError, RetriableError

STORAGE = "delta.storage."
DELETED = "__deleted"


class DeltaTable:
    """One table. The log's application ids are CONNECTOR/TOPIC/PARTITION, their versions the offsets after the last."""

    def __init__(self, config: Config, options: Options, name: str) -> None:
        self._delta = needed("deltalake", "Delta", "delta")
        self._options, self._name, self._connector = options, name, config.get("name", "")
        self._storage = {name.removeprefix(STORAGE): one for name, one in config.items() if name.startswith(STORAGE)}
        self._table: Any = None

    def load(self) -> bool:
        try:
            if self._table is None:
                self._table = self._delta.DeltaTable(self._name, storage_options=self._storage or None)
            else:
                self._table.update_incremental()
        except self._delta.exceptions.TableNotFoundError:
            self._table = None
        except (self._delta.exceptions.DeltaError, OSError) as error:
            raise RetriableError(f"{self._name} cannot be read: {error}") from error
        return self._table is not None

    @property
    def schema(self) -> Any:
        import pyarrow as pa

        return pa.schema(self._table.schema().to_arrow())

    def create(self, schema: Any) -> None:
        parts = list(self._options.partition_by) or None
        self._do(
            lambda: self._delta.DeltaTable.create(
                self._name, schema, mode="ignore", partition_by=parts, storage_options=self._storage or None
            )
        )
        self.load()

    def extend(self, schema: Any) -> None:
        lacking = [one for one in self._delta.Schema.from_arrow(schema).fields if one.name not in self.schema.names]
        self._do(lambda: self._table.alter.add_columns(lacking))
        self.load()

    def ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        versions = self._do(lambda: {place: self._table.transaction_version(self._app(place)) for place in places})
        return {place: version or 0 for place, version in versions.items()}

    def _app(self, place: TopicPartition) -> str:
        return f"{self._connector}/{place[0]}/{place[1]}"

    def write(self, rows: Any, deleted: Any, ends: Mapping[TopicPartition, int]) -> None:
        marks = [self._delta.Transaction(self._app(place), end) for place, end in ends.items()]
        properties = self._delta.CommitProperties(app_transactions=marks, max_commit_retries=0)
        if deleted is None:
            append = self._delta.write_deltalake
            self._do(lambda: append(self._table, rows, mode="append", commit_properties=properties))
        else:
            self._do(lambda: self._merge(rows, deleted, properties))

    def _merge(self, rows: Any, deleted: Any, properties: Any) -> None:
        """Replace and delete in one commit: the rows, and the keys that have none."""
        import pyarrow as pa

        names, keys = rows.schema.names, self._options.id_columns
        optional = pa.schema([one.with_nullable(True) for one in rows.schema])
        gone = deleted.slice(0, 0)
        if len(deleted) > len(rows):  # the keys of all rows are among them
            written = set(zip(*(rows[name].to_pylist() for name in keys), strict=True))
            all_keys = zip(*(deleted[name].to_pylist() for name in keys), strict=True)
            gone = deleted.filter(pa.array([one not in written for one in all_keys], pa.bool_()))
        empty = {one.name: gone[one.name] if one.name in keys else pa.nulls(len(gone), one.type) for one in optional}
        source = pa.concat_tables([rows.cast(optional), pa.table(empty, schema=optional)])
        flags = pa.array([False] * len(rows) + [True] * len(gone))
        source = source.append_column(DELETED, flags)
        values = {f"`{name}`": f"s.`{name}`" for name in names}
        same = " AND ".join(f"t.`{name}` = s.`{name}`" for name in keys)
        merge = self._table.merge(source, same, "s", "t", commit_properties=properties)
        merge = merge.when_matched_delete(f"s.{DELETED}").when_matched_update(values, f"NOT s.{DELETED}")
        merge.when_not_matched_insert(values, f"NOT s.{DELETED}").execute()

    def files(self) -> int:
        return len(self._table.file_uris())

    def _do(self, operation: Any) -> Any:
        """Do something with the table; what another writer or the storage prevented may pass."""
        errors = self._delta.exceptions
        try:
            return operation()
        except (errors.SchemaMismatchError, errors.DeltaProtocolError) as error:
            raise ConnectError(f"{self._name} does not take the rows: {error}") from error
        except (errors.DeltaError, OSError) as error:
            raise RetriableError(f"{self._name} cannot be written for now: {error}") from error


def _options(config: Mapping[str, Any]) -> Options:
    return Options(
        config["delta.table"],
        tuple(config["delta.id-columns"]),
        tuple(config["delta.partition-by"]),
        config["delta.auto-create-enabled"],
        config["delta.evolve-schema-enabled"],
        config["delta.upsert-mode-enabled"],
        config["delta.commit.interval-ms"] / 1000,
        config["delta.commit.max.records"],
        config["delta.compaction.hint.files"],
    )


DELTA = LakeSink(
    "moldau.connect.DeltaSinkTask",
    ConfigDef(
        [
            Key("delta.table", importance=Importance.HIGH, doc="Path or URL of the table; ${topic} is replaced."),
            key("delta.id-columns", [], "Columns of the key.", Kind.LIST),
            key("delta.partition-by", [], "Columns that divide the table into folders.", Kind.LIST),
            key("delta.auto-create-enabled", False, "Create a table that is missing.", Kind.BOOLEAN),
            key("delta.evolve-schema-enabled", False, "Add columns that are missing.", Kind.BOOLEAN),
            key("delta.upsert-mode-enabled", False, "Replace and delete rows by key.", Kind.BOOLEAN),
            key("delta.commit.interval-ms", 300_000, "Time between commits.", Kind.LONG, validator=between(0)),
            key("delta.commit.max.records", 100_000, "The most records of a commit.", Kind.INT, validator=between(1)),
            key("delta.compaction.hint.files", 1000, "Data files that make a warning; 0 for none.", Kind.INT),
        ]
    ),
    _options,
    DeltaTable,
)
