"""Sinks of Delta and Iceberg tables, read back by the libraries and by DuckDB.

Each test runs with both kinds, with Iceberg also under Apache Iceberg's own REST catalog.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.connector import SinkContext
from moldau.connect.data import (
    BYTES,
    DATE_SCHEMA,
    FLOAT32,
    INT16,
    INT64,
    STRING,
    TIMESTAMP_SCHEMA,
    Instant,
    Record,
    Struct,
    array,
    decimal,
    map_of,
    struct,
)
from moldau.connect.errors import ConfigError, ConnectError, DataError, RetriableError
from moldau.connect.plugins import find
from tests.connect.lake.rest_catalog import RestCatalog, rest_catalog
from tests.services import unique

PLACE = ("t", 0)
KINDS = {"delta": "deltalake", "iceberg": "pyiceberg"}
REST = pytest.param("rest", marks=pytest.mark.needs("iceberg-rest"))


@dataclass
class Lake:
    """A kind of table, and where the tables of a test are."""

    kind: str
    folder: Path
    rest: RestCatalog | None = None
    refused: list[str] = field(default_factory=list)
    space: str = field(default_factory=lambda: unique("db").replace("-", "_"))

    def config(self, **options: Any) -> dict[str, str]:
        """Settings of a connector; options are named as Iceberg's, without their prefixes."""
        given = {name.replace("_", "-"): str(one).lower() for name, one in options.items()}
        if self.kind == "delta":
            own = {"delta.table": str(self.folder / "${topic}"), "delta.commit.interval-ms": "0"}
            return {"name": "lake", **own, **{f"delta.{name}": one for name, one in given.items()}}
        renamed = {"id-columns": "default-id-columns", "partition-by": "default-partition-by"}
        own = {
            "iceberg.tables": f"{self.space}.${{topic}}",
            "iceberg.control.commit.interval-ms": "0",
            "iceberg.catalog.type": "rest" if self.rest else "sql",
            "iceberg.catalog.uri": self.rest.url if self.rest else f"sqlite:///{self.folder}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{self.folder}/warehouse",
        }
        named = {f"iceberg.tables.{renamed.get(name, name)}": one for name, one in given.items()}
        return {"name": "lake", **own, **named}

    def sink(self, **options: Any) -> Any:
        plugin = find({"delta": "DeltaSink", "iceberg": "IcebergSink"}[self.kind])
        assert plugin is not None
        [config] = plugin.load().task_configs(self.config(**{"auto_create_enabled": True, **options}), 1)
        report = lambda _, error: self.refused.append(str(error))  # noqa: E731
        return plugin.load().open(SinkContext(config, report, threading.Event().wait))

    def table(self, name: str = "t") -> Any:
        if self.kind == "delta":
            return import_module("deltalake").DeltaTable(self.folder / name)
        return self.catalog().load_table(f"{self.space}.{name}")

    def catalog(self) -> Any:
        given = self.config()
        names = ("type", "uri", "warehouse")
        load_catalog = import_module("pyiceberg.catalog").load_catalog
        return load_catalog("iceberg", **{one: given[f"iceberg.catalog.{one}"] for one in names})

    def rows(self, name: str = "t", by: str = "id") -> list[dict[str, Any]]:
        table = self.table(name)
        found = table.to_pyarrow_table() if self.kind == "delta" else table.scan().to_arrow()
        return sorted(found.to_pylist(), key=lambda row: row[by])

    def create(self, columns: dict[str, str], required: str) -> None:
        """Create the table with a column that takes no nulls."""
        import pyarrow as pa

        types = {"int64": pa.int64(), "string": pa.string()}
        schema = pa.schema([pa.field(one, types[kind], one != required) for one, kind in columns.items()])
        if self.kind == "delta":
            import_module("deltalake").DeltaTable.create(str(self.folder / "t"), schema)
            return
        self.catalog().create_namespace(self.space)
        self.catalog().create_table(f"{self.space}.t", schema)

    def files(self) -> set[str]:
        table = self.table()
        if self.kind == "delta":
            return set(table.file_uris())
        return {one.file.file_path for one in table.scan().plan_files()}

    def commits(self, name: str = "t") -> int:
        """How many commits have data."""
        table = self.table(name)
        if self.kind == "delta":
            return sum(one["operation"] in ("WRITE", "MERGE") for one in table.history())
        return len(table.metadata.snapshots)


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalog]:
    with rest_catalog(tmp_path_factory.mktemp("rest")) as found:
        yield found


@pytest.fixture(params=[*KINDS, REST])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    kind = "iceberg" if request.param == "rest" else request.param
    pytest.importorskip(KINDS[kind])
    (tmp_path / "warehouse").mkdir()
    return Lake(kind, tmp_path, request.getfixturevalue("rest") if request.param == "rest" else None)


def rec(offset: int, value: Any, key: Any = None, *, partition: int = 0, schema: Any = None) -> Record:
    return Record("t", partition, None, key, schema, value, 0, offset=offset)


def put(task: Any, *records: Record) -> Any:
    task.put(records)
    return task.flush({PLACE: records[-1].offset + 1})  # type: ignore[operator]


def test_a_table_is_created_appended_to_and_extended(lake: Lake) -> None:
    task = lake.sink(evolve_schema_enabled=True)
    assert task.open([PLACE]) == {}
    assert put(task, rec(0, {"id": 1, "name": "ä"}), rec(1, {"id": 2})) == {PLACE: 2}
    assert put(task, rec(2, {"id": 3, "more": 1.5})) == {PLACE: 3}
    assert lake.rows() == [
        {"id": 1, "name": "ä", "more": None},
        {"id": 2, "name": None, "more": None},
        {"id": 3, "name": None, "more": 1.5},
    ]
    assert lake.commits() == 2


def test_each_record_is_written_once(lake: Lake) -> None:
    one = lake.sink()
    one.open([PLACE])
    put(one, *(rec(n, {"id": n}) for n in range(3)))
    one.close()
    other = lake.sink()  # its group has committed nothing
    other.open([PLACE])
    put(other, *(rec(n, {"id": n}) for n in range(5)), rec(5, {"id": 5}))
    assert put(other, rec(5, {"id": 5})) == {PLACE: 6}
    assert [row["id"] for row in lake.rows()] == [0, 1, 2, 3, 4, 5] and lake.commits() == 2


def test_all_rows_that_a_transform_made_of_one_record_are_written(lake: Lake) -> None:
    task = lake.sink()
    task.open([PLACE])
    put(task, rec(0, {"id": 0}), *(rec(1, {"id": n}) for n in (1, 2, 3)), rec(2, {"id": 4}))
    assert put(task, rec(1, {"id": 9}), rec(3, {"id": 5}), rec(3, {"id": 6})) == {PLACE: 4}
    assert [row["id"] for row in lake.rows()] == [0, 1, 2, 3, 4, 5, 6]


def test_rows_are_replaced_and_deleted_by_key(lake: Lake) -> None:
    task = lake.sink(id_columns="id", upsert_mode_enabled=True)
    task.open([PLACE])
    put(task, rec(0, {"id": 1, "v": "a"}), rec(1, {"id": 2, "v": "b"}), rec(2, {"id": 1, "v": "c"}))
    assert lake.rows() == [{"id": 1, "v": "c"}, {"id": 2, "v": "b"}]
    put(task, rec(3, {"id": 3, "v": "d"}), rec(4, None, {"id": 2}), rec(5, {"id": 1, "v": None}), rec(6, None, 3))
    assert lake.rows() == [{"id": 1, "v": None}]
    put(task, rec(7, None, 1), rec(8, {"id": 1, "v": "again"}), rec(9, None, 77))
    assert lake.rows() == [{"id": 1, "v": "again"}]
    put(task, rec(10, None, 1))
    assert lake.rows() == [] and lake.refused == []
    put(task, rec(11, {"v": "no id"}), rec(12, None, None))
    assert len(lake.refused) == 2


def test_a_key_may_have_several_columns(lake: Lake) -> None:
    task = lake.sink(id_columns="a,b", upsert_mode_enabled=True)
    task.open([PLACE])
    put(task, *(rec(n, {"a": n % 2, "b": f"{n}", "id": n}) for n in range(4)))
    put(task, rec(4, {"a": 1, "b": "1", "id": 10}), rec(5, None, {"a": 0, "b": "2"}), rec(6, None, {"a": 1, "b": "2"}))
    assert [row["id"] for row in lake.rows()] == [0, 3, 10]


@pytest.mark.parametrize("names", ["id", "id,part"])
def test_keys_replace_rows_only_in_the_files_that_have_them(lake: Lake, names: str) -> None:
    task = lake.sink(id_columns=names, upsert_mode_enabled=True)
    rows = [{"id": n, "part": f"p{n}", "tags": [str(n)], "v": 0} for n in range(1500)]
    for start in (0, 500, 1000):
        put(task, *(rec(n, rows[n]) for n in range(start, start + 500)))
    files = lake.files()
    again = range(600, 900)
    gone = [{"id": n, "part": f"p{n}"} for n in (650, 1499, 7777)]
    changes = [rec(1500 + at, rows[n] | {"v": 1}) for at, n in enumerate(again)]
    put(task, *changes, *(rec(1800 + at, None, one) for at, one in enumerate(gone)))
    wanted = {n: n in again for n in range(1500) if n not in (650, 1499)}
    assert {row["id"]: row["v"] for row in lake.rows()} == wanted and lake.commits() == 4
    assert lake.rows()[699]["tags"] == ["700"] and lake.refused == []
    if lake.kind == "iceberg":
        assert len(files & lake.files()) == 1, "those of the first commit"


def test_columns_that_take_no_nulls_get_none(lake: Lake) -> None:
    lake.create({"id": "int64", "name": "string"}, required="id")
    task = lake.sink(id_columns="id", upsert_mode_enabled=True)
    schema = struct({"id": INT64, "name": STRING.but(optional=True)})
    put(task, *(rec(n, Struct(schema, (n, None)), schema=schema) for n in range(3)))
    put(task, rec(3, Struct(schema, (1, "one")), schema=schema), rec(4, None, 2))
    assert lake.rows() == [{"id": 0, "name": None}, {"id": 1, "name": "one"}]
    appending = lake.sink()
    with pytest.raises(DataError, match="id takes no nulls"):
        put(appending, rec(5, {"name": "nobody"}))


def test_types_come_back_as_they_were(lake: Lake) -> None:
    schema = struct(
        {
            "id": INT64,
            "small": INT16,
            "part": FLOAT32,
            "raw": BYTES,
            "price": decimal(2),
            "day": DATE_SCHEMA,
            "at": TIMESTAMP_SCHEMA,
            "tags": array(STRING),
            "sizes": map_of(STRING, INT64),
            "inner": struct({"x": INT64.but(optional=True)}),
        }
    )
    moment = datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)
    values = (1, 2, 0.5, b"\xff", Decimal("1.50"), Instant.of(date(2026, 1, 2)), Instant.of(moment))
    value = Struct(schema, (*values, ["a"], {"k": 7}, Struct(schema.by_name["inner"].schema, (None,))))
    task = lake.sink()
    task.open([PLACE])
    put(task, rec(0, value, schema=schema))
    [row] = lake.rows()
    assert {**row, "sizes": dict(row["sizes"])} == {
        "id": 1,
        "small": 2,
        "part": 0.5,
        "raw": b"\xff",
        "price": Decimal("1.50"),
        "day": date(2026, 1, 2),
        "at": moment,
        "tags": ["a"],
        "sizes": {"k": 7},
        "inner": {"x": None},
    }


def test_what_a_table_does_not_take_is_refused_by_a_sentence(lake: Lake) -> None:
    missing = lake.sink(auto_create_enabled=False)
    missing.open([PLACE])
    with pytest.raises(ConnectError, match="auto-create-enabled is false"):
        put(missing, rec(0, {"id": 1}))
    task = lake.sink()
    task.open([PLACE])
    put(task, rec(0, {"id": 1}))
    put(task, rec(1, {"id": 2, "new": 1}), rec(2, "text", schema=STRING), rec(3, None, 1), rec(4, {"id": 5}))
    assert [row["id"] for row in lake.rows()] == [1, 5]
    assert "no column new" in lake.refused[0] and len(lake.refused) == 3
    with pytest.raises(ConnectError, match="column id"):
        put(lake.sink(), rec(5, {"id": "not a number"}))
    with pytest.raises(ConfigError, match="id-columns"):
        lake.sink(upsert_mode_enabled=True)


def test_of_two_tasks_with_one_partition_the_second_stops(lake: Lake) -> None:
    one, other = lake.sink(), lake.sink()
    for task in (one, other):
        task.open([PLACE])
    put(one, rec(0, {"id": 0}))
    put(other, rec(1, {"id": 1}))  # it took the partition over
    with pytest.raises(ConnectError, match="Another task has written t-0"):
        put(one, rec(1, {"id": 1}), rec(2, {"id": 2}))
    assert [row["id"] for row in lake.rows()] == [0, 1]


def test_two_tasks_with_partitions_of_their_own_write_one_table(lake: Lake) -> None:
    one, other = lake.sink(), lake.sink()
    for at in range(3):
        for number, task in enumerate((one, other)):
            task.put([rec(at, {"id": 10 * number + at}, partition=number)])
    assert [row["id"] for row in lake.rows()] == [0, 1, 2, 10, 11, 12]
    again = lake.sink()
    again.put([rec(at, {"id": 10 * number + at}, partition=number) for at in range(4) for number in range(2)])
    assert [row["id"] for row in lake.rows()] == [0, 1, 2, 3, 10, 11, 12, 13]


def test_a_race_between_look_and_commit_writes_once(lake: Lake) -> None:
    """Another task commits the same records after this one has looked: its commit is refused, not repeated."""
    one, other = lake.sink(), lake.sink()
    for task in (one, other):
        task.open([PLACE])
    put(one, rec(0, {"id": 0}))
    put(other, rec(0, {"id": 0}))
    table = one._batches[next(iter(one._batches))].table
    write: Callable[..., None] = table.write

    def late(*given: Any) -> None:
        put(other, rec(1, {"id": 1}), rec(2, {"id": 2}))
        write(*given)

    table.write = late
    with pytest.raises(ConnectError):
        one.put([rec(1, {"id": 1})])
    table.write = write
    one._not_before = 0.0
    with pytest.raises(ConnectError, match="Another task"):
        one.put([rec(1, {"id": 1})])
    assert [row["id"] for row in lake.rows()] == [0, 1, 2]


def test_a_commit_whose_answer_is_lost_is_not_repeated(lake: Lake) -> None:
    task = lake.sink()
    task.open([PLACE])
    put(task, rec(0, {"id": 0}))
    table = task._batches[next(iter(task._batches))].table
    write = table.write

    def away(*given: Any) -> None:
        raise RetriableError("the catalog is away")

    def lost(*given: Any) -> None:
        write(*given)
        raise RetriableError("the answer is lost")

    for broken, done in ((away, {}), (lost, {PLACE: 2})):
        table.write, task._not_before = broken, 0.0
        with pytest.raises(RetriableError):
            task.put([rec(1, {"id": 1})])
        task._not_before = 0.0
        assert task.flush({PLACE: 2}) == done  # the group's offset does not move before the table has the record
    table.write = write
    task.put([rec(1, {"id": 1})])
    assert [row["id"] for row in lake.rows()] == [0, 1] and lake.commits() == 2


@pytest.mark.needs("iceberg-rest")
def test_a_rest_catalog_that_dies_delays_records_and_doubles_none(tmp_path: Path) -> None:
    pytest.importorskip(KINDS["iceberg"])
    with rest_catalog(tmp_path) as catalog:
        lake = Lake("iceberg", tmp_path, catalog)
        task = lake.sink()
        task.open([PLACE])
        put(task, rec(0, {"id": 0}))
        catalog.kill()
        with pytest.raises(RetriableError, match="cannot be reached"):
            put(task, rec(1, {"id": 1}))
        catalog.start()
        task._not_before = 0.0
        assert put(task, rec(1, {"id": 1}), rec(2, {"id": 2})) == {PLACE: 3}
        assert [row["id"] for row in lake.rows()] == [0, 1, 2] and lake.commits() == 2


def test_records_wait_for_the_commit(lake: Lake) -> None:
    config = lake.config(auto_create_enabled=True)
    interval = "delta.commit.interval-ms" if lake.kind == "delta" else "iceberg.control.commit.interval-ms"
    plugin = find({"delta": "DeltaSink", "iceberg": "IcebergSink"}[lake.kind])
    assert plugin is not None
    asked: list[str] = []
    commit = lambda: asked.append("commit")  # noqa: E731
    context = SinkContext({**config, interval: "3600000"}, print, lambda _: False, request_commit=commit)
    task = plugin.load().open(context)
    task.open([PLACE])
    task.put([rec(0, {"id": 0})])
    assert task.flush({PLACE: 1, ("u", 0): 5}) == {("u", 0): 5}
    task._batches[next(iter(task._batches))].since -= 3600
    assert task.flush({PLACE: 1}) == {PLACE: 1} and len(lake.rows()) == 1
    task.put([rec(1, {"id": 1})])
    task._batches[next(iter(task._batches))].since -= 3600
    task.put([])
    assert task.wants_empty and len(lake.rows()) == 2, "the worker's own interval is not waited for"
    assert asked == ["commit"] * 2


def test_tables_are_partitioned_and_duckdb_reads_them(lake: Lake) -> None:
    import duckdb

    task = lake.sink(partition_by="city")
    task.open([PLACE])
    put(task, *(rec(n, {"id": n, "city": ("Prague", "Melnik")[n % 2]}) for n in range(6)))
    paths = lake.files()
    assert sorted({path.rpartition("/")[0].rpartition("/")[2] for path in paths}) == ["city=Melnik", "city=Prague"]
    listed = ", ".join(repr(path.removeprefix("file://")) for path in paths)
    sql = f"SELECT city, count(*) FROM read_parquet([{listed}], hive_partitioning=true) GROUP BY 1 ORDER BY 1"
    assert duckdb.connect().execute(sql).fetchall() == [("Melnik", 3), ("Prague", 3)]
