"""Values of any schema in one column of the type VARIANT: each is read by the schema that it was written with.

This is for topics whose values have different schemas or formats. It takes a Python object for each record.
"""

from __future__ import annotations

import base64
import datetime
import enum
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from moldau.serdes.arrow.batch import Converted
from moldau.serdes.context import Context, Serde, SerdeError
from moldau.serdes.formats import serde
from moldau.serdes.framing import SCHEMA_HEADER, unframe
from moldau.serdes.registry import Registry, RegistryError

FORMATS = {"AVRO": "avro", "JSON": "json-schema", "PROTOBUF": "protobuf"}
# As Spark marks it in Arrow.
TYPE = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)


class Variants:
    """The conversion of framed values of any format, by a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._serde = cache(self._make)

    def type(self, context: Context) -> pa.DataType:
        return TYPE

    def to_arrow(self, values: pa.Array, context: Context, headers: pa.Array | None = None) -> Converted:
        """Convert rows. `headers` has the header of each row that names its schema, if rows have such."""
        rows: list[Any] = []
        errors: dict[int, str] = {}
        named = [None] * len(values) if headers is None else headers.to_pylist()
        for row, (data, header) in enumerate(zip(values.to_pylist(), named, strict=True)):
            try:
                rows.append(None if data is None else self._variant(data, context, header))
            except SerdeError as error:
                if isinstance(error, RegistryError) and error.retriable:
                    raise
                rows.append(None)
                errors[row] = str(error)
        return Converted(pa.array(rows, TYPE), errors)

    def from_arrow(self, values: pa.Array, context: Context) -> Converted:
        raise SerdeError("a variant is read only")

    def _variant(self, data: bytes, context: Context, header: bytes | None) -> dict[str, bytes]:
        here = Context(context.topic, context.field)
        if header is not None:
            here.headers.append((SCHEMA_HEADER[context.field], header))
        ref, _ = unframe(data, here)
        return encode(self._serde(self._registry.schema(ref).type).from_bytes(data, here))

    def _make(self, type: str) -> Serde:
        if type not in FORMATS:
            raise SerdeError(f"schemas of type {type} are not known: they are {', '.join(FORMATS)}")
        return serde(FORMATS[type], self._registry)


def encode(value: Any) -> dict[str, bytes]:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import VariantVal

    try:
        made = VariantVal.parseJson(text(value))
    except (PySparkException, RecursionError) as error:
        raise SerdeError(f"it cannot be a variant: {error}") from None
    return {"value": made.value, "metadata": made.metadata}


def text(value: Any) -> str:
    """Return the JSON of a value: decimals as numbers with all their digits, bytes in base64, times in ISO 8601."""
    match value:
        case enum.Enum():
            return text(value.value)
        case bool() | None | str() | int():
            return json.dumps(value)
        case float():
            return json.dumps(value if math.isfinite(value) else str(value))
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray() | memoryview():
            return json.dumps(base64.b64encode(value).decode())
        case datetime.datetime() | datetime.date() | datetime.time():
            return json.dumps(value.isoformat())
        case Mapping():
            return f"{{{','.join(f'{json.dumps(str(key))}:{text(one)}' for key, one in value.items())}}}"
        case list() | tuple():
            return f"[{','.join(map(text, value))}]"
    if hasattr(value, "DESCRIPTOR"):
        from google.protobuf.json_format import MessageToJson

        return MessageToJson(value, preserving_proto_field_name=True, indent=None)
    return json.dumps(str(value))
