"""Files in and out: folders of CSV, JSON, Avro and Parquet as sources, files in folders and buckets as sinks."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyarrow import orc

from moldau.connect.connector import SinkContext, SourceContext
from moldau.connect.connectors import files_sink, partitioners, spool_dir
from moldau.connect.connectors.storage import Folder
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.connect.shapes import Shape, plain
from moldau.testing import Broker, eventually
from moldau.testing.connectors import connect
from moldau.testing.ports import free_port
from tests.needs import find
from tests.services import unique

DAY_MS = int(datetime(2026, 1, 2, 23, 30, tzinfo=UTC).timestamp() * 1000)


class Folders:
    """The three folders of a source, and its task."""

    def __init__(self, root: Path) -> None:
        self.input, self.finished, self.error = (root / name for name in ("in", "finished", "error"))
        for one in (self.input, self.finished, self.error):
            one.mkdir()

    def task(self, connector: Any, offset: Any = None, **more: Any) -> Any:
        config = {"input.path": self.input, "finished.path": self.finished, "error.path": self.error, "topic": "t"}
        config |= {"input.file.pattern": r".*", "empty.poll.wait.ms": 1}
        config |= {key.replace("_", "."): value for key, value in more.items()}
        [task] = connector.task_configs({name: str(value) for name, value in config.items()}, 1)
        return connector.open(SourceContext(task, lambda _: offset, lambda _: False))


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def poll(task: Any, count: int) -> list[Record]:
    found: list[Record] = []
    for _ in range(30):
        found += task.poll()
    assert len(found) == count
    return found


def values(records: list[Record]) -> list[Any]:
    return [plain(one.value_schema, one.value) for one in records]


def avro_file(rows: list[dict[str, Any]]) -> bytes:
    import fastavro

    fields = [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"]}]
    file = io.BytesIO()
    fastavro.writer(file, {"type": "record", "name": "R", "fields": fields}, rows)
    return file.getvalue()


def parquet_file(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
FILES: dict[str, tuple[Any, bytes, list[Any], dict[str, Any]]] = {
    "csv": (
        spool_dir.CSV,
        b'# comment\na,b\n1,"x, y"\n2,\n',
        [{"a": "1", "b": "x, y"}, {"a": "2", "b": None}],
        {"csv_first_row_as_header": "true", "csv_skip_lines": 1},
    ),
    "json": (spool_dir.JSON, b'{"a": 1, "b": "x"}\n{"a": 2,\n "b": null}\n', ROWS, {}),
    "array": (spool_dir.JSON, json.dumps(ROWS).encode(), ROWS, {}),
    "lines": (spool_dir.LINES, "één\r\ntwo".encode(), ["één", "two"], {}),
    "avro": (spool_dir.AVRO, avro_file(ROWS), ROWS, {}),
    "parquet": (spool_dir.PARQUET, parquet_file(ROWS), ROWS, {}),
    "packed": (spool_dir.LINES, gzip.compress(b"a\nb\n"), ["a", "b"], {}),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_read_and_put_away_when_it_is_committed(folders: Folders, kind: str) -> None:
    connector, data, expected, more = FILES[kind]
    name = "f.gz" if kind == "packed" else "f"
    (folders.input / name).write_bytes(data)
    task = folders.task(connector, **more)
    records = poll(task, 2)
    found = [{key: one.get(key) for key in expected[0]} if isinstance(one, dict) else one for one in values(records)]
    assert found == expected
    assert [one.source_offset for one in records] == [{"offset": 1}, {"offset": 2}]
    assert records[0].headers[0].value == name
    assert (folders.input / name).exists()  # nobody said that the records are in Kafka
    task.committed()
    assert not (folders.input / name).exists() and (folders.finished / name).read_bytes() == data
    (folders.input / name).write_bytes(data)
    os.utime(folders.input / name, (1, 1))
    again = folders.task(connector, {"offset": 1}, **more)
    assert len(poll(again, 1)) == 1  # the rest of what was committed
    for one in (task, again):
        one.close()


def test_a_file_that_was_committed_to_its_end_is_put_away_at_once(folders: Folders) -> None:
    (folders.input / "f").write_text("a\nb\n")
    poll(folders.task(spool_dir.LINES, {"offset": 2}), 0)
    assert (folders.finished / "f").exists()


@pytest.mark.parametrize(("policy", "left"), [("DELETE", []), ("NONE", ["f"])])
def test_a_file_is_deleted_or_stays(folders: Folders, policy: str, left: list[str]) -> None:
    (folders.input / "f").write_text("a\n")
    task = folders.task(spool_dir.LINES, cleanup_policy=policy)
    poll(task, 1)
    task.committed()
    poll(task, 0)
    assert [one.name for one in folders.input.iterdir()] == left


def test_a_file_that_cannot_be_read_is_put_aside_or_fails_the_task(folders: Folders) -> None:
    (folders.input / "a").write_text('{"n": 1}\n{"n": ')
    (folders.input / "b").write_text('{"n": 2}')
    task = folders.task(spool_dir.JSON, halt_on_error="false", batch_size=1)
    assert [one["n"] for one in values(poll(task, 2))] == [1, 2]
    assert (folders.error / "a").exists()
    (folders.input / "c.gz").write_bytes(b"not gzip")
    with pytest.raises(ConnectError, match=r"c\.gz cannot be read"):
        poll(folders.task(spool_dir.LINES, input_file_pattern=r".*\.gz"), 1)
    with pytest.raises(ConfigError, match="not a folder"):
        folders.task(spool_dir.LINES, finished_path=folders.input / "gone")


def test_files_are_chosen_by_name_and_age_and_divided_among_tasks(folders: Folders) -> None:
    for name in ("a.txt", "b.txt", "c.csv"):
        (folders.input / name).write_text(f"{name}\n")
    task = folders.task(spool_dir.LINES, input_file_pattern=r".*\.txt")
    assert values(poll(task, 2)) == ["a.txt", "b.txt"]
    poll(folders.task(spool_dir.LINES, file_minimum_age_ms=600_000), 0)
    base = {"input.path": str(folders.input), "finished.path": str(folders.finished), "topic": "t"}
    base |= {"input.file.pattern": ".*", "empty.poll.wait.ms": "1"}
    made = [
        spool_dir.LINES.open(SourceContext(one, lambda _: None, lambda _: False))
        for one in spool_dir.LINES.task_configs(base, 2)
    ]
    found = [one for task in made for _ in range(20) for one in task.poll()]
    assert sorted(one.value for one in found) == ["a.txt", "b.txt", "c.csv"]


# Schemas of rows.

LOGICAL = "org.apache.kafka.connect.data."
SALES = {
    "id": {"type": "INT64", "isOptional": False},
    "item": {"type": "STRING", "isOptional": True},
    "price": {"name": LOGICAL + "Decimal", "type": "BYTES", "version": 1, "parameters": {"scale": "2"}},
    "at": {"name": LOGICAL + "Timestamp", "type": "INT64", "version": 1},
    "day": {"name": LOGICAL + "Date", "type": "INT32", "version": 1, "isOptional": True},
    "weight": {"type": "FLOAT64", "isOptional": True},
    "is_new": {"type": "BOOLEAN", "isOptional": True},
}
TYPED = {
    "key_schema": json.dumps({"name": "Sale.Key", "type": "STRUCT", "fieldSchemas": {"id": SALES["id"]}}),
    "value_schema": json.dumps({"name": "Sale", "type": "STRUCT", "fieldSchemas": SALES}),
    "parser_timestamp_date_formats": "yyyy-MM-dd'T'HH:mm:ss,yyyy-MM-dd",
}
AT = int(datetime(2026, 3, 29, 12, tzinfo=UTC).timestamp() * 1000)
HEAD = "id,item,price,at,day,weight,is_new,more\n"
ROW = "7,tea,4.5,2026-03-29T12:00:00,2026-03-29,0.25,TRUE,x\n"
SALE = {
    "id": 7,
    "item": "tea",
    "price": Decimal("4.50"),
    "at": datetime(2026, 3, 29, 12, tzinfo=UTC),
    "day": date(2026, 3, 29),
    "weight": 0.25,
    "is_new": True,
}


def test_columns_have_the_types_of_a_schema(folders: Folders) -> None:
    (folders.input / "sales.2026.csv").write_text(HEAD + ROW + "8,,1,2026-03-29T12:00:01,,,,\n\n   \n")
    task = folders.task(
        spool_dir.CSV, **TYPED, csv_first_row_as_header="true", timestamp_mode="FIELD", timestamp_field="at"
    )
    one, other = poll(task, 2)
    assert values([one]) == [SALE] and str(one.value_schema) == "Schema{Sale:STRUCT}"
    assert (one.key.schema.name, plain(one.key_schema, one.key), one.timestamp) == ("Sale.Key", {"id": 7}, AT)
    empty = dict.fromkeys(("day", "weight", "is_new"))
    assert values([other]) == [
        {"id": 8, "item": "", "price": Decimal("1.00"), "at": SALE["at"].replace(second=1), **empty}
    ]
    about = (folders.input / "sales.2026.csv").stat()
    assert {each.name: each.value for each in one.headers} == {
        "file.name": "sales.2026.csv",
        "file.name.without.extension": "sales.2026",
        "file.path": str(folders.input / "sales.2026.csv"),
        "file.parent.dir.name": "in",
        "file.length": about.st_size,
        "file.last.modified": about.st_mtime_ns // 1_000_000,
        "file.offset": 1,
    }


def test_columns_without_names_are_those_of_the_schema(folders: Folders) -> None:
    (folders.input / "f").write_text(ROW)
    assert values(poll(folders.task(spool_dir.CSV, **TYPED), 1)) == [SALE]


def test_fields_of_json_have_the_types_of_a_schema(folders: Folders) -> None:
    fields = {**SALES, "tags": {"type": "ARRAY", "valueSchema": {"type": "STRING"}, "isOptional": True}}
    fields["of"] = {"type": "MAP", "keySchema": {"type": "STRING"}, "valueSchema": {"type": "INT8"}, "isOptional": True}
    fields["shop"] = {"type": "STRUCT", "fieldSchemas": {"n": {"type": "INT16"}}, "isOptional": True}
    row = {"id": "7", "item": 5, "price": 4.5, "at": AT, "day": "2026-03-29T00:00:00", "is_new": "no", "weight": 1}
    row |= {"tags": ["a", "b"], "of": {"x": 1}, "shop": {"n": 2, "m": 3}}
    (folders.input / "f").write_text(json.dumps(row))
    given = {**TYPED, "value_schema": json.dumps({"type": "STRUCT", "fieldSchemas": fields})}
    [found] = values(poll(folders.task(spool_dir.JSON, **given), 1))
    assert found == SALE | {
        "item": "5",
        "is_new": False,
        "weight": 1.0,
        "tags": ["a", "b"],
        "of": {"x": 1},
        "shop": {"n": 2},
    }


def test_times_are_those_of_a_zone_unless_they_name_one(folders: Folders) -> None:
    stamp = {"type": "STRUCT", "fieldSchemas": {"at": SALES["at"]}}
    (folders.input / "f").write_text("2026-03-29 14:00\n2026-03-29 14:00 +0100\n")
    given = {"parser_timestamp_timezone": "Europe/Berlin", "value_schema": json.dumps(stamp)}
    formats = "yyyy-MM-dd HH:mm Z,yyyy-MM-dd HH:mm"
    found = poll(folders.task(spool_dir.CSV, **given, parser_timestamp_date_formats=formats), 2)
    assert [one.value.get("at") for one in found] == [AT, AT + 3_600_000]


@pytest.mark.parametrize("connector", [spool_dir.CSV, spool_dir.JSON])
def test_schemas_are_made_from_the_names_of_columns(folders: Folders, connector: Any) -> None:
    text = "a,b\n1,\n" if connector is spool_dir.CSV else '{"a": 1, "b": ""}'
    (folders.input / "f").write_text(text)
    given = {"schema_generation_enabled": "true", "schema_generation_key_fields": "a,none"}
    given |= {"schema_generation_key_name": "K", "schema_generation_value_name": "V"}
    [one] = poll(
        folders.task(connector, **given, **({"csv_first_row_as_header": "true"} if connector is spool_dir.CSV else {})),
        1,
    )
    assert (one.key.schema.name, plain(one.key_schema, one.key)) == ("K", {"a": "1"})
    assert (one.value.schema.name, values([one])) == ("V", [{"a": "1", "b": ""}])


def test_empty_columns_may_be_null(folders: Folders) -> None:
    (folders.input / "f").write_text("a,b\n,x\n")
    given = {"schema_generation_enabled": "true", "csv_first_row_as_header": "true"}
    assert values(poll(folders.task(spool_dir.CSV, **given, csv_null_field_indicator="BOTH"), 1)) == [
        {"a": None, "b": "x"}
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("x,tea,1,2026-03-29,,,", "id cannot be read from 'x': it is not a whole number"),
        ("9223372036854775808,,1,2026-03-29,,,", "does not fit into 64 bits"),
        (",tea,1,2026-03-29,,,", "it is empty, and not optional"),
        ("1,tea,1.005,2026-03-29,,,", "it has more than 2 digits"),
        ("1,tea,1e999999999,2026-03-29,,,", "more than 1000 digits away"),
        ("1,tea,1,29 March,,,", "it has none of the formats"),
        ("1,tea,1,2026-03-29,,heavy,", "weight cannot be read"),
    ],
)
def test_a_row_that_does_not_fit_its_schema_is_refused(folders: Folders, row: str, reason: str) -> None:
    (folders.input / "f").write_text(row + "\n")
    with pytest.raises(ConnectError, match=reason):
        poll(folders.task(spool_dir.CSV, **TYPED), 0)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"value_schema": "{"}, "value.schema: it is not a schema"),
        ({"value_schema": "[]"}, "it is not a schema"),
        ({"value_schema": '{"type": "INT64"}'}, "of type STRUCT, not INT64"),
        ({"value_schema": '{"type": "STRUCT", "fieldSchemas": {"a": {"type": "LONG"}}}'}, "it lacks 'LONG'"),
        ({"value_schema": '{"type": "STRUCT", "fieldSchemas": {"a": {"type": "BYTES"}}}'}, "of type BYTES"),
        ({"value_schema": '{"type": "STRUCT", "fieldSchemas": {"a": {"type": "ARRAY"}}}'}, "ARRAY lacks"),
        ({"value_schema": '{"type":"STRUCT","fieldSchemas":{"a":' * 200 + '{"type":"INT8"}' + "}}" * 200}, "levels"),
        ({"key_schema": TYPED["key_schema"]}, "'value.schema' must be set"),
        ({**TYPED, "timestamp_mode": "FIELD", "timestamp_field": "day"}, "it must be a field"),
        ({**TYPED, "parser_timestamp_timezone": "Mars"}, "no such time zone"),
        ({**TYPED, "parser_timestamp_date_formats": "b"}, "date.formats"),
        ({"files_sort_attributes": "Age"}, "files.sort.attributes: there are NameAsc"),
        ({"input_path_walk_recursively": "true"}, "it is not supported"),
        ({"csv_null_field_indicator": "EMPTY_QUOTES"}, "it is not supported"),
    ],
)
def test_settings_that_make_no_sense_are_refused(folders: Folders, given: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        folders.task(spool_dir.CSV, **given)


def test_files_are_read_as_a_whole_and_json_as_text(folders: Folders) -> None:
    (folders.input / "b").write_bytes(b"\0\1")
    (folders.input / "a").write_bytes(b"")
    assert [one.value for one in poll(folders.task(spool_dir.BINARY), 1)] == [b"\0\1"]
    with pytest.raises(ConnectError, match=r"more than file\.maximum\.size\.bytes=1"):
        poll(folders.task(spool_dir.BINARY, file_maximum_size_bytes=1), 0)
    (folders.input / "b").write_text('{"a": [1, "ä"]}\n2')
    assert [one.value for one in poll(folders.task(spool_dir.SCHEMALESS_JSON), 2)] == ['{"a":[1,"ä"]}', "2"]


def test_files_are_sorted_and_put_away_by_day(folders: Folders) -> None:
    for name, size, day in (("a", 1, 2), ("b", 3, 1), ("c", 2, 1)):
        (folders.input / name).write_text("x" * size)
        os.utime(folders.input / name, (day * 86400, day * 86400))
    for order, wanted in (("LastModifiedAsc,LengthDesc", "bca"), ("LengthAsc", "acb"), ("NameDesc", "cba")):
        found = poll(folders.task(spool_dir.LINES, files_sort_attributes=order, cleanup_policy="NONE"), 3)
        assert "".join(one.headers[0].value for one in found) == wanted
    task = folders.task(spool_dir.LINES, cleanup_policy="MOVEBYDATE", timestamp_mode="FILE_TIME")
    assert poll(task, 3)[0].timestamp == 2 * 86_400_000
    task.committed()
    assert (folders.finished / date.fromtimestamp(2 * 86400).isoformat() / "a").exists()


def test_a_file_of_avro_has_its_own_schema(folders: Folders) -> None:
    (folders.input / "f").write_bytes(avro_file(ROWS))
    one, _ = poll(folders.task(spool_dir.AVRO, key_field="a"), 2)
    assert (one.value.schema.name, one.key, str(one.key_schema)) == ("R", 1, "Schema{INT64}")
    assert [each.schema.optional for each in one.value.schema.fields] == [False, True]
    (folders.input / "f").write_bytes(b"Obj\1 nothing")
    with pytest.raises(ConnectError, match="f cannot be read"):
        poll(folders.task(spool_dir.AVRO), 0)


# Sinks.


class Written:
    """A sink into a folder, and what it refused."""

    def __init__(self, root: Path, tolerates: bool = True, **more: Any) -> None:
        self.root, self.refused = root, list[Any]()
        config = {"path": root, "format.class": "JsonFormat", "flush.size": 3, "topics.dir": "d"}
        config |= {key.replace("_", "."): value for key, value in more.items()}
        texts = {name: str(value) for name, value in config.items()}
        [given] = files_sink.FOLDER.task_configs(texts, 1)

        def report(record: Record, error: Exception) -> None:
            self.refused.append((record.offset, str(error)))

        self.task = files_sink.FOLDER.open(SinkContext(given, report, lambda _: False))
        self.task.open([("t", 0)])

    def put(self, *rows: Any, first: int = 0, step_ms: int = 0) -> None:
        self.task.put([record(row, first + n, DAY_MS + n * step_ms) for n, row in enumerate(rows)])

    @property
    def files(self) -> dict[str, bytes]:
        found = [one for one in sorted(self.root.rglob("*")) if one.is_file()]
        return {str(one.relative_to(self.root)): one.read_bytes() for one in found}


def record(value: Any, offset: int, when: int = DAY_MS, topic: str = "t") -> Record:
    schema, made = Shape().take(value) if isinstance(value, dict) else (None, value)
    place: dict[str, Any] = {"original_topic": topic, "original_partition": 0, "original_offset": offset}
    return Record(topic, 0, None, None, schema, made, when, offset=offset, **place)


def test_files_are_named_by_their_first_offset_and_commit_what_they_hold(tmp_path: Path) -> None:
    one = Written(tmp_path)
    one.put(*({"n": n} for n in range(5)), first=7)
    assert one.files == {"d/t/partition=0/t+0+0000000007.json": b'{"n":0}\n{"n":1}\n{"n":2}\n'}
    assert one.task.flush({("t", 0): 12}) == {("t", 0): 10}
    one.put({"n": 5}, first=12)
    assert len(one.files) == 2 and one.task.flush({("t", 0): 13}) == {("t", 0): 13}
    before = one.files
    again = Written(tmp_path)
    again.put(*({"n": n} for n in range(6)), first=7)
    assert again.files == before  # the same records make the same files


def test_all_that_a_transform_made_of_one_record_is_in_one_file(tmp_path: Path) -> None:
    one = Written(tmp_path)
    one.task.put([record({"n": n}, offset) for n, offset in enumerate((0, 1, 1, 1, 1, 2, 3))])
    assert one.files == {"d/t/partition=0/t+0+0000000000.json": b"".join(b'{"n":%d}\n' % n for n in range(5))}
    assert one.task.flush({("t", 0): 4}) == {("t", 0): 2}
    one.task.put([record({"n": n}, offset) for n, offset in ((6, 3), (7, 4), (8, 4))])
    assert one.files["d/t/partition=0/t+0+0000000002.json"] == b"".join(b'{"n":%d}\n' % n for n in (5, 6, 7, 8))
    avro = Written(tmp_path / "avro", format_class="AvroFormat", flush_size=100)
    avro.task.put([record({"n": 1}, 0), record({"text": "x"}, 0), record({"text": "x"}, 1)])
    assert len(avro.refused) == 1 and "several schemas" in avro.refused[0][1] and len(avro.files) == 1


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"partitioner_class": "FieldPartitioner", "partition_field_name": "k"}, ["k=a", "k=b_.."]),
        (
            {"partitioner_class": "io.x.DailyPartitioner", "timezone": "Europe/Prague"},
            ["year=2026/month=01/day=03"],
        ),
        ({"partitioner_class": "HourlyPartitioner"}, ["year=2026/month=01/day=02/hour=23"]),
        (
            {
                "partitioner_class": "TimeBasedPartitioner",
                "path_format": "YYYY-MM-dd-HHmm",
                "partition_duration_ms": 1_800_000,
            },
            ["2026-01-02-2330"],
        ),
    ],
)
def test_folders_are_made_of_fields_and_times(tmp_path: Path, more: dict[str, Any], names: list[str]) -> None:
    one = Written(tmp_path, flush_size=2, timestamp_extractor="Record", **more)
    one.put({"k": "a"}, {"k": "b/.."})
    assert [str(Path(name).parent) for name in one.files] == [f"d/t/{name}" for name in names]
    one.put({"k": 1}, {"other": 2}, first=2)
    assert [offset for offset, _ in one.refused] == ([3] if "partition_field_name" in more else [])


def test_files_are_rotated_by_the_time_of_their_records_and_by_schema(tmp_path: Path) -> None:
    one = Written(tmp_path / "time", flush_size=100, rotate_interval_ms=1000, timestamp_extractor="Record")
    one.put(*({"n": n} for n in range(5)), step_ms=400)
    assert [line.count(b"\n") for line in one.files.values()] == [3]
    other = Written(tmp_path / "schema", flush_size=100, format_class="AvroFormat")
    other.put({"n": 1}, {"n": 2}, {"n": "text"})
    assert len(other.files) == 1
    clock = Written(tmp_path / "clock", flush_size=100, rotate_schedule_interval_ms=1)
    clock.put({"n": 1})
    eventually(lambda: clock.task.flush({("t", 0): 1}) == {("t", 0): 1})
    clock.put({"n": 2}, first=1)
    eventually(lambda: clock.task.put([]) or len(clock.files) == 2)
    assert clock.task.wants_empty, "the worker's own interval is not waited for"


def avro_rows(file: io.BytesIO, config: Any) -> list[Any]:
    return [plain(one.schema, one.value) for one in spool_dir.avro(file, config)]


@pytest.mark.parametrize(
    ("format_class", "read", "more"),
    [
        ("io.confluent.connect.s3.format.avro.AvroFormat", avro_rows, {}),
        ("ParquetFormat", spool_dir.parquet, {}),
        ("io.confluent.connect.hdfs.orc.OrcFormat", lambda file, _: orc.read_table(file).to_pylist(), {}),
        ("JsonFormat", spool_dir.documents, {"s3_compression_type": "gzip"}),
    ],
)
def test_what_is_written_is_read_back(tmp_path: Path, format_class: str, read: Any, more: dict[str, Any]) -> None:
    rows = [{"n": 1, "t": "ä", "f": 0.5, "l": [1, 2], "s": {"x": True}}, {"n": 2, "t": None, "f": 1.0}]
    shape = Shape()
    for row in rows * 2:
        shape.take(row)
    one = Written(tmp_path, flush_size=2, format_class=format_class, **more)
    taken = [shape.take(row) for row in rows]
    records = [record({}, n).but(value_schema=schema, value=value) for n, (schema, value) in enumerate(taken)]
    one.task.put(records)
    [data] = one.files.values()
    data = gzip.decompress(data) if more else data
    assert list(read(io.BytesIO(data), {"file.charset": "utf-8"})) == values(records)


def test_bytes_are_joined_and_records_without_value_are_refused(tmp_path: Path) -> None:
    one = Written(tmp_path, format_class="ByteArrayFormat", flush_size=2, format_bytearray_extension=".log")
    one.put(b"a", None, b"b")
    assert one.refused[0][0] == 1
    assert one.files == {"d/t/partition=0/t+0+0000000000.log": b"a\nb\n"}


def test_a_folder_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("in the way")
    one = Written(tmp_path, flush_size=2)
    rows = [{"n": n} for n in range(3)]
    with pytest.raises(RetriableError):
        one.put(*rows)
    (tmp_path / "d").unlink()
    one.put(*rows)
    one.put({"n": 3}, first=3)
    assert [data.count(b"\n") for data in one.files.values()] == [2, 2]
    with pytest.raises(RetriableError):
        Folder(str(tmp_path / "d" / "t" / "partition=0" / "t+0+0000000000.json")).write("x", b"")


@pytest.mark.parametrize(
    "config", [{"format_class": "XmlFormat"}, {"partitioner_class": "Odd"}, {"partitioner_class": "FieldPartitioner"}]
)
def test_formats_and_partitioners_that_there_are_not_are_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Written(tmp_path, **config)


def test_the_time_of_a_record_is_read_from_a_field() -> None:
    config = {"timestamp.extractor": "RecordField", "timestamp.field": "a.at"}
    when = partitioners.extractor(config)
    assert when(record({"a": {"at": 5}}, 0)) == 5
    assert when(record({"a": {"at": "2026-01-02T23:30:00Z"}}, 0)) == DAY_MS
    with pytest.raises(ConnectError, match="not a time"):
        when(record({"a": {"at": "soon"}}, 0))


@pytest.fixture
def bucket() -> Iterator[str]:
    """A server that speaks S3, with a bucket."""
    port = free_port()
    path = find("moto").path
    assert path is not None
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
    command = [str(path), "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": ""}, **quiet)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


@pytest.mark.needs("moto")
def test_files_are_written_to_a_bucket(bucket: str) -> None:
    import httpx
    from pyarrow import fs

    config = {"s3.bucket.name": "things", "format.class": "JsonFormat", "flush.size": "2", "store.url": bucket}
    config |= {"aws.access.key.id": "k", "aws.secret.access.key": "s", "s3.region": "us-east-1"}
    with httpx.Client(trust_env=False) as client:

        def made() -> bool:
            try:
                return client.put(f"{bucket}/things").status_code == 200
            except httpx.HTTPError:
                return False

        eventually(made)
        [given] = files_sink.S3.task_configs(config, 1)
        task = files_sink.S3.open(SinkContext(given, lambda *_: None, lambda _: False))
        task.put([record({"n": n}, n) for n in range(4)])
        assert task.flush({("t", 0): 4}) == {("t", 0): 4}
    place: dict[str, Any] = {"endpoint_override": bucket.removeprefix("http://"), "scheme": "http"}
    files = fs.S3FileSystem(region="us-east-1", access_key="k", secret_key="s", **place)
    with files.open_input_stream("things/topics/t/partition=0/t+0+0000000002.json") as file:
        assert file.read() == b'{"n":2}\n{"n":3}\n'
    [given] = files_sink.S3.task_configs({**config, "s3.bucket.name": "no-such-bucket"}, 1)
    task = files_sink.S3.open(SinkContext(given, lambda *_: None, lambda _: False))
    with pytest.raises(ConnectError):
        task.put([record({"n": n}, n) for n in range(4)])


def test_files_go_through_a_topic_into_files(kafka_shared: Broker, folders: Folders, tmp_path: Path) -> None:
    topic, out = unique("files"), tmp_path / "out"
    (folders.input / "a.csv").write_text("id,city\n" + "".join(f"{n},city {n}\n" for n in range(10)))
    with connect(kafka_shared.bootstrap_servers) as worker:
        source = {"input.path": str(folders.input), "finished.path": str(folders.finished), "topic": topic}
        source |= {"input.file.pattern": r".*\.csv", "csv.first.row.as.header": "true"}
        worker.run("SpoolDirCsvSource", source)
        worker.run("FolderSink", {"topics": topic, "path": str(out), "format.class": "JsonFormat", "flush.size": "5"})
        eventually(lambda: len([one for one in out.rglob("*.json") if not one.name.startswith(".")]) == 2)
        eventually(lambda: (folders.finished / "a.csv").exists())
    rows = [json.loads(line) for one in sorted(out.rglob("*.json")) for line in one.read_text().splitlines()]
    assert rows == [{"id": str(n), "city": f"city {n}"} for n in range(10)]
