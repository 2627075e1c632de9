"""Hive tables over the files of a sink: made with the first file of a topic, extended, and given each new folder.

The settings are those of Confluent's connector for HDFS. Tables are external, so who drops one keeps the files. The
parts of a folder, such as city=Prague/day=02, are the partitions; a column of the same name is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

from moldau.connect.config_def import Kind, key
from moldau.connect.connectors.packages import needed
from moldau.connect.converters.avro_schemas import AvroSchemas
from moldau.connect.data import DATE, DECIMAL, TIMESTAMP, Schema, Type
from moldau.connect.errors import ConfigError, ConnectError, RetriableError

PORT, TIMEOUT_MS = 9083, 30_000
SETTINGS = (
    key("hive.integration", False, "Keep a Hive table over the files of each topic.", Kind.BOOLEAN),
    key("hive.metastore.uris", "", "The metastore, as thrift://host:9083; several are tried in turn."),
    key("hive.database", "default", "The database of the tables. It is made if it is missing."),
    key("hive.table.name", "${topic}", "The name of a table; ${topic} is replaced."),
)
PLAIN = {
    Type.INT8: "tinyint",
    Type.INT16: "smallint",
    Type.INT32: "int",
    Type.INT64: "bigint",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "binary",
}
NAMED = {DATE: "date", TIMESTAMP: "timestamp"}
DECIMAL_DIGITS = 38
AVRO_LITERAL = "avro.schema.literal"


@dataclass(frozen=True, slots=True)
class Reader:
    """The classes by which Hive reads a format."""

    serde: str
    input: str
    output: str


_QL = "org.apache.hadoop.hive.ql.io."
READERS = {
    "avro.AvroFormat": Reader(
        "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
        _QL + "avro.AvroContainerInputFormat",
        _QL + "avro.AvroContainerOutputFormat",
    ),
    "parquet.ParquetFormat": Reader(
        _QL + "parquet.serde.ParquetHiveSerDe",
        _QL + "parquet.MapredParquetInputFormat",
        _QL + "parquet.MapredParquetOutputFormat",
    ),
    "orc.OrcFormat": Reader(_QL + "orc.OrcSerde", _QL + "orc.OrcInputFormat", _QL + "orc.OrcOutputFormat"),
}


def type_of(schema: Schema) -> str:
    """Return Hive's type of a value."""
    if schema.name == DECIMAL:
        scale = (schema.parameters or {}).get("scale", "0")
        return f"decimal({DECIMAL_DIGITS},{scale})"
    if schema.name in NAMED:
        return NAMED[schema.name]
    match schema.type:
        case Type.ARRAY:
            return f"array<{type_of(inner(schema.value_schema))}>"
        case Type.MAP:
            return f"map<{type_of(inner(schema.key_schema))},{type_of(inner(schema.value_schema))}>"
        case Type.STRUCT:
            return f"struct<{','.join(f'{one.name}:{type_of(one.schema)}' for one in schema.fields)}>"
        case _:
            return PLAIN[schema.type]


def inner(schema: Schema | None) -> Schema:
    assert schema is not None, "an array or a map has schemas"
    return schema


def without(schema: Schema, parts: Iterable[tuple[str, str]]) -> Schema:
    """Return a schema without the fields that are partitions: Hive has each column once."""
    taken = {name.lower() for name, _ in parts}
    return schema.but(fields=tuple(one for one in schema.fields if one.name.lower() not in taken))


def parts_of(folder: str) -> list[tuple[str, str]]:
    """Return names and values of partitions; ConnectError for a folder whose name does not say them."""
    found: list[tuple[str, str]] = []
    for part in folder.split("/"):
        name, equals, value = part.partition("=")
        if not equals:
            raise ConnectError(f"Hive needs folders such as year=2026, and a file is in {folder}: set path.format so.")
        found.append((name, value))
    return found


def check(config: Mapping[str, Any], format_name: str) -> None:
    """Refuse settings that do not go together; ConfigError."""
    if not config["hive.integration"]:
        return
    if format_name not in READERS:
        known = ", ".join(one.rpartition(".")[2] for one in READERS)
        raise ConfigError(f"hive.integration needs a format.class that Hive reads with a schema: {known}.")
    _addresses(config["hive.metastore.uris"])
    needed("thrift", "Hive", "hive")


def _addresses(text: str) -> list[tuple[str, int]]:
    found = [urlparse(one.strip()) for one in text.split(",") if one.strip()]
    if not found or any(one.scheme != "thrift" or not one.hostname for one in found):
        raise ConfigError(f"Invalid value {text} for configuration hive.metastore.uris: write thrift://host:9083.")
    return [(one.hostname or "", one.port or PORT) for one in found]


class HiveTables:
    """The tables of a sink. `root` is where Hive finds what the sink calls topics.dir."""

    def __init__(self, config: Mapping[str, Any], format_name: str, root: str) -> None:
        self._addresses = _addresses(config["hive.metastore.uris"])
        self._database: str = config["hive.database"]
        self._name: str = config["hive.table.name"]
        self._root, self._is_avro = root.rstrip("/"), format_name == "avro.AvroFormat"
        self._reader = READERS[format_name]
        self._types = needed("hive_metastore.ttypes", "Hive", "hive")
        self._client: Any = None
        self._schemas: dict[str, Schema] = {}
        self._folders: set[tuple[str, str]] = set()

    def wrote(self, topic: str, folder: str, schema: Schema) -> None:
        """A file is in a folder of a topic: see that the table has its columns, and the folder."""
        if self._schemas.get(topic) == schema and (topic, folder) in self._folders:
            return
        parts = parts_of(folder)
        try:
            self._keep(topic, folder, without(schema, parts), parts)
        except self._lost as error:
            self._client = None
            raise RetriableError(f"The Hive metastore cannot be reached: {error}") from error
        except needed("thrift.Thrift", "Hive", "hive").TException as error:
            said = getattr(error, "message", None) or error
            raise ConnectError(f"The Hive metastore refuses {self._table(topic)}: {said}") from error
        self._schemas[topic] = schema
        self._folders.add((topic, folder))

    @property
    def _lost(self) -> tuple[type[Exception], ...]:
        return needed("thrift.transport.TTransport", "Hive", "hive").TTransportException, OSError

    def _keep(self, topic: str, folder: str, schema: Schema, parts: list[tuple[str, str]]) -> None:
        client, name = self._connected(), self._table(topic)
        try:
            table = client.get_table(self._database, name)
        except self._types.NoSuchObjectException:
            table = self._created(client, topic, name, schema, parts)
        if self._extend(table, schema, parts):
            client.alter_table(self._database, name, table)
        self._add(client, table, topic, folder, parts)

    def _table(self, topic: str) -> str:
        """Hive knows letters, digits and underscores."""
        return re.sub(r"\W", "_", self._name.replace("${topic}", topic), flags=re.ASCII).lower()

    def _connected(self) -> Any:
        if self._client is not None:
            return self._client
        socket = needed("thrift.transport.TSocket", "Hive", "hive")
        transport = needed("thrift.transport.TTransport", "Hive", "hive")
        protocol = needed("thrift.protocol.TBinaryProtocol", "Hive", "hive")
        service = needed("hive_metastore.ThriftHiveMetastore", "Hive", "hive")
        problem: Exception | None = None
        for host, port in self._addresses:
            line = socket.TSocket(host, port)
            line.setTimeout(TIMEOUT_MS)
            buffered = transport.TBufferedTransport(line)
            try:
                buffered.open()
            except transport.TTransportException as error:
                problem = error
                continue
            client = service.Client(protocol.TBinaryProtocol(buffered))
            with suppress(self._types.AlreadyExistsException):
                client.create_database(self._types.Database(self._database, "", None, {}))
            self._client = client
            return client
        assert problem is not None
        raise problem

    def _created(self, client: Any, topic: str, name: str, schema: Schema, parts: list[tuple[str, str]]) -> Any:
        t, reader = self._types, self._reader
        storage = t.StorageDescriptor(
            cols=self._columns(schema),
            location=f"{self._root}/{topic}",
            inputFormat=reader.input,
            outputFormat=reader.output,
            serdeInfo=t.SerDeInfo(serializationLib=reader.serde, parameters={"serialization.format": "1"}),
            parameters={},
        )
        table = t.Table(
            tableName=name,
            dbName=self._database,
            owner="moldau",
            sd=storage,
            partitionKeys=[t.FieldSchema(part, "string", "") for part, _ in parts],
            parameters={"EXTERNAL": "TRUE"} | self._literal(schema),
            tableType="EXTERNAL_TABLE",
        )
        with suppress(t.AlreadyExistsException):  # another task was faster
            client.create_table(table)
        return client.get_table(self._database, name)

    def _literal(self, schema: Schema) -> dict[str, str]:
        """Return what says to Hive how Avro is read: the schema itself."""
        return {AVRO_LITERAL: json.dumps(AvroSchemas(False, False).of(schema))} if self._is_avro else {}

    def _columns(self, schema: Schema) -> list[Any]:
        return [self._types.FieldSchema(one.name, type_of(one.schema), one.schema.doc or "") for one in schema.fields]

    def _extend(self, table: Any, schema: Schema, parts: list[tuple[str, str]]) -> bool:
        """Add the columns that a table lacks; tell whether there are any."""
        if [one.name for one in table.partitionKeys] != [name.lower() for name, _ in parts]:
            keys = ", ".join(one.name for one in table.partitionKeys)
            raise ConnectError(f"The Hive table {table.tableName} is partitioned by {keys or 'nothing'}, not so.")
        known = {one.name for one in table.sd.cols}
        new = [one for one in self._columns(schema) if one.name.lower() not in known]
        table.sd.cols = [*table.sd.cols, *new]
        if new:
            table.parameters |= self._literal(schema)
        return bool(new)

    def _add(self, client: Any, table: Any, topic: str, folder: str, parts: list[tuple[str, str]]) -> None:
        t = self._types
        storage = table.sd
        storage.location = f"{self._root}/{topic}/{folder}"
        values = [value for _, value in parts]
        made = t.Partition(values=values, dbName=self._database, tableName=table.tableName, sd=storage, parameters={})
        with suppress(t.AlreadyExistsException):
            client.add_partition(made)
