"""Hive tables over the files of a sink, in a real metastore: Spark brings one along."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.connector import SinkContext
from moldau.connect.connectors import files_sink
from moldau.connect.connectors.hive import parts_of, type_of
from moldau.connect.data import (
    BYTES,
    DATE_SCHEMA,
    FLOAT32,
    INT8,
    INT64,
    STRING,
    TIMESTAMP_SCHEMA,
    Record,
    Schema,
    Struct,
    array,
    decimal,
    map_of,
    struct,
)
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.testing.ports import free_port
from tests.connect.systems import Killable

PLACE = "orders", 0
ORDER = struct({"id": INT64, "city": STRING, "price": decimal(2)})
LATER = struct({"id": INT64, "city": STRING, "price": decimal(2), "tags": array(STRING, optional=True)})


class Metastore(Killable):
    """A metastore with its database in a folder."""

    def __init__(self, folder: Path) -> None:
        pyspark = pytest.importorskip("pyspark")
        port = free_port()
        self.url = f"thrift://127.0.0.1:{port}"
        given = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/db;create=true",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
        }
        words = [word for name, value in given.items() for word in ("--hiveconf", f"{name}={value}")]
        opens = [f"--add-opens=java.base/java.{one}=ALL-UNNAMED" for one in ("net", "lang")]
        java = ["java", "-Xmx300m", "-XX:+UseSerialGC", "-Dhive.async.log.enabled=false", *opens]
        path = f"{Path(pyspark.__file__).parent / 'jars'}/*"
        main = ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
        super().__init__([*java, "-cp", path, *main, *words], folder)

    def answers(self) -> bool:
        try:
            return "default" in self.client().get_all_databases()
        except OSError:
            return False

    def client(self) -> Any:
        pytest.importorskip("thrift")
        from hive_metastore.ThriftHiveMetastore import Client
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport, TTransportException

        transport = TBufferedTransport(TSocket("127.0.0.1", int(self.url.rpartition(":")[2])))
        try:
            transport.open()
        except TTransportException as error:
            raise OSError(str(error)) from error
        return Client(TBinaryProtocol(transport))


@pytest.fixture(scope="module")
def metastore() -> Iterator[Metastore]:
    pytest.importorskip("thrift")
    with tempfile.TemporaryDirectory(prefix="moldau-hive-") as folder:
        made = Metastore(Path(folder))
        try:
            made.start()
            yield made
        finally:
            made.kill()


def opened(url: str, folder: Path, **more: str) -> Any:
    given = {
        "path": str(folder),
        "flush.size": "1",
        "hive.integration": "true",
        "hive.metastore.uris": url,
        "partitioner.class": "FieldPartitioner",
        "partition.field.name": "city",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    [config] = files_sink.FOLDER.task_configs(given, 1)
    return files_sink.FOLDER.open(SinkContext(config, lambda *_: None, threading.Event().wait))


def put(task: Any, *records: Record) -> Any:
    task.put(records)
    return task.flush({PLACE: records[-1].offset + 1})  # type: ignore[operator]


def rec(offset: int, schema: Schema, *values: Any, topic: str = "orders") -> Record:
    return Record(topic, 0, None, None, schema, Struct(schema, values), 0, offset=offset)


@pytest.mark.needs("java")
@pytest.mark.parametrize("kind", ["Avro", "Parquet", "Orc"])
def test_a_table_is_made_extended_and_given_its_folders(metastore: Metastore, tmp_path: Path, kind: str) -> None:
    database = f"shop_{kind.lower()}"
    more = {"format_class": f"{kind}Format", "hive_database": database, "hive_table_name": "a-${topic}"}
    task = opened(metastore.url, tmp_path, **more)
    assert put(task, rec(0, ORDER, 1, "Prague", Decimal("1.50")), rec(1, ORDER, 2, "Melnik", Decimal(2))) == {PLACE: 2}
    assert put(task, rec(2, LATER, 3, "Prague", Decimal(3), ["new"])) == {PLACE: 3}
    client = metastore.client()
    table = client.get_table(database, "a_orders")
    assert [(one.name, one.type) for one in table.sd.cols] == [
        *(("id", "bigint"), ("price", "decimal(38,2)"), ("tags", "array<string>"))
    ]
    assert [(one.name, one.type) for one in table.partitionKeys] == [("city", "string")]
    assert (table.tableType, table.sd.location) == ("EXTERNAL_TABLE", f"file:{tmp_path}/topics/orders")
    parts = client.get_partitions(database, "a_orders", -1)
    assert sorted((one.values, one.sd.location) for one in parts) == [
        ([city], f"file:{tmp_path}/topics/orders/city={city}") for city in ("Melnik", "Prague")
    ]
    again = opened(metastore.url, tmp_path, **more)  # another task finds all of it there
    assert put(again, rec(2, LATER, 3, "Prague", Decimal(3), ["new"])) == {PLACE: 3}
    with pytest.raises(ConnectError, match="partitioned by city"):
        other = opened(metastore.url, tmp_path, partitioner_class="DefaultPartitioner", **more)
        put(other, rec(3, ORDER, 1, "Prague", Decimal(1)))


@pytest.mark.needs("java")
def test_records_wait_for_a_metastore_that_is_away(tmp_path: Path) -> None:
    pytest.importorskip("thrift")
    task = opened(f"thrift://127.0.0.1:{free_port()}", tmp_path, format_class="AvroFormat")
    with pytest.raises(RetriableError, match="cannot be reached"):
        put(task, rec(0, ORDER, 1, "Prague", Decimal("1.50")))
    with pytest.raises(RetriableError):  # the offset does not move: the file is there, but nobody can read it yet
        task.flush({PLACE: 1})


def test_types_and_folders_that_hive_knows() -> None:
    row = struct({"a": INT8, "b": map_of(STRING, FLOAT32), "c": BYTES})
    assert type_of(row) == "struct<a:tinyint,b:map<string,float>,c:binary>"
    assert [type_of(one) for one in (DATE_SCHEMA, TIMESTAMP_SCHEMA)] == ["date", "timestamp"]
    assert parts_of("year=2026/day=02") == [("year", "2026"), ("day", "02")]
    with pytest.raises(ConnectError, match=r"set path\.format"):
        parts_of("2026/02")
    for more, why in (
        ({"format_class": "JsonFormat"}, "AvroFormat, ParquetFormat, OrcFormat"),
        ({"format_class": "AvroFormat", "hive_metastore_uris": "localhost"}, "thrift://host:9083"),
    ):
        with pytest.raises(ConfigError, match=why):
            opened("thrift://127.0.0.1:1", Path("nowhere"), **more)
