"""Formats of keys and values: `serde` makes rows of bytes and bytes of rows.

A format is a row of FORMATS. `encode_case` and `decode_case` are for files of test cases, whose keys and values are
JSON nodes whatever the format.
"""

from __future__ import annotations

import json as jsonlib
from collections.abc import Callable
from typing import Any

from moldau.serdes.context import SerdeError
from moldau.serdes.registry import Schema

from ..catalogue import Format
from ..tree import Type
from ..types import Columns
from . import json, json_sr, plain, registered_cases
from .delimited import Delimited
from .json import Json
from .json_sr import JsonSr
from .plain import Kafka, Nothing
from .registered import Place
from .rows import Row, RowSerde

__all__ = ["Row", "RowSerde", "SerdeError", "columns_of", "decode_case", "encode_case", "register", "serde"]


def _alone(format: Format, columns: Columns) -> bool:
    return "UNWRAP_SINGLES" in format.features and len(columns) == 1


FORMATS: dict[str, Callable[[Format, Columns, Place], RowSerde]] = {
    "NONE": lambda _format, _columns, _place: Nothing(),
    "KAFKA": lambda _format, columns, _place: Kafka.of(columns),
    "DELIMITED": lambda format, columns, _place: Delimited.of(columns, format.property("delimiter")),
    "JSON": lambda format, columns, _place: Json.of(columns, _alone(format, columns)),
    "JSON_SR": lambda format, columns, place: JsonSr.of(format, columns, _alone(format, columns), place),
    "AVRO": lambda format, columns, place: _avro().Avro.of(format, columns, _alone(format, columns), place),
    "PROTOBUF": lambda format, columns, place: _protobuf().Protobuf.of(format, columns, place),
    "PROTOBUF_NOSR": lambda format, columns, place: _protobuf().Protobuf.of(format, columns, place),
}


def _avro() -> Any:
    """Import fastavro when it is needed."""
    from . import avro

    return avro


def _protobuf() -> Any:
    from . import protobuf

    return protobuf


def serde(
    format: Format, columns: Columns, *, key: bool, topic: str = "", name: str = "", registry: Any = None
) -> RowSerde:
    """Return the serde of rows with those columns."""
    if not columns and (key or format.name in ("KAFKA", "DELIMITED")):
        return Nothing()
    return FORMATS[format.name](format, columns, Place(topic, key, name, registry))


def register(format: Format, columns: Columns, **place: Any) -> None:
    """Register the schema that rows are written with, before the first is written."""
    made: Any = serde(format, columns, **place)
    made.subjects.to_write(made.place.context)


def columns_of(schema: Schema, message: str | None = None, upper: bool = True) -> Type:
    """Return the SQL type of a schema that was registered; names in upper case unless the schema is named by its id."""
    match schema.type:
        case "AVRO":
            return _avro().columns_of(jsonlib.loads(schema.text), upper)
        case "JSON":
            return json_sr.columns_of(jsonlib.loads(schema.text), upper)
        case _:
            return _protobuf().columns_of(schema, message, upper)


def encode_case(format: Format, columns: Columns, node: Any, **place: Any) -> bytes | None:
    """Return the bytes of a node of a test case, with the schema that its topic has if there is one."""
    if node is None or (not columns and format.name in ("KAFKA", "DELIMITED", "NONE")):
        return None
    match format.name:
        case "JSON":
            return json.document(node).encode()
        case "DELIMITED":
            return str(node).encode()
        case "KAFKA":
            return serde(format, columns, key=False).dumps(plain.case_value(columns, node))
        case _:
            return registered_cases.encode(format, columns, node, serde(format, columns, **place))


def decode_case(format: Format, columns: Columns, data: bytes | None, **place: Any) -> Any:
    """Return the node of a test case that bytes stand for."""
    if data is None or (not columns and format.name in ("KAFKA", "DELIMITED", "NONE")):
        return None
    match format.name:
        case "JSON":
            return json.parse(data)
        case "DELIMITED":
            return data.decode()
        case "KAFKA":
            row = serde(format, columns, key=False).loads(data)
            return None if row is None else row[0]
        case _:
            return registered_cases.decode(format, columns, data, serde(format, columns, **place))
