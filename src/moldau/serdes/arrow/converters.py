"""Batches to Arrow and back by the name of a format: `columns("avro", registry)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from ..avro import Avro
from ..context import Context
from ..formats import needed
from ..framing import SchemaRef
from ..json_schema import JsonSchema
from ..primitive import PLAIN
from ..protobuf import Protobuf, file_of, named
from ..registry import Registry, Schema
from .avro import arrow_type, read_avro, write_avro
from .batch import Converted, Slices
from .json import json_type, read_json_rows, write_json_rows
from .plain import PlainColumns
from .protobuf import message_type, read_protobuf, write_protobuf
from .typed import TypedColumns


class ArrowColumns(Protocol):
    """What a format does with batches. `to_arrow` takes framed values, and headers that name schemas if there are; rows
    that are wrong are null and stand in the result's errors: what becomes of them is the caller's to decide."""

    def type(self, context: Context) -> pa.DataType: ...

    def to_arrow(self, values: pa.Array, context: Context, headers: pa.Array | None = None) -> Converted: ...

    def from_arrow(self, values: pa.Array, context: Context) -> Converted: ...


def columns(
    format: str,
    registry: Registry | None = None,
    schema: Schema | str | None = None,
    settings: Mapping[str, Any] | None = None,
    message: str | None = None,
    dictionaries: bool = False,
) -> ArrowColumns:
    """Return what converts a format. `schema` is what is written and read; without it, the latest of the subject.
    `message` is Protobuf's; `dictionaries` leaves Avro's enums encoded."""
    if format in PLAIN:
        return PlainColumns(format)
    registry, settings = needed(format, registry), settings or {}
    if format == "json-schema":
        return TypedColumns(
            JsonSchema.of(registry, schema, settings).subjects, json_type, read_json_rows, write_json_rows
        )
    if format == "protobuf":
        subjects = Protobuf.of(registry, None, schema, message, settings).subjects
        read, write = partial(read_protobuf, message=message), partial(write_protobuf, message=message)
        return TypedColumns(subjects, lambda given: message_type(named(file_of(given), message)), read, write, True)

    def read_rows(payloads: Slices, writer: Schema, reader: Schema, ref: SchemaRef) -> Converted:
        return read_avro(payloads, writer, reader, dictionaries)

    return TypedColumns(
        Avro.of(registry, schema, settings).subjects,
        lambda given: arrow_type(given, dictionaries),
        read_rows,
        write_avro_rows,
    )


def write_avro_rows(values: pa.Array, schema: Schema, head: Callable[[tuple[int, ...] | None], bytes]) -> Converted:
    return write_avro(values, schema, head(None))
