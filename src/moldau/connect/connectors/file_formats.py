"""Formats of files that records are written to: JSON lines, Avro, Parquet, ORC, bytes. A row of a table each."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.connect.converters import make_converter
from moldau.connect.converters.avro_schemas import AvroSchemas
from moldau.connect.data import Record, Schema, Struct
from moldau.connect.errors import ConfigError, ConnectError, DataError
from moldau.connect.shapes import Shape, plain

JSON = "org.apache.kafka.connect.json.JsonConverter"


@dataclass(frozen=True, slots=True)
class Format:
    """How records become a file. One with schemas has one schema in each file."""

    name: str
    extension: str
    write: Callable[[Sequence[Record], Mapping[str, Any]], bytes]
    has_schema: bool


def json_lines(records: Sequence[Record], config: Mapping[str, Any]) -> bytes:
    converter = make_converter(JSON, "value", {"schemas.enable": "false"})
    lines = [converter.write("", one.value_schema, one.value) or b"null" for one in records]
    return b"".join(line + b"\n" for line in lines)


def avro(records: Sequence[Record], config: Mapping[str, Any]) -> bytes:
    import fastavro

    schema = _schema(records)
    parsed = fastavro.parse_schema(AvroSchemas(config["connect.meta.data"], False).of(schema))
    file = io.BytesIO()
    rows = [plain(one.value_schema, one.value) for one in records]
    try:
        fastavro.writer(file, parsed, rows, codec=config["avro.codec"])
    except (TypeError, ValueError) as error:
        raise DataError(f"The records cannot be written as Avro: {error}") from error
    return file.getvalue()


def parquet(records: Sequence[Record], config: Mapping[str, Any]) -> bytes:
    pa, pq = _arrow()
    _schema(records)
    rows = [plain(one.value_schema, one.value) for one in records]
    file = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(rows), file, compression=config["parquet.codec"])
    except pa.ArrowException as error:
        raise DataError(f"The records cannot be written as Parquet: {error}") from error
    return file.getvalue()


def orc(records: Sequence[Record], config: Mapping[str, Any]) -> bytes:
    pa, _ = _arrow()
    from pyarrow import orc as format

    _schema(records)
    rows = [plain(one.value_schema, one.value) for one in records]
    file = io.BytesIO()
    try:
        format.write_table(pa.Table.from_pylist(rows), file)
    except pa.ArrowException as error:
        raise DataError(f"The records cannot be written as ORC: {error}") from error
    return file.getvalue()


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ConfigError("Parquet needs the Python package pyarrow: pip install 'moldau[console]'.") from None
    return pa, pq


def raw(records: Sequence[Record], config: Mapping[str, Any]) -> bytes:
    """Join values that are bytes, with a separator after each."""
    end = config["format.bytearray.separator"].encode() or b"\n"
    for one in records:
        if not isinstance(one.value, bytes | str):
            raise DataError("The format of bytes takes values of the ByteArrayConverter only.")
    return b"".join((one.value if isinstance(one.value, bytes) else one.value.encode()) + end for one in records)


def _schema(records: Sequence[Record]) -> Schema:
    found = records[0].value_schema
    if found is None:
        raise DataError("Avro, Parquet and ORC take records with a schema.")
    return found


FORMATS = {
    one.name: one
    for one in (
        Format("json.JsonFormat", ".json", json_lines, False),
        Format("avro.AvroFormat", ".avro", avro, True),
        Format("parquet.ParquetFormat", ".parquet", parquet, True),
        Format("orc.OrcFormat", ".orc", orc, True),
        Format("bytearray.ByteArrayFormat", ".bin", raw, False),
    )
}


def find(text: str) -> Format:
    """Return the format of a class name, or of what comes after its packages; ConfigError if there is none."""
    simple = text.rpartition(".")[2]
    for name, one in FORMATS.items():
        if simple in (name.rpartition(".")[2], name.rpartition(".")[2].removesuffix("Format")):
            return one
    known = ", ".join(name.rpartition(".")[2] for name in FORMATS)
    raise ConfigError(f"Invalid value {text} for configuration format.class: the formats here are {known}")


def packed(data: bytes, compression: str) -> bytes:
    return gzip.compress(data, mtime=0) if compression == "gzip" else data  # without a time, so that it can be repeated


def typed(record: Record, shape: Shape) -> Record:
    """Give a JSON object without a schema the one that its fields suggest."""
    if record.value_schema is not None or not isinstance(record.value, dict):
        return record
    schema, value = shape.take(record.value)
    return record.but(value_schema=schema, value=value)


def field_of(record: Record, name: str) -> Any:
    """Return a field of a value, also a nested one; ConnectError if there is none."""
    value: Any = record.value
    for part in name.split("."):
        if isinstance(value, Struct) and part in value.schema.by_name:
            value = value.get(part)
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            raise ConnectError(f"The record has no field {name}.")
    return value


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else str(value)
